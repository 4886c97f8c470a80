//! Batches of a table that are made on demand, and why they may end early.

use std::error::Error;
use std::fmt;

use arrow_array::RecordBatch;
use perfuse_engine::heap;

use crate::inputs::Unreadable;

/// Batches of a table, made on demand.
pub type TableStream = Box<dyn Iterator<Item = Result<RecordBatch, StreamError>> + Send>;

/// Why the batches of a table ended early.
#[derive(Debug)]
pub enum StreamError {
    /// A heap snapshot cannot be analysed.
    Heap(heap::Error),
    /// A table of a saved profile cannot be read.
    Saved(Unreadable),
}

impl From<heap::Error> for StreamError {
    fn from(error: heap::Error) -> Self {
        Self::Heap(error)
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heap(error) => error.fmt(out),
            Self::Saved(error) => error.fmt(out),
        }
    }
}

impl Error for StreamError {}
