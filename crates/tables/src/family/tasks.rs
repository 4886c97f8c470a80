//! Processes, threads and memory mappings.

use crate::schema::table;

table! {
    /// One row for each process.
    processes {
        /// Surrogate key.
        process_id: u32,
        /// Process id in the pid namespace of the recorder.
        pid: i32,
        /// Latest command name.
        name: Opt<Str>,
        /// Start (fork) on the profile's clock, in nanoseconds; null where not recorded.
        start_ns: Opt<i64>,
        /// Exit on the profile's clock, in nanoseconds; null where not recorded.
        end_ns: Opt<i64>,
    }
}

table! {
    /// One row for each thread.
    threads {
        /// Surrogate key.
        thread_id: u32,
        /// Process of the thread.
        process_id: u32,
        /// Thread id in the pid namespace of the recorder; null where the recording has no operating system thread id.
        tid: Opt<i32>,
        /// The recorder's own thread id, such as a `pthread_t`; several threads in succession may have the same one.
        native_id: Opt<u64>,
        /// Latest command name.
        name: Opt<Str>,
        /// Start (fork) on the profile's clock, in nanoseconds; null where not recorded.
        start_ns: Opt<i64>,
        /// Exit on the profile's clock, in nanoseconds; null where not recorded.
        end_ns: Opt<i64>,
    }
}

table! {
    /// One row for each name of a thread, in the order of threads and times. A sample's thread has the latest name up to its time.
    thread_names {
        /// Thread.
        thread_id: u32,
        /// Time from which it has the name, on the profile's clock, in nanoseconds; null where it had it before the recording, or the time is not recorded.
        start_ns: Opt<i64>,
        /// Command name.
        name: Str,
    }
}

table! {
    /// One row for each mapping of a file or of anonymous memory into a process, and for code that the kernel adds, such as a BPF program.
    mappings {
        /// Surrogate key.
        mapping_id: u32,
        /// Process; null for mappings of the kernel, which all processes share.
        process_id: Opt<u32>,
        /// Time of the mapping on the profile's clock, in nanoseconds; null where it existed before the recording.
        start_ns: Opt<i64>,
        /// First address.
        start_address: u64,
        /// Address after the last one.
        end_address: u64,
        /// Offset in the file of the first address.
        file_offset: u64,
        /// File, or a name such as `//anon`, `[vdso]` or `[kernel.kallsyms]`.
        path: Str,
        /// Build id of the file, in hexadecimal; null where not recorded.
        build_id: Opt<Str>,
        /// Whether the mapping is executable.
        executable: bool,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
