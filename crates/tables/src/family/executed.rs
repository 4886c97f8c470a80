//! What of a program was run at all.

use crate::schema::table;

table! {
    /// One row a statement of a method whose statements were counted, or a method that has none.
    coverage {
        /// Assembly.
        assembly: Str,
        /// Class.
        class: Str,
        /// Method.
        method: Str,
        /// Its parameters and return type.
        signature: Str,
        /// Source file.
        path: Opt<Str>,
        /// Its metadata token.
        token: u64,
        /// Where in the method's intermediate code the statement begins; null where the method has none.
        il_offset: Opt<u64>,
        /// Line, from 1; null where the file does not say.
        line: Opt<u32>,
        /// Column, from 1; null where the file does not say.
        column: Opt<u32>,
        /// How often it was run; null where the method has no statement.
        num_runs: Opt<u64>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}
