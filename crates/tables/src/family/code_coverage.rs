//! Code coverage: how often statements were executed.

use crate::schema::table;

table! {
    /// One row for each statement of a method whose executions were counted, and one row for a method without statements.
    coverage {
        /// Name of the assembly.
        assembly: Str,
        /// Name of the class.
        class: Str,
        /// Name of the method.
        method: Str,
        /// Parameters and return type of the method.
        signature: Str,
        /// Source file.
        path: Opt<Str>,
        /// Metadata token of the method.
        token: u64,
        /// Offset of the statement in the method's intermediate language (IL) code; null for a method without statements.
        il_offset: Opt<u64>,
        /// Line, from 1; null where the file does not contain it.
        line: Opt<u32>,
        /// Column, from 1; null where the file does not contain it.
        column: Opt<u32>,
        /// Number of executions of the statement; null for a method without statements.
        num_runs: Opt<u64>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
