//! Sums over all calls and allocations. None is a common table: saved profiles have them, so that reports need no events.

use crate::schema::table;

table! {
    /// One row for each function that was called, or for each of its threads or processors. Figures of durations are null
    /// without durations.
    call_functions {
        /// Function.
        function_id: Opt<u32>,
        /// Thread of the calls; null where they are not by thread.
        thread_id: Opt<u32>,
        /// Processor on which the calls began; null where they are not by processor.
        cpu: Opt<u32>,
        /// Number of calls.
        num_calls: u64,
        /// Of them, those whose durations the figures are of.
        num_timed: u64,
        /// Shortest duration, in the unit of `call_totals`, as are all others.
        min_ns: Opt<u64>,
        /// Median of the durations.
        median_ns: Opt<u64>,
        /// Percentile 90.
        p90_ns: Opt<u64>,
        /// Percentile 99.
        p99_ns: Opt<u64>,
        /// Longest duration.
        max_ns: Opt<u64>,
        /// Sum of the durations.
        sum_ns: u64,
        /// Time in the function itself.
        self_ns: u64,
        /// Time in the function and what it called; calls within calls of the function do not count again.
        total_ns: u64,
        /// Calls within other calls of the function.
        recursive_calls: u64,
        /// Calls without an exit event.
        num_unwound: u64,
        /// Calls that ended with a jump into another function.
        num_tail_calls: u64,
        /// Calls that were open at the end.
        num_truncated: u64,
        /// Calls that were open at the start.
        num_lost: u64,
        /// Exits without an entry, within other calls.
        num_orphans: u64,
    }
}

table! {
    /// One row for each call path and thread, callers first.
    call_paths {
        /// Surrogate key.
        path_id: u32,
        /// Path of the caller; null where it is the outermost function.
        parent_path_id: Opt<u32>,
        /// Function.
        function_id: Opt<u32>,
        /// Number of callers.
        depth: u32,
        /// Thread.
        thread_id: Opt<u32>,
        /// Number of calls.
        num_calls: u64,
        /// Time in them.
        total_ns: u64,
        /// Time in them that no call within them has.
        self_ns: u64,
        /// Start of the first, on the profile's clock.
        first_ns: i64,
    }
}

table! {
    /// One row for each thread that called functions.
    call_threads {
        /// Thread.
        thread_id: Opt<u32>,
        /// Time of its first event, on the profile's clock; null where only sums were recorded.
        first_ns: Opt<i64>,
        /// Time of its last event; null where only sums were recorded.
        last_ns: Opt<i64>,
        /// Number of events.
        num_events: u64,
        /// Number of calls.
        num_calls: u64,
        /// Largest number of calls that were open at once.
        max_depth: u32,
        /// Time in calls.
        busy_ns: u64,
        /// How often it moved to another processor.
        num_migrations: u64,
    }
}

table! {
    /// One row for each thread and pair of processors that it moved between.
    call_migrations {
        /// Thread.
        thread_id: Opt<u32>,
        /// Processor before.
        from_cpu: Opt<u32>,
        /// Processor after.
        to_cpu: Opt<u32>,
        /// How often.
        num_migrations: u64,
    }
}

table! {
    /// One row: numbers of all calls.
    call_totals {
        /// Unit of times: `ns`, or `ticks` of an unknown rate.
        unit: Str,
        /// Rows of `call_events`.
        num_events: u64,
        /// Number of calls.
        num_calls: u64,
        /// Calls without an exit event.
        num_unwound: u64,
        /// Calls that ended with a jump into another function.
        num_tail_calls: u64,
        /// Calls that were open at the end.
        num_truncated: u64,
        /// Calls that were open at the start.
        num_lost: u64,
        /// Exits without an entry, within other calls.
        num_orphans: u64,
        /// Time of the first event, on the profile's clock; null without events.
        first_ns: Opt<i64>,
        /// Time of the last event; null without events.
        last_ns: Opt<i64>,
    }
}

table! {
    /// One row for each thread, type and stack of allocations.
    allocation_sums {
        /// Thread.
        thread_id: u32,
        /// Type; null where the file does not describe it.
        type_id: Opt<u32>,
        /// Call stack; null where none was recorded.
        stack_id: Opt<u32>,
        /// Number of allocations.
        num_objects: u64,
        /// Sum of their sizes.
        size_bytes: u64,
        /// Size of the largest.
        largest_bytes: u64,
        /// Time of the first, on the profile's clock, in nanoseconds.
        first_ns: i64,
        /// Recording that contains the record of the first.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
