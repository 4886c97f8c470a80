//! Samples, as a recorder took them and as they read once joined with code.

use crate::schema::table;

table! {
    /// One row a sample as recorded: bare addresses, before anything is named.
    callchains {
        /// Zero-based, in time order; the sample of the same number is made from it.
        sample_id: u64,
        /// Time on the profile's clock.
        ts_ns: i64,
        /// Process.
        process_id: u32,
        /// Thread.
        thread_id: u32,
        /// Processor.
        cpu: Opt<u32>,
        /// Events the sample stands for.
        period: u64,
        /// Event name.
        event: Str,
        /// Addresses, innermost first, with the kernel's context markers (0xffffffffffffff80 and the like) in place.
        addresses: List,
        /// Where the registers and the copy of the user's stack are that it was recorded with, for unwinding: a number of the
        /// format's own. Null where the recorder walked the stack itself.
        user_stack: Opt<u64>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a sample, joined. A call trace has two rows for each thread and call path, events `wall-time` and `calls`.
    samples {
        /// Zero-based, in time order; those of call traces come last.
        sample_id: u64,
        /// Time on the profile's clock; of a call path, when its first call began.
        ts_ns: i64,
        /// Thread it was taken in.
        thread_id: u32,
        /// Processor.
        cpu: Opt<u32>,
        /// Innermost stack; null where the sample has no address at all.
        stack_id: Opt<u32>,
        /// Events the sample stands for; of a call path, the time in it that is in no call within, or its calls.
        weight: u64,
        /// `ns` for clock events and `wall-time`, `calls` for calls, else `events`.
        weight_unit: Str,
        /// Event name; `wall-time` and `calls` for call traces.
        event: Str,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}
