//! Exceptions and the handlers that run for them.

use crate::column::choices;
use crate::schema::table;

choices! {
    /// Kind of a row of `exceptions`.
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
    /// One row for each exception that is thrown and each handler that runs.
    exceptions {
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Thread.
        thread_id: u32,
        /// `throw`, `catch`, `filter`, `finally` or `fault`.
        kind: Choice<super::ExceptionEvent>,
        /// Address of the exception object; null where the file does not contain it.
        object_address: Opt<u64>,
        /// Function that contains the handler; null for a throw.
        function_id: Opt<u32>,
        /// Index of the handler in its function; null for a throw.
        clause_index: Opt<u64>,
        /// Call stack of the throw; null where none was recorded.
        stack_id: Opt<u32>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
