//! Traces and profiles in the formats of other people's viewers, written while the events come: of a call trace nothing is
//! kept but the open calls. Slices that recordings have themselves are kept, as where each is drawn depends on the others.

mod arguments;
pub mod chrome;
mod counters;
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

use std::collections::BTreeMap;
use std::{fmt, io};

use arrow_array::RecordBatch;
use perfuse_tables::access::ColumnError;

pub use counters::Counter;
use perfuse_engine::calls::{Calls, Selection, Visitor};
use perfuse_engine::stacks::StackError;
pub use spans::Span;
pub use spool::Spool;
pub use survey::Survey;
pub use tracks::{Thread, Tracks};

/// A table on its way, made as it is pulled.
pub type Batches = Box<dyn Iterator<Item = RecordBatch> + Send>;

/// The tables of a trace, each from its first row on whenever it is asked for.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// Table `call_events`.
    pub call_events: &'a dyn Fn() -> Batches,
    /// Table `instants`.
    pub instants: &'a dyn Fn() -> Batches,
    /// Table `slices`, only what recordings have themselves.
    pub slices: &'a dyn Fn() -> Batches,
    /// Table `counter_samples`.
    pub counter_samples: &'a dyn Fn() -> Batches,
    /// Table `counters`.
    pub counters: &'a [RecordBatch],
    /// The process of each file that has counters.
    pub pids: &'a BTreeMap<u32, i32>,
    /// Table `functions`.
    pub functions: &'a [RecordBatch],
}

/// Is asked now and then whether to go on, and told how many events are done.
pub type GoOn<'a> = dyn FnMut(u64) -> bool + 'a;

/// A trace that was looked over, and is to be written.
#[derive(Clone, Copy)]
pub struct Trace<'a> {
    /// Its tables.
    pub tables: Tables<'a>,
    /// What of them.
    pub selection: &'a Selection,
    /// What was found.
    pub survey: &'a Survey,
    /// Its threads.
    pub tracks: &'a Tracks,
}

/// Why a trace was not written.
#[derive(Debug)]
pub enum Error {
    /// A table is not what it is declared to be.
    Column(ColumnError),
    /// A query did not give what it should.
    Stack(StackError),
    /// It could not be written.
    Io(io::Error),
    /// It was not to go on.
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

/// Takes all events through the stacks of their threads.
fn drive<V: Visitor>(
    batches: Batches,
    calls: &mut Calls<V>,
    go_on: &mut GoOn<'_>,
    failed: impl Fn(&V) -> bool,
) -> Result<(), Error> {
    let mut done = 0;
    for batch in batches {
        calls.push(&batch)?;
        done += batch.num_rows() as u64;
        if failed(calls.visitor()) {
            break;
        }
        if !go_on(done) {
            return Err(Error::Stopped);
        }
    }
    Ok(())
}
