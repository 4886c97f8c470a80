//! Results computed in advance on all processors, returned in order.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::{process, thread};

use super::{num_threads, spawn};

/// Number of results computed in advance per processor.
const RESULTS_PER_THREAD: usize = 2;

/// Computes the result of a job.
type JobFn<J, T> = Arc<dyn Fn(J) -> T + Send + Sync>;

/// Iterator over the results of jobs, in the order of the jobs.
///
/// A job must not need a value that is computed in parallel when it is first needed: the thread that computes it takes up another
/// job while it waits for its parts, and that job would wait for the value.
pub struct JobResults<J, T> {
    run: JobFn<J, T>,
    jobs: VecDeque<J>,
    /// Jobs whose results are being computed; a panic of a job is passed on.
    pending: VecDeque<(J, Receiver<thread::Result<T>>)>,
    /// The process whose threads compute them.
    process: u32,
}

impl<J: Clone + Send + 'static, T: Send + 'static> JobResults<J, T> {
    /// Nothing runs before the first result is taken.
    pub fn new(jobs: VecDeque<J>, run: impl Fn(J) -> T + Send + Sync + 'static) -> Self {
        Self { run: Arc::new(run), jobs, pending: VecDeque::new(), process: process::id() }
    }

    /// Starts jobs until as many as allowed are pending.
    fn fill(&mut self) {
        if self.process != process::id() {
            // A forked process has none of these threads.
            self.pending.drain(..).rev().for_each(|(job, _)| self.jobs.push_front(job));
            self.process = process::id();
        }
        let max_pending = num_threads().saturating_mul(RESULTS_PER_THREAD);
        while self.pending.len() < max_pending
            && let Some(job) = self.jobs.pop_front()
        {
            let (sender, result) = channel();
            let run = Arc::clone(&self.run);
            let own = job.clone();
            spawn(move || {
                let result = panic::catch_unwind(AssertUnwindSafe(|| run(own)));
                // What the jobs share, such as an open file, is the consumer's alone once it has the last result.
                drop(run);
                // Fails where the iterator was dropped, and the result is not needed.
                let _ = sender.send(result);
            });
            self.pending.push_back((job, result));
        }
    }
}

impl<J: Clone + Send + 'static, T: Send + 'static> Iterator for JobResults<J, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.fill();
        let (_, result) = self.pending.pop_front()?;
        self.fill();
        // A thread of the pool works on other jobs while it waits.
        let result = loop {
            match result.try_recv() {
                Ok(result) => break Ok(result),
                Err(_) if matches!(rayon::yield_now(), Some(rayon::Yield::Executed)) => {}
                Err(_) => break result.recv(),
            }
        };
        match result.ok()? {
            Ok(result) => Some(result),
            Err(panicked) => panic::resume_unwind(panicked),
        }
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::super::install;
    use super::JobResults;

    #[test]
    fn results_come_in_order() {
        let squares = || JobResults::new((0..100u64).collect(), |number| number * number);
        let expected: Vec<u64> = (0..100).map(|number| number * number).collect();
        assert_eq!(squares().collect::<Vec<_>>(), expected);
        // Inside the pool, with as many iterators as threads, and more.
        let all: Vec<_> = install(|| (0..8).into_par_iter().map(|_| squares().collect::<Vec<_>>()).collect());
        assert!(all.iter().all(|found| *found == expected));
    }

    #[test]
    #[should_panic = "seven"]
    fn a_panic_is_passed_on() {
        JobResults::new((0..10).collect(), |number| assert!(number != 7, "seven")).for_each(drop);
    }
}
