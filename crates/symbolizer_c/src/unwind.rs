//! SFrame sections.

use std::ffi::c_char;

use perfuse_symbolizer::{Base, Expression, Recovery, SFrameTable};

use crate::handle;
use crate::status::{Failure, perfuse_status, run};

/// The SFrame sections of a file. Threads may use one handle at the same time.
#[allow(non_camel_case_types)]
pub struct perfuse_unwind_table(SFrameTable);

/// What an expression counts from.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum perfuse_expression_base {
    /// There is no expression: the register is unchanged.
    PERFUSE_BASE_NONE = 0,
    /// The stack pointer in this frame.
    PERFUSE_BASE_SP = 1,
    /// The frame pointer in this frame.
    PERFUSE_BASE_FP = 2,
    /// The canonical frame address: the stack pointer before the call.
    PERFUSE_BASE_CFA = 3,
    /// Another register, by its DWARF number. Its value is known only in the innermost frame.
    PERFUSE_BASE_REGISTER = 4,
}

/// `base + offset`, or the value in memory at that address.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perfuse_expression {
    /// Offset in bytes.
    pub offset: i64,
    /// What it counts from.
    pub base: perfuse_expression_base,
    /// DWARF number of the register of PERFUSE_BASE_REGISTER, else 0.
    pub register_number: u32,
    /// 1 where the value is read from memory at the address, else 0.
    pub deref: u32,
}

/// How the frame of a function is left at an address.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perfuse_unwind_row {
    /// Address at which the function starts.
    pub start_address: u64,
    /// Size of the function in bytes.
    pub size_bytes: u64,
    /// Bytes from the start of the function at which the row begins.
    pub row_offset: u64,
    /// The canonical frame address.
    pub cfa: perfuse_expression,
    /// The return address.
    pub ra: perfuse_expression,
    /// The frame pointer of the caller.
    pub fp: perfuse_expression,
    /// 1 where there is no caller: unwinding ends here, and there are no expressions.
    pub is_outermost: u32,
    /// 1 where the return address is signed (aarch64).
    pub ra_mangled: u32,
    /// 1 where a signal entered the function: its return address is the interrupted instruction, not one after a call.
    pub is_signal: u32,
}

/// Opens a program, library, object file or archive, or a section alone. `table` receives NULL where that fails.
///
/// # Safety
/// `path` ends with a NUL; `table` is a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_unwind_open(
    path: *const c_char,
    table: *mut *mut perfuse_unwind_table,
) -> perfuse_status {
    // SAFETY: as the documentation asks.
    let open = || Ok(perfuse_unwind_table(SFrameTable::open(unsafe { handle::path(path) }?)?));
    // SAFETY: as the documentation asks.
    run(|| unsafe { handle::give(table, open) })
}

/// Copies a section that is loaded at `address`. `table` receives NULL where it cannot be read.
///
/// # Safety
/// `bytes` has `num_bytes` bytes; `table` is a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_unwind_section(
    bytes: *const u8,
    num_bytes: usize,
    address: u64,
    table: *mut *mut perfuse_unwind_table,
) -> perfuse_status {
    let open = || {
        // SAFETY: as the documentation asks.
        let bytes = unsafe { handle::bytes(bytes, num_bytes) }?.to_vec();
        Ok(perfuse_unwind_table(SFrameTable::from_bytes(bytes, Some(address))?))
    };
    // SAFETY: as the documentation asks.
    run(|| unsafe { handle::give(table, open) })
}

/// Finds the row for a program counter, which is an address of the file, not of the process.
///
/// # Safety
/// `table` is from perfuse_unwind_open() or perfuse_unwind_section(), and not freed; `row` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_unwind_find(
    table: *const perfuse_unwind_table,
    pc: u64,
    row: *mut perfuse_unwind_row,
) -> perfuse_status {
    run(|| {
        // SAFETY: as the documentation asks.
        let table = unsafe { handle::get(table) }?;
        let found = table.0.find(pc).ok_or(Failure::NotFound)?;
        let (cfa, fp, ra, ra_mangled, is_outermost) = match found.recovery {
            Recovery::Outermost => (None, None, None, false, true),
            Recovery::Caller { cfa, fp, ra, ra_mangled } => {
                (Some(cfa), fp.expression(), ra.expression(), ra_mangled, false)
            }
        };
        let found = perfuse_unwind_row {
            start_address: found.start_address,
            size_bytes: found.size_bytes,
            row_offset: found.row_offset,
            cfa: expression(cfa),
            ra: expression(ra),
            fp: expression(fp),
            is_outermost: u32::from(is_outermost),
            ra_mangled: u32::from(ra_mangled),
            is_signal: u32::from(found.is_signal),
        };
        // SAFETY: as the documentation asks.
        unsafe { handle::put(row, found) }
    })
}

fn expression(found: Option<Expression>) -> perfuse_expression {
    let base = perfuse_expression_base::PERFUSE_BASE_NONE;
    let nothing = perfuse_expression { offset: 0, base, register_number: 0, deref: 0 };
    let Some(Expression { base, offset, deref }) = found else { return nothing };
    let (base, register_number) = match base {
        Base::Sp => (perfuse_expression_base::PERFUSE_BASE_SP, 0),
        Base::Fp => (perfuse_expression_base::PERFUSE_BASE_FP, 0),
        Base::Cfa => (perfuse_expression_base::PERFUSE_BASE_CFA, 0),
        Base::Register(number) => (perfuse_expression_base::PERFUSE_BASE_REGISTER, number),
    };
    perfuse_expression { offset, base, register_number, deref: u32::from(deref) }
}

/// Closes a file; NULL is ignored.
///
/// # Safety
/// `table` is NULL, or from perfuse_unwind_open() or perfuse_unwind_section(), not freed, and not used by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_unwind_free(table: *mut perfuse_unwind_table) {
    // SAFETY: as the documentation asks.
    unsafe { handle::free(table) };
}
