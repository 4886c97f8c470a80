//! Work done ahead of whoever takes its results, on all processors, and taken in order.

use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Results made ahead, for each processor.
const AHEAD: usize = 2;

/// What makes a result.
type Make<J, T> = Arc<dyn Fn(J) -> T + Send + Sync>;

/// The results of jobs, in their order.
pub struct Ahead<J, T> {
    make: Make<J, T>,
    todo: VecDeque<J>,
    /// Results that are being made, or why they were not.
    ahead: VecDeque<Receiver<thread::Result<T>>>,
}

impl<J: Send + 'static, T: Send + 'static> Ahead<J, T> {
    /// Begins with the first.
    pub fn new(todo: VecDeque<J>, make: impl Fn(J) -> T + Send + Sync + 'static) -> Self {
        let mut results = Self { make: Arc::new(make), todo, ahead: VecDeque::new() };
        results.begin();
        results
    }

    /// Has as many results made as may be ahead.
    fn begin(&mut self) {
        let most = rayon::current_num_threads().saturating_mul(AHEAD);
        while self.ahead.len() < most
            && let Some(job) = self.todo.pop_front()
        {
            let (give, made) = channel();
            let make = Arc::clone(&self.make);
            rayon::spawn(move || {
                let result = panic::catch_unwind(AssertUnwindSafe(|| make(job)));
                // Nobody waits for it where the rest was dropped.
                let _ = give.send(result);
            });
            self.ahead.push_back(made);
        }
    }
}

impl<J: Send + 'static, T: Send + 'static> Iterator for Ahead<J, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        let made = self.ahead.pop_front()?;
        self.begin();
        // One of the threads that do the work goes on with it while it waits for a result.
        let made = loop {
            match made.try_recv() {
                Ok(result) => break Ok(result),
                Err(_) if matches!(rayon::yield_now(), Some(rayon::Yield::Executed)) => {}
                Err(_) => break made.recv(),
            }
        };
        match made.ok()? {
            Ok(result) => Some(result),
            Err(panicked) => panic::resume_unwind(panicked),
        }
    }
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::Ahead;

    #[test]
    fn results_come_in_order() {
        let squares = || Ahead::new((0..100u64).collect(), |number| number * number);
        let expected: Vec<u64> = (0..100).map(|number| number * number).collect();
        assert_eq!(squares().collect::<Vec<_>>(), expected);
        // In the pool itself, by as many as there are threads and more.
        let all: Vec<_> = (0..8).into_par_iter().map(|_| squares().collect::<Vec<_>>()).collect();
        assert!(all.iter().all(|found| *found == expected));
    }

    #[test]
    #[should_panic = "seven"]
    fn a_panic_is_passed_on() {
        Ahead::new((0..10).collect(), |number| assert!(number != 7, "seven")).for_each(drop);
    }
}
