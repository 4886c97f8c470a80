//! The threads that parallel work runs on, and threads in the background.
//!
//! Threads do not survive `fork`: rayon's global pool would never answer in a forked process. The pool here belongs to a
//! process; a forked one makes its own when it first needs it. Parallel iterators run inside [`install`].

mod call_threads;
mod job_results;

use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use call_threads::run_beside;
pub use job_results::JobResults;
use perfuse_stopping::{Call, StopReason, background_call, stop_background};
pub use perfuse_stopping::{checkpoint, in_call, part};
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool of one process.
struct Pool {
    process: u32,
    /// `None` where no thread could be started: work runs in the calling thread.
    threads: Option<ThreadPool>,
}

/// The pool that was made last. Pools are never freed: another thread may use one, and that of a parent process has no
/// threads that could end it.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(ptr::null_mut());

/// The pool of this process.
fn pool() -> Option<&'static ThreadPool> {
    let process = process::id();
    let mut known = POOL.load(Ordering::Acquire);
    loop {
        // SAFETY: the pointer is null or comes from `Box::into_raw` below, and is never freed.
        match unsafe { known.as_ref() } {
            Some(pool) if pool.process == process => return pool.threads.as_ref(),
            _ => {}
        }
        let name = |index| format!("perfuse-{index}");
        let threads = ThreadPoolBuilder::new().thread_name(name).build().ok();
        let made = Box::into_raw(Box::new(Pool { process, threads }));
        match POOL.compare_exchange(known, made, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => known = made,
            Err(other) => {
                // SAFETY: another thread was faster, so nobody else has seen this one.
                drop(unsafe { Box::from_raw(made) });
                known = other;
            }
        }
    }
}

/// Whether the calling thread belongs to a pool.
fn is_worker() -> bool {
    rayon::current_thread_index().is_some()
}

/// Longest time between two looks at a call whose caller waits.
const WATCH_INTERVAL: Duration = Duration::from_millis(20);

/// Runs the work of a call in another thread, while the calling thread looks now and then whether to stop it.
///
/// The work may wait for results that other threads compute, in the background too: these are computed again where
/// they are needed.
///
/// # Errors
/// Why it was stopped.
pub fn run_watched<R: Send>(
    call: &Call,
    work: impl FnOnce() -> R + Send,
    mut watch: impl FnMut() -> Option<StopReason>,
) -> Result<R, StopReason> {
    let mut work = Some(work);
    let mut ended = None;
    let job = || ended = work.take().map(|work| catch_unwind(AssertUnwindSafe(|| call.run(work))));
    run_beside(job, WATCH_INTERVAL, || {
        if let Some(reason) = watch() {
            call.stop(reason);
            stop_background();
        }
    });
    match ended {
        Some(ended) => ended.unwrap_or_else(|panic| resume_unwind(panic)),
        // No thread could be started.
        None => work.map_or(Err(StopReason::Interrupted), |work| call.run(work)),
    }
}

/// Items that take less than this are made several at a time: handing one from thread to thread takes as long.
const SHORT: Duration = Duration::from_millis(1);

/// Most items that are made at a time.
const MOST_AT_A_TIME: usize = 8;

/// The next item, and those after it that take little time.
pub fn next_short<T>(items: &mut impl Iterator<Item = T>) -> Vec<T> {
    let started = Instant::now();
    let mut made = Vec::with_capacity(1);
    for item in items {
        made.push(item);
        if made.len() == MOST_AT_A_TIME || started.elapsed() >= SHORT {
            break;
        }
    }
    made
}

/// Runs work whose parallel iterators use the pool of this process.
///
/// It must not wait for other work of the pool, such as a value that another thread computes in parallel.
pub fn install<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    match pool() {
        _ if is_worker() => work(),
        Some(pool) => pool.install(part(work)),
        None => {
            become_pool();
            work()
        }
    }
}

/// Makes the calling thread a pool of its own. Without threads, parallel iterators outside of a pool panic.
fn become_pool() {
    let alone = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
    let _never_freed = ManuallyDrop::new(alone);
}

/// Starts a job on the pool of this process; it runs at once where there is none.
pub fn spawn(job: impl FnOnce() + Send + 'static) {
    let job = part(job);
    match pool() {
        None => job(),
        Some(_) if is_worker() => rayon::spawn(job),
        Some(pool) => pool.spawn(job),
    }
}

/// Number of threads that work in parallel.
#[must_use]
pub fn num_threads() -> usize {
    if is_worker() { rayon::current_num_threads() } else { pool().map_or(1, ThreadPool::current_num_threads) }
}

/// Number of threads of [`in_background`] that have not ended.
static RUNNING: Mutex<usize> = Mutex::new(0);

/// Signals that one of them has ended.
static ENDED: Condvar = Condvar::new();

/// Counts a thread while it runs, also if it panics.
struct Running;

impl Running {
    fn start() -> Self {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        *running = running.saturating_add(1);
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        *running = running.saturating_sub(1);
        ENDED.notify_all();
    }
}

/// Starts work in a thread of its own, which ends by itself; [`settle`] waits for it.
pub fn in_background<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    let running = Running::start();
    let call = background_call();
    thread::spawn(move || {
        let _running = running;
        call.enter(work)
    })
}

