//! Rows of table `call_events` in a compact form, with only the columns that summing calls needs.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::CallEvent;

/// A row of a [`CallRun`], or two: an entry, and the exit of its call where that follows.
#[derive(Clone, Copy, Debug)]
pub struct CallRow {
    /// Time on the profile's clock, in nanoseconds.
    pub ts_ns: i64,
    /// Time of the exit that follows.
    pub exit_ns: i64,
    /// Offset of its record.
    pub record_offset: u64,
    /// Function.
    pub function_id: u32,
    /// Kind; arguments do not occur.
    pub kind: CallEvent,
    /// Offset of the record of the exit that follows, from `record_offset`; 0 if none does.
    pub exit_offset: u8,
}

/// The exit of a call.
#[derive(Clone, Copy, Debug)]
pub struct CallExit {
    /// Time on the profile's clock, in nanoseconds.
    pub ts_ns: i64,
    /// Offset of its record.
    pub record_offset: u64,
}

impl CallRow {
    /// The exit that follows.
    #[must_use]
    #[inline(always)]
    pub fn exit(&self) -> Option<CallExit> {
        let record_offset = self.record_offset.wrapping_add(self.exit_offset.into());
        (self.exit_offset > 0).then_some(CallExit { ts_ns: self.exit_ns, record_offset })
    }
}

/// Consecutive rows of one thread, without processors.
#[derive(Clone, Debug)]
pub struct CallRun {
    /// Thread.
    pub thread_id: u32,
    /// Recording that contains them.
    pub source_id: u32,
    /// The rows, in file order. Their maker may use the memory again when the run is dropped.
    pub rows: Arc<Vec<CallRow>>,
    /// Number of exits that are part of the row of their entry.
    pub num_exits: usize,
}

impl CallRun {
    /// Number of rows of table `call_events`.
    #[must_use]
    pub fn num_events(&self) -> usize {
        self.rows.len().saturating_add(self.num_exits)
    }

    /// Their times.
    pub fn times(&self) -> impl DoubleEndedIterator<Item = i64> {
        self.rows.iter().flat_map(|row| std::iter::once(row.ts_ns).chain(row.exit().map(|exit| exit.ts_ns)))
    }
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
