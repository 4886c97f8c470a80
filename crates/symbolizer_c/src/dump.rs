//! Dumps.

use std::ffi::c_char;
use std::sync::{PoisonError, RwLock};

use perfuse_symbolizer::{Code, CodeLocation, DumpProgress, Error, GrowingDump};

use crate::answer::perfuse_answer;
use crate::handle;
use crate::status::{Failure, perfuse_status, run};

/// A time after all records: what is at an address now.
pub const PERFUSE_LATEST: u64 = u64::MAX;

/// A JITDUMP file that may still be written. Threads may use one handle at the same time: look-ups run in parallel, and wait
/// while perfuse_dump_push(), perfuse_dump_poll() or perfuse_dump_finish() runs.
#[allow(non_camel_case_types)]
pub struct perfuse_dump(RwLock<GrowingDump>);

/// Facts about a dump.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct perfuse_dump_facts {
    /// Number of records so far.
    pub num_records: u64,
    /// Number of pieces of code so far.
    pub num_code: u64,
    /// Number of bytes that belong to those records.
    pub read_bytes: u64,
    /// Number of places with bytes that are not records.
    pub num_damaged: u64,
    /// Process id in the header.
    pub pid: u32,
    /// ELF e_machine of the code; 0 where the producer does not write it.
    pub elf_machine: u32,
    /// 1 where time stamps are the processor's counter; 0 where they are nanoseconds of CLOCK_MONOTONIC.
    pub has_arch_timestamps: u32,
    /// 1 where the writer closed the dump, else 0.
    pub is_closed: u32,
}

/// Opens a file and reads the records so far. `dump` receives NULL where that fails.
///
/// # Safety
/// `path` ends with a NUL; `dump` is a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_open(
    path: *const c_char,
    dump: *mut *mut perfuse_dump,
) -> perfuse_status {
    // SAFETY: as the documentation asks.
    let open = || Ok(perfuse_dump(RwLock::new(GrowingDump::open(unsafe { handle::path(path) }?)?)));
    // SAFETY: as the documentation asks.
    run(|| unsafe { handle::give(dump, open) })
}

/// Makes a dump without bytes, for perfuse_dump_push(). All bytes that are pushed stay in memory.
///
/// # Safety
/// `dump` is a place for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_new(dump: *mut *mut perfuse_dump) -> perfuse_status {
    // SAFETY: as the documentation asks.
    run(|| unsafe { handle::give(dump, || Ok(perfuse_dump(RwLock::new(GrowingDump::new())))) })
}

/// Appends bytes to a dump of perfuse_dump_new(), and reads the records that they complete. `num_records` receives their number;
/// it may be NULL. PERFUSE_ERROR_ARGUMENT for a dump of perfuse_dump_open().
///
/// # Safety
/// `dump` is from perfuse_dump_new() or perfuse_dump_open(), and not freed; `bytes` has `num_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_push(
    dump: *const perfuse_dump,
    bytes: *const u8,
    num_bytes: usize,
    num_records: *mut u64,
) -> perfuse_status {
    // SAFETY: as the documentation asks.
    let step = |dump: &mut GrowingDump| Ok(dump.push(unsafe { handle::bytes(bytes, num_bytes) }?)?);
    // SAFETY: as the documentation asks.
    run(|| unsafe { advance(dump, num_records, step) })
}

/// Reads what was appended to the file since the last call; a dump of perfuse_dump_new() has no file, so there is nothing to read.
/// `num_records` receives the number of new records; it may be NULL.
///
/// # Safety
/// `dump` is from perfuse_dump_new() or perfuse_dump_open(), and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_poll(
    dump: *const perfuse_dump,
    num_records: *mut u64,
) -> perfuse_status {
    // SAFETY: as the documentation asks.
    run(|| unsafe { advance(dump, num_records, |dump| Ok(dump.poll()?)) })
}

/// Reads the rest when the writer has ended: after it, an incomplete or damaged record is not waited for any longer.
/// `num_records` receives the number of new records; it may be NULL.
///
/// # Safety
/// `dump` is from perfuse_dump_new() or perfuse_dump_open(), and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_finish(
    dump: *const perfuse_dump,
    num_records: *mut u64,
) -> perfuse_status {
    // SAFETY: as the documentation asks.
    run(|| unsafe { advance(dump, num_records, |dump| Ok(dump.finish()?)) })
}

/// Runs a step that reads.
///
/// # Safety
/// `dump` is NULL or a handle that is not freed; `num_records` is NULL or may be written.
unsafe fn advance(
    dump: *const perfuse_dump,
    num_records: *mut u64,
    step: impl FnOnce(&mut GrowingDump) -> Result<DumpProgress, Failure>,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let mut dump = unsafe { handle::get(dump) }?.0.write().unwrap_or_else(PoisonError::into_inner);
    let progress = step(&mut dump)?;
    if !num_records.is_null() {
        // SAFETY: not NULL, so it may be written.
        unsafe { handle::put(num_records, progress.num_records) }?;
    }
    Ok(())
}

