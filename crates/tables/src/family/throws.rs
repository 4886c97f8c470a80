//! Exceptions and their handlers.

use crate::column::choices;
use crate::schema::table;

choices! {
    /// What a row of `exceptions` tells.
    ExceptionEvent {
        /// An exception is thrown.
        Throw = "throw",
        /// A catch handler runs.
        Catch = "catch",
        /// A filter runs.
        Filter = "filter",
        /// A finally handler runs.
        Finally = "finally",
        /// A fault handler runs.
        Fault = "fault",
    }
}

table! {
    /// One row a throw of an exception, or a handler that runs.
    exceptions {
        /// Time on the profile's clock.
        ts_ns: i64,
        /// Thread.
        thread_id: u32,
        /// `throw`, `catch`, `filter`, `finally` or `fault`.
        kind: Choice<super::ExceptionEvent>,
        /// Address of the exception; null where the file does not say.
        object_address: Opt<u64>,
        /// Function the handler is in.
        function_id: Opt<u32>,
        /// Number of the handler in its function.
        clause_index: Opt<u64>,
        /// Stack it was thrown from; null where none was taken.
        stack_id: Opt<u32>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}
