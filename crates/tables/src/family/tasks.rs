//! Processes, threads, and what they had mapped.

use crate::schema::table;

table! {
    /// One row a process.
    processes {
        /// Surrogate key.
        process_id: u32,
        /// Process id, in the namespace of the recorder.
        pid: i32,
        /// Last command name.
        name: Opt<Str>,
        /// Start (fork), where recorded.
        start_ns: Opt<i64>,
        /// Exit, where recorded.
        end_ns: Opt<i64>,
    }
}

table! {
    /// One row a thread.
    threads {
        /// Surrogate key.
        thread_id: u32,
        /// Its process.
        process_id: u32,
        /// Thread id, in the namespace of the recorder; null where it has none of the system's.
        tid: Opt<i32>,
        /// The recorder's own id of it, such as a `pthread_t`: another thread may have had it before.
        native_id: Opt<u64>,
        /// Last command name.
        name: Opt<Str>,
        /// Start (fork), where recorded.
        start_ns: Opt<i64>,
        /// Exit, where recorded.
        end_ns: Opt<i64>,
    }
}

table! {
    /// One row a mapping of a file or of anonymous memory into a process.
    mappings {
        /// Surrogate key.
        mapping_id: u32,
        /// Process; null for the kernel's, which all share.
        process_id: Opt<u32>,
        /// Since when; null where it was there before the recording.
        start_ns: Opt<i64>,
        /// First address.
        start_address: u64,
        /// First address after it.
        end_address: u64,
        /// Offset in the file of the first address.
        file_offset: u64,
        /// File, or `//anon`, `[vdso]`, `[kernel.kallsyms]` and the like.
        path: Str,
        /// Build id in hexadecimal.
        build_id: Opt<Str>,
        /// Whether it could be executed.
        executable: bool,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}
