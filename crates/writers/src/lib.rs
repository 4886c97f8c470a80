//! Streaming writers of other tools' trace and profile formats: of a call trace only the open calls are in memory. Slices
//! other than calls are all in memory, since the track of each depends on the others. Also Arrow IPC and Zstandard, for
//! results of queries.

mod arguments;
pub mod arrow_ipc;
pub mod chrome;
mod counters;
pub mod heap_dumps;
mod instants;
mod json;
mod lanes;
mod names;
mod nesting;
mod ordered;
pub mod perfetto;
pub mod pprof;
mod protobuf;
mod spans;
pub mod speedscope;
mod spool;
pub mod stacks;
mod survey;
#[cfg(test)]
mod tests;
mod tracks;
pub mod zstandard;

use std::collections::BTreeMap;
use std::{fmt, io};

use arrow_array::RecordBatch;
use perfuse_tables::access::ColumnError;

pub use counters::Counter;
use perfuse_engine::calls::{Calls, Selection, Visitor};
use perfuse_engine::stacks::StackError;
pub use spans::Span;
pub use spool::Spool;
pub use survey::TraceSurvey;
pub use tracks::{ShownProcess, Thread, Tracks, shown_processes};

/// A table as a stream of batches, produced on demand.
pub type Batches = Box<dyn Iterator<Item = RecordBatch> + Send>;

/// The tables of a trace; each function starts a new pass over its table.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// Table `call_events`.
    pub call_events: &'a dyn Fn() -> Batches,
    /// Table `instants`.
    pub instants: &'a dyn Fn() -> Batches,
    /// Table `slices` without calls.
    pub slices: &'a dyn Fn() -> Batches,
    /// Table `counter_samples`.
    pub counter_samples: &'a dyn Fn() -> Batches,
    /// Table `counters`.
    pub counters: &'a [RecordBatch],
    /// The process of each file whose counters are written.
    pub pids: &'a BTreeMap<u32, i32>,
    /// Table `functions`.
    pub functions: &'a [RecordBatch],
}

/// Progress callback: receives the number of finished events and returns false to stop.
pub type Progress<'a> = dyn FnMut(u64) -> bool + 'a;

/// A trace to write, after its [`TraceSurvey`].
#[derive(Clone, Copy)]
pub struct Trace<'a> {
    /// Its tables.
    pub tables: Tables<'a>,
    /// The selected threads and time.
    pub selection: &'a Selection,
    /// Facts from the first pass.
    pub survey: &'a TraceSurvey,
    /// Its threads.
    pub tracks: &'a Tracks,
}

/// Why a trace was not written.
#[derive(Debug)]
pub enum Error {
    /// A table lacks a column or has another type.
    Column(ColumnError),
    /// A query result lacks a column or has a dangling key.
    Stack(StackError),
    /// The output failed.
    Io(io::Error),
    /// The progress callback asked to stop.
    Stopped,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(error) => error.fmt(f),
            Self::Stack(error) => error.fmt(f),
            Self::Io(error) => error.fmt(f),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl std::error::Error for Error {}

impl From<ColumnError> for Error {
    fn from(error: ColumnError) -> Self {
        Self::Column(error)
    }
}

impl From<StackError> for Error {
    fn from(error: StackError) -> Self {
        Self::Stack(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Pushes all events through the call stacks of their threads.
fn drive<V: Visitor>(
    batches: Batches,
    calls: &mut Calls<V>,
    progress: &mut Progress<'_>,
    failed: impl Fn(&V) -> bool,
) -> Result<(), Error> {
    let mut done = 0;
    for batch in batches {
        calls.push(&batch)?;
        done += batch.num_rows() as u64;
        if failed(calls.visitor()) {
            break;
        }
        if !progress(done) {
            return Err(Error::Stopped);
        }
    }
    Ok(())
}
