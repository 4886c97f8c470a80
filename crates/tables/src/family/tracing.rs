//! Call traces: events as recorded, time ranges such as calls (slices), and instants.

use crate::column::choices;
use crate::schema::table;

choices! {
    /// Kind of a row of `call_events`.
    CallEvent {
        /// A function begins.
        Enter = "enter",
        /// A function ends.
        Exit = "exit",
        /// A function ends with a jump to the next function (tail call).
        TailExit = "tail_exit",
        /// A function ends with an exception.
        ExceptionExit = "exception_exit",
        /// An argument of the latest call.
        Argument = "argument",
    }
}

choices! {
    /// Kind of a slice.
    SliceKind {
        /// A call of a function.
        Call = "call",
        /// A garbage collection, or a phase of one.
        Gc = "gc",
        /// A just-in-time compilation.
        Jit = "jit",
        /// A time range in which a thread waits for a lock or owns it.
        Lock = "lock",
        /// A time range that the program recorded itself.
        Custom = "custom",
    }
}

choices! {
    /// Origin of the start of a slice.
    StartReason {
        /// It was recorded.
        Entry = "entry",
        /// The start was not recorded: the slice starts with the recording of its thread.
        Lost = "lost",
    }
}

choices! {
    /// How a slice ends.
    EndReason {
        /// With a recorded end.
        Exit = "exit",
        /// With a jump to the next function.
        TailCall = "tail_call",
        /// Without a recorded end, by an exception or `longjmp`: the slice ends with the next event of a caller.
        Unwound = "unwound",
        /// The end was not recorded: the slice ends with the recording of its thread.
        Truncated = "truncated",
    }
}

table! {
    /// One row for each event of a call trace as recorded, in time order for each thread.
    call_events {
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Thread.
        thread_id: u32,
        /// Number of the processor; null where not recorded.
        cpu: Opt<u32>,
        /// `enter`, `exit`, `tail_exit`, `exception_exit` or `argument`.
        kind: Choice<super::CallEvent>,
        /// Function.
        function_id: u32,
        /// Value of the argument; null for other kinds.
        value: Opt<u64>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// Rows of `call_events` that calls of any time range need, in the order of that table: of calls that begin in one row group of a
    /// saved table and end in another, ends of calls that began before the recording, and of each thread in each row group the first,
    /// the last, the earliest and the latest. Not a common table: saved profiles have it.
    border_events {
        /// Number of the row in `call_events`.
        row: u64,
        /// As in `call_events`, as are all columns that follow.
        ts_ns: i64,
        /// Thread.
        thread_id: u32,
        /// Number of the processor.
        cpu: Opt<u32>,
        /// Kind.
        kind: Choice<super::CallEvent>,
        /// Function.
        function_id: u32,
        /// Value of the argument.
        value: Opt<u64>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
        /// Number of calls in table `slices` that begin in earlier rows; null where that is not known before the last row.
        calls_before: Opt<u64>,
        /// `self_ns` in `slices` of the call that begins in this row; null where it ends in the same row group.
        self_ns: Opt<i64>,
    }
}

table! {
    /// One row for each call path of a thread, in recordings that contain sums instead of single calls.
    call_sums {
        /// Thread.
        thread_id: u32,
        /// Functions (`function_id`) of the path, innermost first.
        functions: List,
        /// Number of calls with this path.
        num_calls: u64,
        /// Time in these calls with the calls they made, in nanoseconds, or in ticks where `clocks.hz` is null. At least that of the paths one call longer: a recorder
        /// may have lost time of calls that were left together, or that were open at the end.
        total_ns: i64,
        /// Time in these calls without the calls they made, in nanoseconds, or in ticks where `clocks.hz` is null.
        self_ns: i64,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each named time range: a call of a function, a garbage collection, a wait. Rows are in order of the ends.
    slices {
        /// Surrogate key, in order of the starts.
        slice_id: u64,
        /// Thread.
        thread_id: u32,
        /// Start on the profile's clock, in nanoseconds.
        start_ns: i64,
        /// Duration in nanoseconds.
        duration_ns: i64,
        /// Duration without the slices nested directly in it, in nanoseconds.
        self_ns: i64,
        /// Number of slices that contain this one.
        depth: u32,
        /// The innermost slice that contains this one; null where there is none.
        parent_slice_id: Opt<u64>,
        /// Function of a call; null for other kinds.
        function_id: Opt<u32>,
        /// Name of a slice that is not a call; null for a call.
        name: Opt<Str>,
        /// `call`, `gc`, `jit`, `lock` or `custom`.
        kind: Choice<super::SliceKind>,
        /// `entry` (recorded) or `lost` (the slice began before the recording of its thread).
        start_reason: Choice<super::StartReason>,
        /// `exit`, `tail_call`, `unwound` (by an exception or `longjmp`) or `truncated` (the recording of the thread ended before it).
        end_reason: Choice<super::EndReason>,
        /// Number of the processor at the start; null where not recorded.
        cpu: Opt<u32>,
        /// Arguments as a JSON array.
        args: Opt<Str>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of the record of its start, or of its end where the start was not recorded.
        record_offset: u64,
    }
}

table! {
    /// One row for each instant: an event without a duration.
    instants {
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Thread.
        thread_id: u32,
        /// Number of the processor; null where not recorded.
        cpu: Opt<u32>,
        /// Kind, such as `custom_event` or `typed_event`.
        kind: Str,
        /// Text of the event; null where it has none.
        name: Opt<Str>,
        /// Number of the event's type, where the program defines one.
        event_type: Opt<u32>,
        /// The recorder's own id of the subject of the event, such as a domain, a context or an image.
        native_id: Opt<u64>,
        /// Payload of the event; null where it has none.
        payload: Opt<Binary>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
