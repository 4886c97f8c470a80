//! Writes logs of any data version from events, and from rows of the common tables of any recorder.

use std::io;
use std::io::Write;

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt8Type, UInt32Type, UInt64Type};
use perfuse_tables::access::{ColumnError, nullable, numbers};
use perfuse_wire::ParseError;
use rustc_hash::FxHashMap;

use crate::consts::EventByte;
use crate::dialect::LogDialect;
use crate::encode::BufferEncoder;
use crate::header::Header;
use crate::records::{Event, EventBody};

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

/// Values of the column `kind`.
mod kinds {
    pub const ALLOCATION: u8 = 0;
    pub const ENTER: u8 = 1;
    pub const LEAVE: u8 = 2;
    pub const EXCEPTION_LEAVE: u8 = 3;
    pub const SAMPLE: u8 = 4;
}

/// Call stacks: each is a method and the stack of its caller.
#[derive(Clone, Debug, Default)]
pub struct RowStacks {
    /// Caller's stack and method of each stack.
    stacks: FxHashMap<u32, (Option<u32>, u64)>,
}

impl RowStacks {
    /// Maximum number of frames of a stack; ends cycles in the rows.
    const MAX_FRAMES: usize = 1 << 16;

    /// Adds rows with `stack_id`, `parent_stack_id` and `method`.
    ///
    /// # Errors
    /// When a column is missing or has another type.
    pub fn add(&mut self, batch: &RecordBatch) -> Result<(), ColumnError> {
        let ids = numbers::<UInt32Type>(batch, "stack_id")?;
        let parents = numbers::<UInt32Type>(batch, "parent_stack_id")?;
        let methods = numbers::<UInt64Type>(batch, "method")?;
        for row in 0..batch.num_rows() {
            self.stacks.insert(ids.value(row), (nullable(parents, row), methods.value(row)));
        }
        Ok(())
    }

    /// Appends the methods of a stack, innermost first.
    fn append_frames(&self, stack: u32, frames: &mut Vec<u64>) {
        let mut next = Some(stack);
        while let Some(number) = next
            && let Some((parent, method)) = self.stacks.get(&number)
            && frames.len() < Self::MAX_FRAMES
        {
            frames.push(*method);
            next = *parent;
        }
    }
}

/// Passes the thread and event of each row to `write`. The columns are `ts_ns`, `thread`, `kind`, `a` to `c`,
/// `stack_id`.
///
/// # Errors
/// When a column is missing or has another type, or `write` fails.
pub fn events_from_rows<E: From<ColumnError>>(
    batch: &RecordBatch,
    stacks: &RowStacks,
    mut write: impl FnMut(u64, &mut Event<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let times = numbers::<Int64Type>(batch, "ts_ns")?;
    let threads = numbers::<UInt64Type>(batch, "thread")?;
    let kinds = numbers::<UInt8Type>(batch, "kind")?;
    let values = ["a", "b", "c"].map(|name| numbers::<UInt64Type>(batch, name));
    let [a, b, c] = values;
    let (a, b, c) = (a?, b?, c?);
    let ids = numbers::<UInt32Type>(batch, "stack_id")?;
    let mut event = Event::default();
    for row in 0..batch.num_rows() {
        let stack = nullable(ids, row);
        let byte = match kinds.value(row) {
            kinds::ALLOCATION if stack.is_some() => EventByte::ALLOC_BT,
            kinds::ALLOCATION => EventByte::ALLOC,
            kinds::ENTER => EventByte::METHOD_ENTER,
            kinds::LEAVE => EventByte::METHOD_LEAVE,
            kinds::EXCEPTION_LEAVE => EventByte::METHOD_EXC_LEAVE,
            kinds::SAMPLE => EventByte::SAMPLE_HIT,
            _ => return Err(ColumnError { column: "kind" }.into()),
        };
        event.begin(byte);
        event.time = Some(u64::try_from(times.value(row)).unwrap_or(0));
        let thread = threads.value(row);
        event.body = match event.body {
            EventBody::Alloc { .. } => {
                EventBody::Alloc { class: a.value(row), object: b.value(row) & !7, size: c.value(row) }
            }
            EventBody::Call { .. } => EventBody::Call { method: a.value(row) },
            _ => EventBody::SampleHit { kind: 0, timestamp: 0, thread },
        };
        if let Some(stack) = stack {
            stacks.append_frames(stack, &mut event.frames);
            match byte {
                EventByte::ALLOC_BT => event.frames.reverse(),
                // mprof-report counts a sample by its instruction pointer.
                EventByte::SAMPLE_HIT => event.addresses.extend(event.frames.first()),
                _ => {}
            }
        }
        write(thread, &mut event)?;
    }
    Ok(())
}
