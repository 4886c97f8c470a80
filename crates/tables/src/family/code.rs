//! Modules, functions, their machine code, and its source positions.

use crate::schema::table;

table! {
    /// One row for each file or other module that contains functions.
    modules {
        /// Surrogate key.
        module_id: u32,
        /// Path, or the name of a pseudo-module such as `[jit] node`.
        name: Str,
        /// `jit`, `native`, `kernel` or `unknown`.
        kind: Str,
        /// Build id in hexadecimal; null where not known.
        build_id: Opt<Str>,
    }
}

table! {
    /// One row for each function, by its name in the file. Several compilations of a function in one tier share a row; static functions of one name in a program have one each. Types of allocated objects are functions too: those of the
    /// innermost frames of allocations.
    functions {
        /// Surrogate key.
        function_id: u32,
        /// The file's own id or address of the function; null where it has none.
        native_id: Opt<u64>,
        /// Name to display: demangled, without tier marks.
        name: Str,
        /// Name in the file or symbol table.
        linkage_name: Str,
        /// Module that contains the function.
        module_id: Opt<u32>,
        /// Source file that declares it; of one of several static functions of one name, that of its code.
        path: Opt<Str>,
        /// Line at which it starts, from 1.
        line: Opt<u32>,
        /// Column at which it starts, from 1.
        column: Opt<u32>,
    }
}

table! {
    /// One row for each piece of machine code: a compilation of a function, or a stub.
    code_objects {
        /// Surrogate key.
        code_object_id: u32,
        /// Function of the code.
        function_id: u32,
        /// Process that contains the code.
        process_id: u32,
        /// Thread that compiled it; null where not recorded.
        thread_id: Opt<u32>,
        /// `jit`, `stub`, `helper` or `aot`; `unnamed` for code of a method whose name the recording does not have, which names no samples.
        kind: Str,
        /// Compiler tier, in the runtime's terms: `turbofan`, `maglev`, `Tier1`, `FTL`; null where not recorded.
        tier: Opt<Str>,
        /// Time from which the code can run, on the profile's clock, in nanoseconds.
        create_ns: i64,
        /// Time when other code overwrote it, in nanoseconds; null where none did.
        retire_ns: Opt<i64>,
        /// First address when it was created.
        start_address: u64,
        /// Size of the code.
        size_bytes: u64,
        /// Machine code; null unless requested, and where the file contains none.
        code: Opt<Binary>,
        /// The file's own number for the code.
        code_index: u64,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each instruction of JIT code whose bytes were recorded. It is built only for queries that name it.
    instructions {
        /// Code that contains it.
        code_object_id: u32,
        /// Offset from the start of the code, in bytes.
        code_offset: u64,
        /// Size of the instruction.
        size_bytes: u32,
        /// The instruction as `objdump -d` writes it; a list of bytes for machines without a disassembler.
        text: Str,
        /// What follows it: `next`, `jump`, `branch`, `indirect_jump`, `call`, `indirect_call`, `return`, `trap` or `bad` (the
        /// bytes are no instruction).
        flow: Str,
        /// Address that it jumps to, calls, or refers to relative to itself; null where its bytes contain none.
        target_address: Opt<u64>,
    }
}

table! {
    /// One row for each move of code to another address.
    code_moves {
        /// Moved code.
        code_object_id: u32,
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// First address before the move.
        old_address: u64,
        /// First address after the move.
        new_address: u64,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each change of source position within code; it applies up to the offset of the next row.
    line_rows {
        /// Code that contains it.
        code_object_id: u32,
        /// Offset from the start of the code, in bytes.
        code_offset: u64,
        /// Source file.
        path: Str,
        /// Line, from 1; 0 for code that belongs to no line.
        line: u32,
        /// Column, from 1; null where the file contains none.
        column: Opt<u32>,
        /// DWARF discriminator, in files that contain it instead of a column.
        discriminator: Opt<u32>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each range of code of an inlined function.
    inline_calls {
        /// Code that contains it.
        code_object_id: u32,
        /// Offset from the start of the code, in bytes.
        start_offset: u64,
        /// Size of the range.
        size_bytes: u64,
        /// 0 for a call from the outer function.
        depth: u32,
        /// Inlined function.
        function_id: u32,
        /// File of the call; null where not recorded.
        call_path: Opt<Str>,
        /// Line of the call, from 1; null where not recorded.
        call_line: Opt<u32>,
        /// Column of the call, from 1; null where not recorded.
        call_column: Opt<u32>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each source text that a recording contains.
    embedded_files {
        /// Path of the text in `line_rows`.
        path: Str,
        /// The text, as bytes.
        text: Binary,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
