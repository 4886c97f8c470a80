//! Unwinding information: functions, and rows with rules for the registers of a caller.

use crate::column::choices;
use crate::schema::table;

choices! {
    /// Origin of the offsets of a function's rows.
    PcType {
        /// The start of the function.
        Increment = "pcinc",
        /// The start of a repeated block of code, as in a procedure linkage table (PLT).
        Mask = "pcmask",
    }
}

choices! {
    /// Origin of unwinding information.
    UnwindOrigin {
        /// An SFrame section.
        SFrame = "sframe",
        /// `.eh_frame`, or a JITDUMP's unwinding record.
        EhFrame = "eh_frame",
    }
}

table! {
    /// One row for each function with unwinding information.
    unwind_functions {
        /// Surrogate key.
        unwind_function_id: u32,
        /// First address in the file's address space; in an object file, offset in its section.
        start_address: u64,
        /// Size of the function's code.
        size_bytes: u64,
        /// `pcinc`, or `pcmask` for a function that is a repeated block.
        pc_type: Choice<super::PcType>,
        /// Size of the repeated block; null for `pcinc`.
        repeat_bytes: Opt<u32>,
        /// Whether it is a signal trampoline, which the kernel enters to deliver a signal.
        is_signal: bool,
        /// Whether it signs return addresses with pointer authentication key B (aarch64).
        is_key_b: bool,
        /// Number of its rows in `unwind_rows`.
        num_rows: u32,
        /// Origin: `sframe` or `eh_frame`.
        origin: Choice<super::UnwindOrigin>,
        /// Member of the archive that contains it; null outside of archives.
        member: Opt<Str>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each change of unwinding rules within a function; it applies up to the offset of the next row.
    unwind_rows {
        /// Function that contains it.
        unwind_function_id: u32,
        /// Offset from which it applies, in bytes from the start of the function or of the repeated block.
        start_offset: u64,
        /// Base of the canonical frame address (CFA): `sp`, `fp` or another register such as `r10`; null without a caller, and in
        /// rows without a known rule.
        cfa_base: Opt<Str>,
        /// Offset that is added to the base, in bytes.
        cfa_offset: Opt<i64>,
        /// Whether the CFA is read from memory at that address.
        cfa_deref: bool,
        /// Base of the caller's frame pointer: `cfa`, `fp` or another register; null where the register is unchanged.
        fp_base: Opt<Str>,
        /// Offset that is added to the base, in bytes.
        fp_offset: Opt<i64>,
        /// Whether the value is read from memory at that address.
        fp_deref: bool,
        /// Base of the return address: `cfa` or a register; null where the register is unchanged.
        ra_base: Opt<Str>,
        /// Offset that is added to the base, in bytes.
        ra_offset: Opt<i64>,
        /// Whether the value is read from memory at that address.
        ra_deref: bool,
        /// Whether the return address is signed (aarch64).
        ra_mangled: bool,
        /// Whether there is no caller, so that unwinding ends.
        outermost: bool,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each address that was looked up. This is not a table of profiles but the result of `find`.
    unwind_lookups {
        /// Address.
        address: u64,
        /// Function that contains it; null where none is known.
        unwind_function_id: Opt<u32>,
        /// First address of that function.
        function_address: Opt<u64>,
        /// Offset of the row that applies; null where the function has none.
        start_offset: Opt<u64>,
        /// Base of the CFA. This and the following columns are those of `unwind_rows`.
        cfa_base: Opt<Str>,
        /// Offset that is added to the base, in bytes.
        cfa_offset: Opt<i64>,
        /// Whether the CFA is read from memory at that address.
        cfa_deref: bool,
        /// Base of the caller's frame pointer.
        fp_base: Opt<Str>,
        /// Offset that is added to the base, in bytes.
        fp_offset: Opt<i64>,
        /// Whether the value is read from memory at that address.
        fp_deref: bool,
        /// Base of the return address.
        ra_base: Opt<Str>,
        /// Offset that is added to the base, in bytes.
        ra_offset: Opt<i64>,
        /// Whether the value is read from memory at that address.
        ra_deref: bool,
        /// Whether the return address is signed (aarch64).
        ra_mangled: bool,
        /// Whether there is no caller, so that unwinding ends.
        outermost: bool,
    }
}
