//! The threads in which calls run while their callers wait. A thread is kept for the next call: to start one costs more
//! than a short call does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Stack of such a thread: that of a process's first thread.
const STACK_BYTES: usize = 8 << 20;

/// Number of threads that are kept; those of more calls at a time end with their call.
const MOST_IDLE: usize = 8;

/// Work that borrows from the caller that waits for it.
type Job<'a> = Box<dyn FnOnce() + Send + 'a>;

/// What a thread has to do.
enum Task {
    /// Nothing: the last job is done and dropped.
    None,
    Job(Job<'static>),
    Running,
    /// To end.
    End,
}

/// A thread that runs one job at a time.
struct CallThread {
    task: Mutex<Task>,
    /// The thread waits here for a task, or its caller for the end of one; never both.
    changed: Condvar,
}

impl CallThread {
    /// Starts a thread; `None` where the system has none.
    fn start() -> Option<Arc<Self>> {
        let thread = Arc::new(Self { task: Mutex::new(Task::None), changed: Condvar::new() });
        let own = Arc::clone(&thread);
        let named = thread::Builder::new().name("perfuse-call".to_owned()).stack_size(STACK_BYTES);
        named.spawn(move || own.serve()).ok().map(|_| thread)
    }

    fn task(&self) -> MutexGuard<'_, Task> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, task: Task) {
        *self.task() = task;
        self.changed.notify_one();
    }

    /// Runs jobs until the end.
    fn serve(&self) {
        let mut task = self.task();
        loop {
            match std::mem::replace(&mut *task, Task::Running) {
                Task::Job(job) => {
                    drop(task);
                    // A job that panics has no result; its caller sees that.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                    task = self.task();
                    *task = Task::None;
                    self.changed.notify_one();
                }
                Task::End => return,
                none => {
                    *task = none;
                    task = self.changed.wait(task).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Waits until the job is done, at most for this time; whether it is.
    fn wait(&self, time: Duration) -> bool {
        let is_running = |task: &mut Task| !matches!(task, Task::None);
        let waited = self.changed.wait_timeout_while(self.task(), time, is_running);
        matches!(*waited.unwrap_or_else(PoisonError::into_inner).0, Task::None)
    }
}

/// The idle threads of one process.
struct IdleThreads {
    process: u32,
    threads: Mutex<Vec<Arc<CallThread>>>,
}

/// Those that were made last. They are never freed: threads of a parent process do not exist in a forked one, and its lock
/// may be held there for ever.
static IDLE: AtomicPtr<IdleThreads> = AtomicPtr::new(ptr::null_mut());

/// The idle threads of this process.
fn idle() -> MutexGuard<'static, Vec<Arc<CallThread>>> {
    let process = process::id();
    let mut known = IDLE.load(Ordering::Acquire);
    loop {
        // SAFETY: the pointer is null or comes from `Box::into_raw` below, and is never freed.
        match unsafe { known.as_ref() } {
            Some(idle) if idle.process == process => {
                return idle.threads.lock().unwrap_or_else(PoisonError::into_inner);
            }
            _ => {}
        }
        let made = Box::into_raw(Box::new(IdleThreads { process, threads: Mutex::default() }));
        match IDLE.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => known = made,
            Err(other) => {
                // SAFETY: another thread was faster, so nobody else has seen this one.
                drop(unsafe { Box::from_raw(made) });
                known = other;
            }
        }
    }
}

/// A job that runs in a thread of its own; dropping it waits for its end.
struct Started(Arc<CallThread>);

impl Drop for Started {
    fn drop(&mut self) {
        while !self.0.wait(Duration::from_secs(3600)) {}
        let mut idle = idle();
        if idle.len() < MOST_IDLE {
            idle.push(Arc::clone(&self.0));
        } else {
            self.0.set(Task::End);
        }
    }
}

/// Runs a job in a thread of its own and calls `watch` in this one each `interval`, until the job is done; false, without
/// having run it, where no thread can be started. Where `watch` panics,
/// the end of the job is awaited all the same.
pub fn run_beside<'a>(job: impl FnOnce() + Send + 'a, interval: Duration, mut watch: impl FnMut()) -> bool {
    let kept = idle().pop();
    let Some(thread) = kept.or_else(CallThread::start) else { return false };
    let job: Job<'a> = Box::new(job);
    // SAFETY: only the lifetime changes. `Started` is dropped before this function returns or unwinds, and waits until the
    // thread has run the job, by which the box and what it borrows are dropped.
    let job = unsafe { std::mem::transmute::<Job<'a>, Job<'static>>(job) };
    thread.set(Task::Job(job));
    let started = Started(thread);
    while !started.0.wait(interval) {
        watch();
    }
    true
}
