//! Python, while the core works without its lock.

use std::time::{Duration, Instant};

use perfuse_writers::Error;
use pyo3::prelude::*;

use crate::errors::table_error;

/// How long it is kept waiting for its signals.
const PATIENCE: Duration = Duration::from_millis(50);

/// A Python thread that waits for us: it wants its signals, and to be told how far we are.
pub struct Waiting {
    progress: Option<Py<PyAny>>,
    /// Events there are in all, where that is known.
    num_events: Option<u64>,
    last: Instant,
    raised: Option<PyErr>,
}

impl Waiting {
    /// Nothing is done yet.
    pub fn new(progress: Option<Py<PyAny>>, num_events: Option<u64>) -> Self {
        Self { progress, num_events, last: Instant::now(), raised: None }
    }

    /// Whether to go on, so many rows being done.
    pub fn go_on(&mut self, done: u64) -> bool {
        if self.last.elapsed() < PATIENCE {
            return true;
        }
        self.last = Instant::now();
        let Self { progress, num_events, raised, .. } = self;
        *raised = Python::attach(|py| {
            py.check_signals()?;
            if let Some(progress) = progress {
                let share = num_events.map_or(0.0, |all| done as f64 / all.max(1) as f64);
                let what = if num_events.is_some() { "writing" } else { "looking over" };
                progress.call1(py, (what, share.min(1.0)))?;
            }
            Ok(())
        })
        .err();
        raised.is_none()
    }

    /// What came of it, or what Python raised meanwhile.
    pub fn settle<T>(self, result: Result<T, Error>) -> PyResult<T> {
        match (self.raised, result) {
            (Some(raised), _) => Err(raised),
            (None, Ok(value)) => Ok(value),
            (None, Err(Error::Io(error))) => Err(error.into()),
            (None, Err(error)) => Err(table_error(error)),
        }
    }
}