/// Waits until no thread of [`in_background`] runs: before a fork, so that the child finds no value half computed.
pub fn settle() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    drop(ENDED.wait_while(running, |running| *running > 0).unwrap_or_else(PoisonError::into_inner));
}

/// The result of a thread; its panic is raised again in the caller.
pub fn join<R>(thread: JoinHandle<R>) -> R {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use rayon::prelude::*;

    use super::*;

    #[test]
    fn long_items_are_made_one_at_a_time() {
        let mut items = (0..3).inspect(|_| thread::sleep(SHORT));
        assert_eq!(next_short(&mut items), [0]);
        assert_eq!(next_short(&mut items), [1]);
        // Of short ones as many as are allowed, in order; none at the end.
        let mut items = 0..20;
        let all: Vec<_> =
            std::iter::from_fn(|| Some(next_short(&mut items)).filter(|made| !made.is_empty())).collect();
        assert!(all.iter().all(|made| made.len() <= MOST_AT_A_TIME));
        assert!(all.concat().into_iter().eq(0..20));
    }

    #[test]
    fn parallel_work_runs_on_the_pool_also_when_it_is_nested() {
        let sum = install(|| (0..1000u64).into_par_iter().map(|n| install(|| n)).sum::<u64>());
        assert_eq!(sum, 999 * 1000 / 2);
        assert_eq!(install(rayon::current_num_threads), num_threads());
    }

    #[test]
    fn work_in_another_pool_stays_there() {
        let four = ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        assert_eq!(four.install(|| install(num_threads)), 4);
    }

    #[test]
    fn a_thread_is_a_pool_where_none_can_be_started() {
        let sums = || {
            become_pool();
            let sum = || install(|| (0..1000u64).into_par_iter().sum::<u64>());
            (sum(), sum(), num_threads())
        };
        assert_eq!(thread::spawn(sums).join().unwrap(), (499_500, 499_500, 1));
    }

    #[test]
    fn a_watched_call_ends_when_its_caller_stops_it_also_in_parallel_work() {
        let endless = |_| -> u32 {
            loop {
                checkpoint();
            }
        };
        let call = Call::new();
        let work = || install(|| (0..4u32).into_par_iter().map(in_call(endless)).sum::<u32>());
        assert_eq!(run_watched(&call, work, || Some(StopReason::Interrupted)), Err(StopReason::Interrupted));
        assert_eq!(run_watched(&Call::new(), || 7, || None), Ok(7));
    }

    #[test]
    #[should_panic = "as expected"]
    fn a_panic_of_a_watched_call_is_passed_on() {
        let _: Result<(), _> = run_watched(&Call::new(), || panic!("as expected"), || None);
    }

    /// A call whose caller does not stop it.
    fn called<R: Send>(work: impl FnOnce() -> R + Send) -> R {
        run_watched(&Call::new(), work, || None).unwrap()
    }

    #[test]
    fn calls_may_be_nested_and_come_from_many_threads_at_a_time() {
        fn depth(levels: u32) -> u32 {
            if levels == 0 { 0 } else { called(|| depth(levels - 1) + 1) }
        }
        assert_eq!(depth(40), 40);
        let sums: Vec<u32> = thread::scope(|scope| {
            let call = |own: u32| (0..200).map(|n| called(|| n + own)).sum::<u32>();
            let threads: Vec<_> = (0..32).map(|own| scope.spawn(move || call(own))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!((0..).zip(sums).all(|(own, sum)| sum == 199 * 100 + 200 * own));
    }

    #[test]
    fn a_thread_serves_the_next_call_after_a_panic_and_after_a_stop() {
        for _ in 0..20 {
            let call = Call::new();
            let panicked = catch_unwind(|| called(|| panic!("of a test")));
            assert!(panicked.is_err());
            let endless = || -> () {
                loop {
                    checkpoint();
                }
            };
            let stopped = run_watched(&call, endless, || Some(StopReason::OutOfMemory));
            assert_eq!(stopped, Err(StopReason::OutOfMemory));
            assert_eq!(called(|| 7), 7);
        }
    }

    #[test]
    fn a_call_borrows_from_a_caller_whose_watch_panics() {
        let (mut number, done) = (0, AtomicBool::new(false));
        let call = Call::new();
        let ended = catch_unwind(AssertUnwindSafe(|| {
            let work = || {
                while call.stopped().is_none() {
                    thread::yield_now();
                }
                number = 7;
                done.store(true, Ordering::SeqCst);
            };
            run_watched(&Call::new(), work, || {
                call.stop(StopReason::Interrupted);
                panic!("of a watch")
            })
        }));
        // The work had ended when the panic came here.
        assert!(ended.is_err() && done.load(Ordering::SeqCst));
        assert_eq!(number, 7);
    }

    #[test]
    fn settling_waits_for_threads_in_the_background() {
        let done = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&done);
        let thread = in_background(move || {
            thread::sleep(Duration::from_millis(20));
            set.store(true, Ordering::SeqCst);
        });
        settle();
        assert!(done.load(Ordering::SeqCst));
        join(thread);
    }
}
