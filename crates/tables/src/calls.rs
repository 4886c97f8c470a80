//! Rows of table `call_events` on their way to who adds calls up: there a format may give what is asked and nothing else, in the
//! shape that is read fastest.

use arrow_array::RecordBatch;

use crate::CallEvent;

/// A row of a [`CallRun`].
#[derive(Clone, Copy, Debug)]
pub struct CallRow {
    /// Time on the profile's clock.
    pub ts_ns: i64,
    /// Offset of its record.
    pub record_offset: u64,
    /// Function.
    pub function_id: u32,
    /// What it tells; no argument.
    pub kind: CallEvent,
}

/// Rows of one thread that follow each other, on no known processor.
#[derive(Clone, Debug)]
pub struct CallRun {
    /// Thread.
    pub thread_id: u32,
    /// File they are from.
    pub source_id: u32,
    /// In the order of the file.
    pub rows: Vec<CallRow>,
}

/// Rows of table `call_events`.
#[derive(Clone, Debug)]
pub enum CallRows {
    /// Of any threads, with all columns.
    Batch(RecordBatch),
    /// Of one thread.
    Run(CallRun),
}

impl From<RecordBatch> for CallRows {
    fn from(batch: RecordBatch) -> Self {
        Self::Batch(batch)
    }
}

impl From<CallRun> for CallRows {
    fn from(run: CallRun) -> Self {
        Self::Run(run)
    }
}
