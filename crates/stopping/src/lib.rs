//! Calls that end early: when they are interrupted, or when memory is at its limit.
//!
//! A [`Call`] is the work that one caller waits for, in all of its threads. The caller stops it; the work reaches a
//! [`checkpoint`] soon afterwards and unwinds from there, without a message. Loops over records, rows, objects and bytes
//! have one.

pub mod memory;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Why a call ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// Its caller does not wait for it any longer.
    Interrupted,
    /// The process uses more memory than its limit.
    OutOfMemory,
}

/// A value in a cache line of its own.
#[repr(align(128))]
struct Alone<T>(T);

/// Number of calls that were stopped and have not ended. Every loop reads it: nothing that changes often may be beside it.
static NUM_STOPPED: Alone<AtomicUsize> = Alone(AtomicUsize::new(0));

thread_local! {
    /// The call that the thread works for.
    static CURRENT: RefCell<Option<Call>> = const { RefCell::new(None) };

    /// Whether a panic of the thread is an error of the library that it is in.
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

const RUNNING: u8 = 0;
const INTERRUPTED: u8 = 1;
const OUT_OF_MEMORY: u8 = 2;

#[derive(Debug)]
struct CallState {
    /// `RUNNING`, or why the call was stopped.
    state: AtomicU8,
    /// The calls that this one is a part of.
    parents: [Option<Call>; 2],
}

impl Drop for CallState {
    fn drop(&mut self) {
        if self.state.load(Ordering::Relaxed) != RUNNING {
            NUM_STOPPED.0.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Work that one caller waits for, in all of its threads.
#[derive(Clone, Debug)]
pub struct Call(Arc<CallState>);

impl Default for Call {
    fn default() -> Self {
        Self::new()
    }
}

impl Call {
    /// A call of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::part_of([None, None])
    }

    /// A part of the call that this thread works for: stopped with it, or alone.
    #[must_use]
    pub fn part_of_current() -> Self {
        Self::part_of([CURRENT.with_borrow(Clone::clone), None])
    }

    /// A part of this call and of the one that this thread works for: a stream is stopped with that of its reader, too.
    #[must_use]
    pub fn within_current(&self) -> Self {
        Self::part_of([Some(self.clone()), CURRENT.with_borrow(Clone::clone)])
    }

    fn part_of(parents: [Option<Self>; 2]) -> Self {
        Self(Arc::new(CallState { state: AtomicU8::new(RUNNING), parents }))
    }

    /// Lets the work of the call end at its next checkpoint.
    pub fn stop(&self, reason: StopReason) {
        let state = match reason {
            StopReason::Interrupted => INTERRUPTED,
            StopReason::OutOfMemory => OUT_OF_MEMORY,
        };
        let was_running = self.0.state.compare_exchange(RUNNING, state, Ordering::Relaxed, Ordering::Relaxed);
        if was_running.is_ok() {
            NUM_STOPPED.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Why the call was stopped; `None` while it runs.
    #[must_use]
    pub fn stopped(&self) -> Option<StopReason> {
        match self.0.state.load(Ordering::Relaxed) {
            INTERRUPTED => Some(StopReason::Interrupted),
            OUT_OF_MEMORY => Some(StopReason::OutOfMemory),
            _ => self.0.parents.iter().flatten().find_map(Self::stopped),
        }
    }

    /// Runs a part of the call's work in this thread, which unwinds where the call is stopped.
    pub fn enter<R>(&self, work: impl FnOnce() -> R) -> R {
        enter(Some(self.clone()), work)
    }

    /// Runs work of the call in this thread.
    ///
    /// # Errors
    /// Why it was stopped. Panics of the work continue.
    pub fn run<R>(&self, work: impl FnOnce() -> R) -> Result<R, StopReason> {
        catch_unwind(AssertUnwindSafe(|| self.enter(work))).map_err(|payload| {
            match payload.downcast::<StopReason>() {
                Ok(reason) => *reason,
                Err(panic) => resume_unwind(panic),
            }
        })
    }
}

fn enter<R>(call: Option<Call>, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<Call>);
    impl Drop for Restore {
        fn drop(&mut self) {
            let before = self.0.take();
            CURRENT.with_borrow_mut(|current| *current = before);
        }
    }
    let _restore = Restore(CURRENT.replace(call));
    work()
}

/// Runs code of a library that panics where its input is damaged.
///
/// # Errors
/// The message of its panic. Where the call of this thread is stopped, that continues to unwind.
pub fn contain<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    let before = IS_CONTAINED.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    IS_CONTAINED.set(before);
    result.map_err(|payload| {
        if payload.is::<StopReason>() {
            resume_unwind(payload);
        }
        let text = payload.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("unknown").to_owned()
    })
}

/// Whether a panic of this thread would be an error that [`contain`] returns.
#[must_use]
pub fn is_contained() -> bool {
    IS_CONTAINED.get()
}

/// A function that works for the call of the thread that asks for it, in whatever thread it is called.
pub fn in_call<A, R>(work: impl Fn(A) -> R) -> impl Fn(A) -> R {
    let call = CURRENT.with_borrow(Clone::clone);
    move |item| match &call {
        Some(_) => enter(call.clone(), || work(item)),
        None => work(item),
    }
}

/// A job for another thread, which works for the call of this one.
pub fn part<R>(job: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let call = CURRENT.with_borrow(Clone::clone);
    move || enter(call, job)
}

/// Unwinds where the call that this thread works for was stopped. Costs as little as reading a number.
#[inline(always)]
pub fn checkpoint() {
    if NUM_STOPPED.0.load(Ordering::Relaxed) != 0 {
        unwind_if_stopped();
    }
}

/// Loops whose steps are shorter than a checkpoint have one per this number of steps.
const STEPS: usize = 4096;

/// A [`checkpoint`] once in 4,096 steps, which the caller counts.
#[inline(always)]
pub fn checkpoint_at(step: usize) {
    if step.is_multiple_of(STEPS) {
        checkpoint();
    }
}

#[cold]
#[inline(never)]
fn unwind_if_stopped() {
    // A destructor that unwinds while its thread does ends the process.
    if std::thread::panicking() {
        return;
    }
    let reason = CURRENT.with_borrow(|current| current.as_ref().and_then(Call::stopped));
    if let Some(reason) = reason {
        resume_unwind(Box::new(reason));
    }
}

/// The items of an iterator, with a checkpoint before each.
pub fn checked<I: IntoIterator>(items: I) -> impl Iterator<Item = I::Item> {
    items.into_iter().inspect(|_| checkpoint())
}

/// Calls of threads in the background, whose results somebody may need later.
static IN_BACKGROUND: Mutex<Vec<Weak<CallState>>> = Mutex::new(Vec::new());

/// A call for work in the background.
#[must_use]
pub fn background_call() -> Call {
    let call = Call::new();
    let mut all = IN_BACKGROUND.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|call| call.strong_count() > 0);
    all.push(Arc::downgrade(&call.0));
    call
}

/// Stops the work in the background. A caller that needs a result of it computes that again.
pub fn stop_background() {
    let all = std::mem::take(&mut *IN_BACKGROUND.lock().unwrap_or_else(PoisonError::into_inner));
    for call in all.iter().filter_map(Weak::upgrade) {
        Call(call).stop(StopReason::Interrupted);
    }
}

#[cfg(test)]
mod tests;
