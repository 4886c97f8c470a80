//! The handler of SIGBUS, and the ranges of memory that it knows.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Ranges in one block of the list.
const BLOCK: usize = 64;

/// A range of memory that a file is mapped at. The handler reads it without a lock.
#[derive(Debug)]
struct Mapped {
    /// Address of the first byte; 0 where the place is free.
    start: AtomicUsize,
    end: AtomicUsize,
    is_cut: AtomicBool,
}

impl Mapped {
    const fn free() -> Self {
        Self { start: AtomicUsize::new(0), end: AtomicUsize::new(0), is_cut: AtomicBool::new(false) }
    }
}

/// Places for ranges, and further blocks. Blocks are never freed: the handler may read them at any time.
struct Block {
    places: [Mapped; BLOCK],
    next: AtomicPtr<Block>,
}

impl Block {
    const fn empty() -> Self {
        Self { places: [const { Mapped::free() }; BLOCK], next: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The block that follows.
    fn next(&self) -> Option<&'static Self> {
        // SAFETY: null, or from `Box::into_raw` in `Watch::new`, and never freed.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

static MAPPED: Block = Block::empty();

/// Every place of the list.
fn places() -> impl Iterator<Item = &'static Mapped> {
    std::iter::successors(Some(&MAPPED), |block| block.next()).flat_map(|block| &block.places)
}

/// Held while places are taken and handlers are installed; the handler itself takes no lock.
static CHANGES: Mutex<()> = Mutex::new(());

/// A range of memory that the handler knows until this is dropped.
#[derive(Debug)]
pub struct Watch(&'static Mapped);

impl Watch {
    /// Watches a mapping of a file.
    pub fn new(start: usize, len: usize) -> Self {
        let _changes = CHANGES.lock().unwrap_or_else(PoisonError::into_inner);
        install();
        let free = |place: &&Mapped| place.start.load(Ordering::Relaxed) == 0;
        let place = places().find(free).unwrap_or_else(|| {
            let last = std::iter::successors(Some(&MAPPED), |block| block.next()).last().unwrap_or(&MAPPED);
            let block: &'static Block = Box::leak(Box::new(Block::empty()));
            last.next.store(ptr::from_ref(block).cast_mut(), Ordering::Release);
            &block.places[0]
        });
        place.is_cut.store(false, Ordering::Relaxed);
        place.end.store(start.saturating_add(len), Ordering::Release);
        place.start.store(start, Ordering::Release);
        Self(place)
    }

    /// Whether a page of the range was gone when it was read, or [`note_cut`](Self::note_cut) was called.
    pub fn is_cut(&self) -> bool {
        self.0.is_cut.load(Ordering::Acquire)
    }

    /// Remembers that the file became shorter.
    pub fn note_cut(&self) {
        self.0.is_cut.store(true, Ordering::Release);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.start.store(0, Ordering::Release);
    }
}

/// Handler that was installed before ours.
struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: written under `CHANGES` while our handler is not installed, and only read by the handler.
unsafe impl Sync for Previous {}

/// One for each time that our handler is installed: a program may put its own in front of it once or twice, such as that of
/// Python's faulthandler.
static PREVIOUS: [Previous; 4] = [const { Previous(UnsafeCell::new(MaybeUninit::uninit())) }; 4];

/// How many of [`PREVIOUS`] are filled.
static INSTALLED: AtomicUsize = AtomicUsize::new(0);

/// Whether a signal went to the previous handler already. That handler may raise it again, to end the process.
static PASSED_ON: AtomicBool = AtomicBool::new(false);

/// What `si_errno`, which has no use for this signal, is set to when a signal goes to the first of [`PREVIOUS`]; one more for the
/// second. A handler that was put in front of ours may call ours for the same signal.
const PASSED_TO_FIRST: i32 = 0x7065_7266;

/// Installs the handler where it is not in force. A failure leaves the signal as it was.
fn install() {
    // SAFETY: `sigaction` fills what it is given; a zeroed structure is a valid one, and the handler has the signature that
    // SA_SIGINFO asks for.
    unsafe {
        let mut current = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        if libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut current) != 0 {
            return;
        }
        let ours = handle as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
        let installed = INSTALLED.load(Ordering::Acquire);
        let Some(previous) = PREVIOUS.get(installed) else { return };
        if current.sa_sigaction == ours {
            return;
        }
        (*previous.0.get()).write(current);
        INSTALLED.store(installed.wrapping_add(1), Ordering::Release);
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = ours;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
    }
}

/// Replaces the pages from a fault to the end of its mapping by zeros, so that the read that failed continues; a signal from
/// other memory is the previous handler's.
extern "C" fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure to a handler with SA_SIGINFO. What follows is safe in a handler: atomic
    // loads and stores, `mmap`, `sigaction` and `raise`.
    unsafe {
        if (*info).si_code == libc::BUS_ADRERR && replace((*info).si_addr() as usize) {
            return;
        }
        pass_on(signal, info, context);
    }
}

/// Replaces the pages from an address to the end of the mapping that contains it; false where none does.
///
/// # Safety
/// A read at that address failed, so that nothing can be read there now.
unsafe fn replace(address: usize) -> bool {
    let contains = |place: &&Mapped| {
        let start = place.start.load(Ordering::Acquire);
        start != 0 && start <= address && address < place.end.load(Ordering::Acquire)
    };
    let Some(place) = places().find(contains) else { return false };
    // SAFETY: `sysconf` has no preconditions.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
    let first = address & !page.wrapping_sub(1);
    let len = place.end.load(Ordering::Acquire).wrapping_sub(first);
    place.is_cut.store(true, Ordering::Release);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: the range belongs to a mapping that its owner keeps until the watch ends, and has no content any more.
    let mapped = unsafe { libc::mmap(first as *mut libc::c_void, len, libc::PROT_READ, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

/// Calls the handler that was there before ours, for each fault; where there is none, or a signal was raised after one was passed
/// on, the process ends.
///
/// # Safety
/// Only in the handler, with its own arguments.
unsafe fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid structure.
    let (code, marked) = unsafe { ((*info).si_code, (*info).si_errno.wrapping_sub(PASSED_TO_FIRST)) };
    // The one that is called next: before the one that it was passed to already, or the newest.
    let installed = INSTALLED.load(Ordering::Acquire);
    let newer = usize::try_from(marked).ok().filter(|newer| *newer < installed).unwrap_or(installed);
    let next = newer.checked_sub(1);
    // Codes above 0 are the kernel's: a fault, which previous handlers may recover from any number of times.
    let was_passed_on = PASSED_ON.swap(true, Ordering::AcqRel);
    if let Some(next) = next
        && let Some(previous) = PREVIOUS.get(next)
        && (code > 0 || newer < installed || !was_passed_on)
    {
        // SAFETY: as above.
        unsafe { (*info).si_errno = PASSED_TO_FIRST.wrapping_add(i32::try_from(next).unwrap_or(0)) };
        // SAFETY: filled before `INSTALLED` counted it.
        let previous = unsafe { (*previous.0.get()).assume_init() };
        let handler = previous.sa_sigaction;
        if handler == libc::SIG_IGN {
            return;
        }
        if handler != libc::SIG_DFL && previous.sa_flags & libc::SA_SIGINFO != 0 {
            // SAFETY: SA_SIGINFO says that the handler has this signature.
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
            return;
        }
        if handler != libc::SIG_DFL {
            // SAFETY: without SA_SIGINFO a handler takes the signal alone.
            let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
            handler(signal);
            return;
        }
    }
    // SAFETY: a zeroed structure asks for the default action, which ends the process when the signal is delivered.
    unsafe {
        let action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        libc::sigaction(signal, &raw const action, ptr::null_mut());
        libc::raise(signal);
    }
}
