//! Functions, the code made for them, and where in their source that code is from.

use crate::schema::table;

table! {
    /// One row a file or other place functions live in.
    modules {
        /// Surrogate key.
        module_id: u32,
        /// Path, or the name of a pseudo-module such as `[jit] node`.
        name: Str,
        /// `jit`, `native`, `kernel` or `unknown`.
        kind: Str,
        /// Build id in hexadecimal.
        build_id: Opt<Str>,
    }
}

table! {
    /// One row a function, by its name as written: compilations of it in one tier share it.
    functions {
        /// Surrogate key.
        function_id: u32,
        /// The file's own id or address for it, where it has one.
        native_id: Opt<u64>,
        /// Name for people: demangled, without tier marks.
        name: Str,
        /// Name as the file or symbol table has it.
        linkage_name: Str,
        /// Where it lives.
        module_id: Opt<u32>,
        /// Source file it is declared in.
        path: Opt<Str>,
        /// Line it starts at, from 1.
        line: Opt<u32>,
        /// Column it starts at, from 1.
        column: Opt<u32>,
    }
}

table! {
    /// One row a piece of machine code: a compilation of a function, a stub.
    code_objects {
        /// Surrogate key.
        code_object_id: u32,
        /// Function it was made for.
        function_id: u32,
        /// Process it lives in.
        process_id: u32,
        /// Thread that made it.
        thread_id: Opt<u32>,
        /// `jit`, `stub`, `helper` or `aot`.
        kind: Str,
        /// Compiler tier, as its runtime calls it: `turbofan`, `maglev`, `Tier1`, `FTL`.
        tier: Opt<Str>,
        /// Since when it can run.
        create_ns: i64,
        /// Until when; null where it was never replaced.
        retire_ns: Opt<i64>,
        /// First address, when created.
        start_address: u64,
        /// Size of the code.
        size_bytes: u64,
        /// Machine code; null unless asked for, and where the file has none.
        code: Opt<Bytes>,
        /// The file's own unique number for it.
        code_index: u64,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a move of code to another address.
    code_moves {
        /// Code that moved.
        code_object_id: u32,
        /// When.
        ts_ns: i64,
        /// First address before.
        old_address: u64,
        /// First address after.
        new_address: u64,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a change of source position within code; it holds up to the next row's offset.
    line_rows {
        /// Code it is in.
        code_object_id: u32,
        /// Bytes from the start of the code.
        code_offset: u64,
        /// Source file.
        path: Str,
        /// Line, from 1; 0 where the code belongs to no line.
        line: u32,
        /// Column, from 1; null where the writer has none.
        column: Opt<u32>,
        /// DWARF discriminator, where the writer puts that in the place of the column.
        discriminator: Opt<u32>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a range of code that a function was inlined into.
    inline_calls {
        /// Code it is in.
        code_object_id: u32,
        /// Bytes from the start of the code.
        start_offset: u64,
        /// Length of the range.
        size_bytes: u64,
        /// 0 for a call from the outer function.
        depth: u32,
        /// Function that was inlined.
        function_id: u32,
        /// File of the caller's call.
        call_path: Opt<Str>,
        /// Line of the call, in the caller.
        call_line: Opt<u32>,
        /// Column of the call, from 1.
        call_column: Opt<u32>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a source text that travels inside a recording.
    embedded_files {
        /// Path the line rows use for it.
        path: Str,
        /// The text, as bytes.
        text: Bytes,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}