/// Facts about the dump; PERFUSE_NOT_FOUND before its header is complete.
///
/// # Safety
/// `dump` is from perfuse_dump_new() or perfuse_dump_open(), and not freed; `facts` may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_get_facts(
    dump: *const perfuse_dump,
    facts: *mut perfuse_dump_facts,
) -> perfuse_status {
    run(|| {
        // SAFETY: as the documentation asks.
        let dump = unsafe { handle::get(dump) }?.0.read().unwrap_or_else(PoisonError::into_inner);
        let found = dump.facts().ok_or(Failure::NotFound)?;
        let found = perfuse_dump_facts {
            num_records: found.num_records,
            num_code: found.num_code,
            read_bytes: found.read_bytes,
            num_damaged: found.num_damaged,
            pid: found.pid,
            elf_machine: found.elf_machine,
            has_arch_timestamps: u32::from(found.has_arch_timestamps),
            is_closed: u32::from(found.is_closed),
        };
        // SAFETY: as the documentation asks.
        unsafe { handle::put(facts, found) }
    })
}

/// Finds what is at an address at a time: the code, its functions, lines and inlined calls. `at` is a time stamp of the dump's clock,
/// or PERFUSE_LATEST. Subtract 1 from a return address: it may belong to the next function. The process is that of the header, or
/// of the first code where the header's has none.
///
/// # Safety
/// `dump` is from perfuse_dump_new() or perfuse_dump_open(), `answer` from perfuse_answer_new(), and neither is freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_find(
    dump: *const perfuse_dump,
    at: u64,
    address: u64,
    answer: *mut perfuse_answer,
) -> perfuse_status {
    // SAFETY: as the documentation asks.
    run(|| unsafe { find(dump, answer, |dump| dump.find(at, address).map(Found::Location)) })
}

/// As perfuse_dump_find(), in a process of a dump with code of several, as of a program that forked: perfuse_code has the pid.
///
/// # Safety
/// As of perfuse_dump_find().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_find_of(
    dump: *const perfuse_dump,
    pid: u32,
    at: u64,
    address: u64,
    answer: *mut perfuse_answer,
) -> perfuse_status {
    // SAFETY: as the documentation asks.
    run(|| unsafe { find(dump, answer, |dump| dump.find_of(pid, at, address).map(Found::Location)) })
}

/// As perfuse_dump_find(), without frames: several times as fast.
///
/// # Safety
/// As of perfuse_dump_find().
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_find_code(
    dump: *const perfuse_dump,
    at: u64,
    address: u64,
    answer: *mut perfuse_answer,
) -> perfuse_status {
    // SAFETY: as the documentation asks.
    run(|| unsafe { find(dump, answer, |dump| dump.find_code(at, address).map(Found::Code)) })
}

/// What a look-up found: with frames or without.
enum Found<'a> {
    Location(CodeLocation<'a>),
    Code((Code<'a>, u64)),
}

/// Runs a look-up, and fills the answer.
///
/// # Safety
/// `dump` and `answer` are NULL, or handles that are not freed, of which no other thread uses the answer.
unsafe fn find(
    dump: *const perfuse_dump,
    answer: *mut perfuse_answer,
    look_up: impl FnOnce(&GrowingDump) -> Option<Found<'_>>,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let (dump, answer) = unsafe { (handle::get(dump)?, handle::get_mut(answer)?) };
    let dump = dump.0.read().unwrap_or_else(PoisonError::into_inner);
    answer.clear();
    match look_up(&dump).ok_or(Failure::NotFound)? {
        Found::Location(found) => answer.fill(&found.code, found.code_offset, &found.frames),
        Found::Code((code, code_offset)) => answer.fill(&code, code_offset, &[]),
    }
    Ok(())
}

/// PERFUSE_ERROR_CUT where the file became shorter or was written anew since it was opened, so that what was read of it may be
/// wrong.
///
/// # Safety
/// `dump` is from perfuse_dump_new() or perfuse_dump_open(), and not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_is_whole(dump: *const perfuse_dump) -> perfuse_status {
    run(|| {
        // SAFETY: as the documentation asks.
        let dump = unsafe { handle::get(dump) }?.0.read().unwrap_or_else(PoisonError::into_inner);
        if dump.is_cut() { Err(Error::Cut.into()) } else { Ok(()) }
    })
}

/// Closes a dump; NULL is ignored.
///
/// # Safety
/// `dump` is NULL, or from perfuse_dump_new() or perfuse_dump_open(), not freed, and not used by another thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn perfuse_dump_free(dump: *mut perfuse_dump) {
    // SAFETY: as the documentation asks.
    unsafe { handle::free(dump) };
}
