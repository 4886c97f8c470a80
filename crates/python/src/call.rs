//! Calls of the core that Python waits for: signals are handled meanwhile, and memory is compared with its limit.

use std::collections::VecDeque;
use std::iter::Fuse;
use std::sync::{Mutex, PoisonError};

use perfuse_stopping::memory::{self, MemoryWatch};
use perfuse_stopping::{Call, StopReason};
use perfuse_workers::{next_short, run_watched};
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;

use crate::errors::memory_error;

/// Runs work without the interpreter's lock.
///
/// It ends early with the exception that a handler of a signal raises, such as `KeyboardInterrupt`, and with
/// `perfuse.errors.OutOfMemory` where the process uses more memory than its limit.
pub fn call<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let (result, raised) = py.detach(|| watched(&Call::new(), work));
    result.map_err(|_| {
        drop(LAST_STOP.lock().unwrap_or_else(PoisonError::into_inner).take());
        raised.unwrap_or_else(|| memory_error(py))
    })
}

/// Runs work of a call in a thread of its own, while this one handles signals; returns what a handler raised, too.
fn watched<T: Send>(call: &Call, work: impl FnOnce() -> T + Send) -> (Result<T, StopReason>, Option<PyErr>) {
    let memory = MemoryWatch::new();
    let handles_signals = is_first_thread();
    let mut raised = None;
    let result = run_watched(call, work, || {
        if handles_signals && raised.is_none() {
            raised = attached(|py| py.check_signals()).err();
        }
        match &raised {
            Some(_) => Some(StopReason::Interrupted),
            None => memory.is_over().then_some(StopReason::OutOfMemory),
        }
    });
    // A stream that was pulled meanwhile may have made an error of it.
    (call.stopped().map_or(result, Err), raised)
}

/// Runs work with the interpreter's lock, in a thread that may have it or not.
///
/// `Python::attach` alone counts on the lock where a function of this module is on the stack. Between that function and a
/// stream it pulls there may be a library that released the lock without this module: `DuckDB` does so.
pub fn attached<R>(work: impl FnOnce(Python<'_>) -> R) -> R {
    struct Lock(pyo3::ffi::PyGILState_STATE);
    impl Drop for Lock {
        fn drop(&mut self) {
            // SAFETY: the state is that of the matching call below, in this thread.
            unsafe { pyo3::ffi::PyGILState_Release(self.0) }
        }
    }
    // SAFETY: the interpreter runs: this module is called by it. The lock may be taken already, any number of times.
    let _lock = Lock(unsafe { pyo3::ffi::PyGILState_Ensure() });
    Python::attach(work)
}

/// Whether this is the thread in which Python handles signals.
fn is_first_thread() -> bool {
    // SAFETY: the functions take nothing and cannot fail.
    cfg!(not(target_os = "linux")) || unsafe { libc::gettid() == libc::getpid() }
}

/// Why the last stream ended early, until [`take_stop`] returns it.
static LAST_STOP: Mutex<Option<PyErr>> = Mutex::new(None);

/// The items of a stream, which an Arrow library pulls in any thread: an error where it is stopped.
pub struct StoppableStream<I: Iterator> {
    items: Fuse<I>,
    /// Items that are made.
    ready: VecDeque<I::Item>,
    call: Call,
    memory: MemoryWatch,
}

impl<I: Iterator> StoppableStream<I> {
    /// Nothing runs before the first item is taken.
    pub fn new(items: I) -> Self {
        Self { items: items.fuse(), ready: VecDeque::new(), call: Call::new(), memory: MemoryWatch::new() }
    }
}

impl<T: Send, I: Iterator<Item = T> + Send> StoppableStream<I> {
    /// The next item, or why there is none.
    pub fn next(&mut self) -> Result<Option<T>, StopReason> {
        if self.ready.is_empty() {
            self.make()?;
        }
        Ok(self.ready.pop_front())
    }

    /// Makes the next items.
    fn make(&mut self) -> Result<(), StopReason> {
        let Self { items, ready, call, memory } = self;
        let call = call.within_current();
        let make = || ready.extend(next_short(items));
        let (result, raised) = if is_first_thread() { watched(&call, make) } else { (call.run(make), None) };
        if result.is_ok() && memory.is_over() {
            call.stop(StopReason::OutOfMemory);
        }
        let Some(reason) = result.as_ref().err().copied().or_else(|| call.stopped()) else { return result };
        let error = raised.or_else(|| (reason == StopReason::OutOfMemory).then(|| attached(memory_error)));
        if error.is_some() {
            *LAST_STOP.lock().unwrap_or_else(PoisonError::into_inner) = error;
        }
        Err(reason)
    }
}

/// The exception that stopped a stream; each is returned once. It reaches Python as one of the Arrow library that read it.
#[pyfunction]
pub fn take_stop(py: Python<'_>) -> Option<Py<PyBaseException>> {
    let stop = LAST_STOP.lock().unwrap_or_else(PoisonError::into_inner).take();
    stop.map(|error| error.into_value(py))
}

/// Limits the memory of this process; None for the default, a share of what the machine or the control group has.
#[pyfunction]
#[pyo3(signature = (limit=None))]
pub fn set_memory_limit(limit: Option<u64>) {
    memory::set_limit(limit);
}

/// The limit of this process's memory, in bytes.
#[pyfunction]
pub fn memory_limit() -> u64 {
    memory::limit()
}

/// Makes the process end with an error when memory is exhausted.
#[pyfunction]
pub fn exit_when_out_of_memory() {
    perfuse_allocator::exit_when_out_of_memory();
    memory::count_from_here();
}
