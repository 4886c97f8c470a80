//! What was called when: events as recorded, the calls they make, and moments.

use crate::column::choices;
use crate::schema::table;

choices! {
    /// What a row of `call_events` tells.
    CallEvent {
        /// A function begins.
        Enter = "enter",
        /// A function ends.
        Exit = "exit",
        /// A function ends by jumping into the next.
        TailExit = "tail_exit",
        /// A function is left by an exception.
        ExceptionExit = "exception_exit",
        /// An argument of the call that was entered last.
        Argument = "argument",
    }
}

choices! {
    /// What a slice is.
    SliceKind {
        /// A call of a function.
        Call = "call",
        /// A garbage collection, or a part of one.
        Gc = "gc",
        /// A compilation.
        Jit = "jit",
        /// A lock that was waited for or held.
        Lock = "lock",
        /// A range the program marked itself.
        Custom = "custom",
    }
}

choices! {
    /// How the start of a slice is known.
    StartReason {
        /// It was recorded.
        Entry = "entry",
        /// Only the end was recorded: the slice starts where the recording of its thread does.
        Lost = "lost",
    }
}

choices! {
    /// How a slice ended.
    EndReason {
        /// It was recorded.
        Exit = "exit",
        /// By jumping into the next function.
        TailCall = "tail_call",
        /// Without an exit, by an exception or `longjmp`: it ends with the next event of the function that caught it.
        Unwound = "unwound",
        /// Not at all: it ends where the recording of its thread does.
        Truncated = "truncated",
    }
}

table! {
    /// One row an event of a call trace as recorded, in time order for each thread: before calls are put together.
    call_events {
        /// Time on the profile's clock.
        ts_ns: i64,
        /// Thread.
        thread_id: u32,
        /// Processor.
        cpu: Opt<u32>,
        /// `enter`, `exit`, `tail_exit`, `exception_exit` or `argument`.
        kind: Choice<super::CallEvent>,
        /// Function.
        function_id: u32,
        /// The argument, where the row is one.
        value: Opt<u64>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a call path of a thread that the recorder summed up itself, instead of telling each call.
    call_sums {
        /// Thread.
        thread_id: u32,
        /// Functions (`function_id`) on the path, innermost first.
        functions: List,
        /// Calls that had this path.
        num_calls: u64,
        /// Time in the innermost function itself; below 0 where the recorder's arithmetic went under.
        self_ns: i64,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a stretch of time that has a name: a call of a function, a collection, a wait. Rows come as slices end.
    slices {
        /// Surrogate key, in the order of the starts.
        slice_id: u64,
        /// Thread.
        thread_id: u32,
        /// Start, on the profile's clock.
        start_ns: i64,
        /// Length.
        duration_ns: i64,
        /// Part of it that is in no slice within it.
        self_ns: i64,
        /// Number of slices around it.
        depth: u32,
        /// The slice around it; null where there is none.
        parent_slice_id: Opt<u64>,
        /// Function, where it is a call.
        function_id: Opt<u32>,
        /// What it is, where that is no function.
        name: Opt<Str>,
        /// `call`, `gc`, `jit`, `lock` or `custom`.
        kind: Choice<super::SliceKind>,
        /// `entry` (recorded), or `lost`: it was there when the recording of the thread began.
        start_reason: Choice<super::StartReason>,
        /// `exit`, `tail_call`, `unwound` (by an exception or `longjmp`) or `truncated` (the recording ended first).
        end_reason: Choice<super::EndReason>,
        /// Processor at the start.
        cpu: Opt<u32>,
        /// Arguments as a JSON array.
        args: Opt<Str>,
        /// File the row is from.
        source_id: u32,
        /// Offset of the record it starts with, or ends with where the start was lost.
        record_offset: u64,
    }
}

table! {
    /// One row a moment that was marked.
    instants {
        /// Time on the profile's clock.
        ts_ns: i64,
        /// Thread.
        thread_id: u32,
        /// Processor.
        cpu: Opt<u32>,
        /// What kind of moment: `custom_event`, `typed_event` and the like.
        kind: Str,
        /// What it tells, where that is text.
        name: Opt<Str>,
        /// Number of its type, where the program gave one.
        event_type: Opt<u32>,
        /// The recorder's own id of what it is about: of a domain, a context, an image.
        native_id: Opt<u64>,
        /// The bytes that came with it.
        payload: Opt<Bytes>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}
