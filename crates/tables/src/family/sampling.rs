//! Samples: as recorded, with bare addresses, and joined with code, with stacks of frames.

use crate::schema::table;

table! {
    /// One row for each sample as recorded: bare addresses without names.
    callchains {
        /// Zero-based number in time order; the row of `samples` with the same number is made from it.
        sample_id: u64,
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Process.
        process_id: u32,
        /// Thread.
        thread_id: u32,
        /// Number of the processor; null where not recorded.
        cpu: Opt<u32>,
        /// Number of events that the sample represents.
        period: u64,
        /// Name of the event.
        event: Str,
        /// Addresses, from that of the sample outwards. Context markers of the kernel, such as 0xffffffffffffff80, are included.
        addresses: List,
        /// Reference to the recorded registers and copy of the user stack, for unwinding: a number with a meaning only within its
        /// format. Null where the recorder unwound the stack itself and noted no link register.
        user_stack: Opt<u64>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each sample. A call trace has two rows for each thread and call path, with events `wall-time` and `calls`;
    /// allocations have two rows for each thread and call stack, with events `allocated-bytes` and `allocations`.
    samples {
        /// Zero-based number in time order; rows of call traces follow those of samples, and rows of allocations follow those.
        sample_id: u64,
        /// Time on the profile's clock, in nanoseconds. For a call path: start of its first call. For allocations: time of the first one.
        ts_ns: i64,
        /// Sampled thread.
        thread_id: u32,
        /// Number of the processor; null where not recorded.
        cpu: Opt<u32>,
        /// Stack whose top is the innermost frame; null for a sample without addresses.
        stack_id: Opt<u32>,
        /// Number of events that the sample represents. For a call path: its self time, or its number of calls.
        weight: u64,
        /// `ns` for clock events and `wall-time` (`ticks` where the rate of the recording's counter is unknown), `calls` for calls, `bytes` and `allocations` for allocations, `events` otherwise.
        weight_unit: Str,
        /// Name of the event; `wall-time` and `calls` for call traces, `allocated-bytes` and `allocations` for allocations.
        event: Str,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
