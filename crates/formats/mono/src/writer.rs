//! Writes logs of any data version from events.

use std::io::{self, Write};

use perfuse_wire::ParseError;
use rustc_hash::FxHashMap;

use super::dialect::Dialect;
use super::encode::Encoder;
use super::header::Header;
use super::records::{Body, Event};

/// Events of a thread go out when they are this many bytes, as the profiler's do.
const BUFFER_BYTES: usize = 1 << 16;

/// Why an event was not written.
#[derive(Debug)]
pub enum WriteError {
    /// The data version has no such event, or no place for one of its values.
    Refused(ParseError),
    /// What the output says.
    Output(io::Error),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            Self::Output(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for WriteError {}

/// Writes a log: gathers the events of each thread into buffers, and keeps the order readers need.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    dialect: Dialect,
    open: FxHashMap<u64, Encoder>,
    /// Threads with an open buffer, oldest first.
    order: Vec<u64>,
    done: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header; events follow in the layout it says.
    ///
    /// # Errors
    /// What the output says.
    pub fn new(mut out: W, header: &Header) -> io::Result<Self> {
        let mut bytes = Vec::new();
        header.write(&mut bytes);
        out.write_all(&bytes)?;
        let (open, order, done) = (FxHashMap::default(), Vec::new(), Vec::new());
        Ok(Self { out, dialect: header.dialect(), open, order, done })
    }

    /// The output.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Appends an event of a thread. A SYNC_POINT sends all that came before it out first.
    ///
    /// # Errors
    /// [`WriteError::Refused`] for what the data version has no place for: nothing is written then.
    pub fn event(&mut self, thread: u64, event: &mut Event<'_>) -> Result<(), WriteError> {
        if matches!(event.body, Body::SyncPoint { .. }) {
            self.flush()?;
        }
        let dialect = self.dialect;
        let order = &mut self.order;
        let encoder = self.open.entry(thread).or_insert_with(|| {
            order.push(thread);
            Encoder::new(dialect, thread, event.time.unwrap_or(0))
        });
        encoder.write(event).map_err(WriteError::Refused)?;
        if encoder.len() >= BUFFER_BYTES {
            self.order.retain(|other| *other != thread);
            self.send(thread)?;
        }
        Ok(())
    }

    fn send(&mut self, thread: u64) -> Result<(), WriteError> {
        if let Some(encoder) = self.open.remove(&thread).filter(|encoder| !encoder.is_empty()) {
            self.done.clear();
            encoder.finish(&mut self.done).map_err(WriteError::Refused)?;
            self.out.write_all(&self.done)?;
        }
        Ok(())
    }

    /// Writes out all events so far.
    ///
    /// # Errors
    /// What the output says.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        for thread in std::mem::take(&mut self.order) {
            self.send(thread)?;
        }
        Ok(self.out.flush()?)
    }

    /// Writes out all events and gives the output back.
    ///
    /// # Errors
    /// What the output says.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.out)
    }
}
