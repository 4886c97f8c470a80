//! Writes logs of any data version from events.

use std::io::{self, Write};

use perfuse_wire::ParseError;
use rustc_hash::FxHashMap;

use super::dialect::LogDialect;
use super::encode::BufferEncoder;
use super::header::Header;
use super::records::{Event, EventBody};

/// Size in bytes at which a buffer is written, as in the profiler.
const BUFFER_BYTES: usize = 1 << 16;

/// Why an event was not written.
#[derive(Debug)]
pub enum WriteError {
    /// The data version has no such event or cannot represent one of its values.
    Refused(ParseError),
    /// The output failed.
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

/// Writes a log. Collects the events of each thread in buffers and keeps the order that readers need.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    dialect: LogDialect,
    open: FxHashMap<u64, BufferEncoder>,
    /// Threads with an open buffer, oldest first.
    order: Vec<u64>,
    done: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the header; it determines the encoding of the events.
    ///
    /// # Errors
    /// When the output fails.
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

    /// Appends an event of a thread. Before a SYNC_POINT, all earlier events are written to the output.
    ///
    /// # Errors
    /// [`WriteError::Refused`] if the data version cannot represent the event; nothing is written then.
    pub fn event(&mut self, thread: u64, event: &mut Event<'_>) -> Result<(), WriteError> {
        if matches!(event.body, EventBody::SyncPoint { .. }) {
            self.flush()?;
        }
        let dialect = self.dialect;
        let order = &mut self.order;
        let encoder = self.open.entry(thread).or_insert_with(|| {
            order.push(thread);
            BufferEncoder::new(dialect, thread, event.time.unwrap_or(0))
        });
        encoder.write(event).map_err(WriteError::Refused)?;
        if encoder.len() >= BUFFER_BYTES {
            self.order.retain(|other| *other != thread);
            self.send(thread)?;
        }
        Ok(())
    }

    /// Writes the buffer of a thread to the output.
    fn send(&mut self, thread: u64) -> Result<(), WriteError> {
        if let Some(encoder) = self.open.remove(&thread).filter(|encoder| !encoder.is_empty()) {
            self.done.clear();
            encoder.finish(&mut self.done).map_err(WriteError::Refused)?;
            self.out.write_all(&self.done)?;
        }
        Ok(())
    }

    /// Writes all events so far to the output.
    ///
    /// # Errors
    /// When the output fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        for thread in std::mem::take(&mut self.order) {
            self.send(thread)?;
        }
        Ok(self.out.flush()?)
    }

    /// Writes all events to the output and returns it.
    ///
    /// # Errors
    /// When the output fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.out)
    }
}
