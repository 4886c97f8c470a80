//! How stacks are unwound: functions, and rows that say how the caller's registers are found.

use crate::column::choices;
use crate::schema::table;

choices! {
    /// What the rows of a function count from.
    PcType {
        /// From its start.
        Increment = "pcinc",
        /// From the start of a block of code that repeats, as in a PLT.
        Mask = "pcmask",
    }
}

choices! {
    /// What told how to unwind.
    UnwindOrigin {
        /// An SFrame section.
        SFrame = "sframe",
        /// `.eh_frame`, or a JITDUMP's unwinding record.
        EhFrame = "eh_frame",
    }
}

table! {
    /// One row a function that can be unwound through.
    unwind_functions {
        /// Surrogate key.
        unwind_function_id: u32,
        /// First address, as the file is laid out; in an object file, offset in its section.
        start_address: u64,
        /// Size of its code.
        size_bytes: u64,
        /// `pcinc`, or `pcmask` where its code is one block that repeats.
        pc_type: Choice<super::PcType>,
        /// Size of that block.
        repeat_bytes: Opt<u32>,
        /// Whether the kernel enters it to deliver a signal.
        is_signal: bool,
        /// Whether it signs return addresses with key B (aarch64).
        is_key_b: bool,
        /// Rows it has.
        num_rows: u32,
        /// What told: `sframe` or `eh_frame`.
        origin: Choice<super::UnwindOrigin>,
        /// Member of an archive it is in.
        member: Opt<Str>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a change of how to unwind within a function; it holds up to the next row's offset.
    unwind_rows {
        /// Function it is in.
        unwind_function_id: u32,
        /// Where it begins to hold: bytes from the function's start, or from that of the block that repeats.
        start_offset: u64,
        /// What the CFA is counted from: `sp`, `fp` or another register such as `r10`; null where there is no caller, and in
        /// a row that says nothing that is known.
        cfa_base: Opt<Str>,
        /// Added to it.
        cfa_offset: Opt<i64>,
        /// Whether the CFA is what memory has there.
        cfa_deref: bool,
        /// What the caller's frame pointer is found from: `cfa`, `fp` or another register; null where it is in its register still.
        fp_base: Opt<Str>,
        /// Added to it.
        fp_offset: Opt<i64>,
        /// Whether it is what memory has there.
        fp_deref: bool,
        /// What the return address is found from: `cfa` or a register; null where it is in its register still.
        ra_base: Opt<Str>,
        /// Added to it.
        ra_offset: Opt<i64>,
        /// Whether it is what memory has there.
        ra_deref: bool,
        /// Whether the return address is signed (aarch64).
        ra_mangled: bool,
        /// Whether there is no caller: unwinding ends here.
        outermost: bool,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row an address that was looked up. Not a table of profiles: the answer to `find`.
    unwind_lookups {
        /// The address.
        address: u64,
        /// Function it is in; null where none is known.
        unwind_function_id: Opt<u32>,
        /// First address of that function.
        function_address: Opt<u64>,
        /// Where the row that holds begins; null where the function has none there.
        start_offset: Opt<u64>,
        /// As in `unwind_rows`, as are the following.
        cfa_base: Opt<Str>,
        /// Added to it.
        cfa_offset: Opt<i64>,
        /// Whether the CFA is what memory has there.
        cfa_deref: bool,
        /// What the caller's frame pointer is found from.
        fp_base: Opt<Str>,
        /// Added to it.
        fp_offset: Opt<i64>,
        /// Whether it is what memory has there.
        fp_deref: bool,
        /// What the return address is found from.
        ra_base: Opt<Str>,
        /// Added to it.
        ra_offset: Opt<i64>,
        /// Whether it is what memory has there.
        ra_deref: bool,
        /// Whether the return address is signed (aarch64).
        ra_mangled: bool,
        /// Whether there is no caller.
        outermost: bool,
    }
}
