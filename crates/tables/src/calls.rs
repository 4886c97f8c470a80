//! Rows of table `call_events` in a compact form, with only the columns that summing calls needs.

use arrow_array::RecordBatch;

use crate::CallEvent;

/// A row of a [`CallRun`].
#[derive(Clone, Copy, Debug)]
pub struct CallRow {
    /// Time on the profile's clock, in nanoseconds.
    pub ts_ns: i64,
    /// Offset of its record.
    pub record_offset: u64,
    /// Function.
    pub function_id: u32,
    /// Kind; arguments do not occur.
    pub kind: CallEvent,
}

/// Consecutive rows of one thread, without processors.
#[derive(Clone, Debug)]
pub struct CallRun {
    /// Thread.
    pub thread_id: u32,
    /// Recording that contains them.
    pub source_id: u32,
    /// The rows, in file order.
    pub rows: Vec<CallRow>,
}

/// Rows of table `call_events`.
#[derive(Clone, Debug)]
pub enum CallRows {
    /// Rows of any threads, with all columns.
    Batch(RecordBatch),
    /// Rows of one thread.
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
