//! The allocator of the core, and its behaviour when memory is exhausted.

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::time::Duration;

use mimalloc::MiMalloc;
use perfuse_stopping::memory;

/// mimalloc. Record batches are made in one thread and dropped in another: the system's allocator returns their pages each
/// time, and half of the time of a decode would be spent on getting them again.
/// `.cargo/config.toml` has its options.
///
/// Calls end before memory does (`perfuse_stopping::memory`). What fails nevertheless is tried again, while others end and with
/// memory that was set aside; Rust would abort the process at once.
pub struct Allocator;

/// Memory set aside where address space is limited, in bytes.
const RESERVE: Layout = Layout::new::<[u8; 48 << 20]>();

/// Address of that memory; null where there is none.
static RESERVED: AtomicPtr<u8> = AtomicPtr::new(null_mut());

/// Whether the process is a command, which ends with an error rather than by a signal.
static IS_COMMAND: AtomicBool = AtomicBool::new(false);

/// Address space is used up where less than this is left, in bytes: the C library reserves as much for the heap of one thread.
const USED_UP: u64 = 128 << 20;

/// How often an allocation is tried again, and after which time.
const TRIES: u32 = 50;
const WAIT: Duration = Duration::from_millis(10);

/// The exit code of a command that needs more memory than its limit.
const EXIT_CODE: i32 = 2;

const MESSAGE: &[u8] = b"perfuse: not enough memory: the system gives no more\n\
    \x20  hint: give it more (`ulimit -v`), or select less: --between, --thread, one section\n";

#[cold]
#[inline(never)]
fn again(allocate: impl Fn() -> *mut u8) -> *mut u8 {
    let reserved = RESERVED.swap(null_mut(), Ordering::AcqRel);
    if !reserved.is_null() {
        // SAFETY: `set_aside` got it for this layout, and `swap` gives it to one thread only.
        unsafe { MiMalloc.dealloc(reserved, RESERVE) };
    }
    for _ in 0..TRIES {
        let pointer = allocate();
        if !pointer.is_null() {
            return pointer;
        }
        std::thread::sleep(WAIT);
    }
    if IS_COMMAND.load(Ordering::Relaxed) {
        exit_with_error();
    }
    null_mut()
}

/// Ends the process with the error of exhausted memory. Allocates nothing.
fn exit_with_error() -> ! {
    // SAFETY: the message is valid for its length; `_exit` does not return.
    unsafe {
        libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(EXIT_CODE);
    }
}

/// Handler of SIGABRT: where address space is used up, the process ends with the error of exhausted memory; else the signal ends it.
extern "C" fn aborted(signal: libc::c_int) {
    if memory::addresses_left().is_some_and(|left| left < USED_UP) {
        exit_with_error();
    }
    // SAFETY: `abort` raises the signal again when the handler returns, as any sender's is raised here, with its default action.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

fn or_again(pointer: *mut u8, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    if pointer.is_null() { again(allocate) } else { pointer }
}

// SAFETY: each method passes its arguments to mimalloc, once or, after null, again; `again` does not unwind.
unsafe impl GlobalAlloc for Allocator {
    // SAFETY: the requirements are those of the trait.
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of the trait, which are those of mimalloc.
        or_again(unsafe { MiMalloc.alloc(layout) }, || unsafe { MiMalloc.alloc(layout) })
    }

    // SAFETY: the requirements are those of the trait.
    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the promises of the trait, which are those of mimalloc.
        or_again(unsafe { MiMalloc.alloc_zeroed(layout) }, || unsafe { MiMalloc.alloc_zeroed(layout) })
    }

    // SAFETY: the requirements are those of the trait.
    #[inline]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the promises of the trait, which are those of mimalloc.
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }

    // SAFETY: the requirements are those of the trait.
    #[inline]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`; where it returns null, the old block is as it was.
        or_again(unsafe { MiMalloc.realloc(pointer, layout, new_size) }, || unsafe {
            MiMalloc.realloc(pointer, layout, new_size)
        })
    }
}

/// Sets memory aside where address space is limited.
pub fn set_aside() {
    if memory::address_limit().is_some() && RESERVED.load(Ordering::Relaxed).is_null() {
        // SAFETY: the layout has a size.
        RESERVED.store(unsafe { MiMalloc.alloc(RESERVE) }, Ordering::Release);
    }
}

/// Makes the process end with an error when memory is exhausted.
pub fn exit_when_out_of_memory() {
    IS_COMMAND.store(true, Ordering::Relaxed);
    if memory::address_limit().is_some() {
        // The C library and the libraries of C++ abort where they get no memory.
        // SAFETY: the handler calls only what may be called in one, and stays as long as the process.
        unsafe { libc::signal(libc::SIGABRT, aborted as *const () as libc::sighandler_t) };
    }
}
