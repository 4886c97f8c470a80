//! Rows of table `call_events`.

use std::ops::Range;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use perfuse_tables::access::{ChoiceColumn, ColumnError, choices, numbers};
use perfuse_tables::{CallEvent, CallExit, CallRow, EndReason};

/// The columns of a batch.
#[derive(Debug)]
pub struct EventColumns<'a> {
    ts_ns: &'a [i64],
    threads: &'a [u32],
    kinds: ChoiceColumn<'a, CallEvent>,
    functions: &'a [u32],
    sources: &'a [u32],
    offsets: &'a [u64],
    cpus: &'a PrimitiveArray<UInt32Type>,
    values: &'a PrimitiveArray<UInt64Type>,
}

/// Length of the run of equal values at the start. Compared in chunks, each without a branch.
fn len_equal(values: &[u32]) -> usize {
    let Some(&first) = values.first() else { return 0 };
    let equal =
        values.chunks(64).take_while(|chunk| chunk.iter().fold(0, |differ, v| differ | (v ^ first)) == 0);
    let start = values.len().min(equal.count().saturating_mul(64));
    let rest = values.get(start..).unwrap_or_default();
    start.saturating_add(rest.iter().take_while(|&&value| value == first).count())
}

/// A row of table `call_events`.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Time on the profile's clock.
    pub ts_ns: i64,
    /// Thread.
    pub thread_id: u32,
    /// Its kind.
    pub kind: CallEvent,
    /// Function.
    pub function_id: u32,
    /// File it is from.
    pub source_id: u32,
    /// Offset of its record.
    pub record_offset: u64,
}

/// An event, and the exit that follows it and ends the call that it enters.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventWithExit {
    pub event: Event,
    pub exit: Option<CallExit>,
}

impl Event {
    /// The event of a row, without the exit that the row may contain.
    #[inline(always)]
    pub(super) fn of(row: &CallRow, thread_id: u32, source_id: u32) -> Self {
        let CallRow { ts_ns, record_offset, function_id, kind, .. } = *row;
        Self { ts_ns, thread_id, kind, function_id, source_id, record_offset }
    }

    /// Whether it is the exit of the call that an event before it enters.
    #[inline(always)]
    pub(super) fn is_exit_of(&self, entry: &Self) -> bool {
        self.kind == CallEvent::Exit && self.function_id == entry.function_id
    }

    /// How the call of this exit ends.
    #[must_use]
    pub fn end_reason(&self) -> EndReason {
        match self.kind {
            CallEvent::TailExit => EndReason::TailCall,
            CallEvent::ExceptionExit => EndReason::Unwound,
            CallEvent::Enter | CallEvent::Exit | CallEvent::Argument => EndReason::Exit,
        }
    }
}

impl<'a> EventColumns<'a> {
    /// The columns of a batch of `call_events`.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn new(batch: &'a RecordBatch) -> Result<Self, ColumnError> {
        Ok(Self {
            ts_ns: numbers::<Int64Type>(batch, "ts_ns")?.values(),
            threads: numbers::<UInt32Type>(batch, "thread_id")?.values(),
            kinds: choices(batch, "kind")?,
            functions: numbers::<UInt32Type>(batch, "function_id")?.values(),
            sources: numbers::<UInt32Type>(batch, "source_id")?.values(),
            offsets: numbers::<UInt64Type>(batch, "record_offset")?.values(),
            cpus: numbers(batch, "cpu")?,
            values: numbers(batch, "value")?,
        })
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ts_ns.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ts_ns.is_empty()
    }

    /// The row with that number, from 0.
    #[must_use]
    #[inline]
    #[allow(
        clippy::indexing_slicing,
        reason = "all columns of a batch have its length; a later row is the caller's error"
    )]
    pub fn get(&self, row: usize) -> Event {
        Event {
            ts_ns: self.ts_ns[row],
            thread_id: self.threads[row],
            kind: self.kinds.get(row),
            function_id: self.functions[row],
            source_id: self.sources[row],
            record_offset: self.offsets[row],
        }
    }

    /// The rows of a [`run`](Self::run), with their numbers. An exit is part of the row before it where that enters its call.
    #[inline]
    pub(super) fn steps(&self, rows: Range<usize>) -> impl Iterator<Item = (usize, EventWithExit)> {
        let mut events = self.iter(rows);
        std::iter::from_fn(move || {
            let (row, event) = events.next()?;
            let mut after = events.clone();
            let exit =
                after.next().filter(|(_, exit)| event.kind == CallEvent::Enter && exit.is_exit_of(&event));
            if exit.is_some() {
                events = after;
            }
            let exit = exit.map(|(_, Event { ts_ns, record_offset, .. })| CallExit { ts_ns, record_offset });
            Some((row, EventWithExit { event, exit }))
        })
    }

    /// The rows of a [`run`](Self::run), with their numbers.
    #[inline]
    fn iter(&self, rows: Range<usize>) -> impl Iterator<Item = (usize, Event)> + Clone + '_ {
        let thread_id = self.threads.get(rows.start).copied().unwrap_or_default();
        let source_id = self.sources.get(rows.start).copied().unwrap_or_default();
        let times = self.ts_ns.get(rows.clone()).unwrap_or_default();
        let offsets = self.offsets.get(rows.clone()).unwrap_or_default();
        let functions = self.functions.get(rows.clone()).unwrap_or_default();
        let kinds = self.kinds.iter(rows.clone());
        let columns = rows.zip(times.iter().zip(offsets)).zip(kinds.zip(functions));
        columns.map(move |((row, (&ts_ns, &record_offset)), (kind, &function_id))| {
            (row, Event { ts_ns, thread_id, kind, function_id, source_id, record_offset })
        })
    }

    /// Number of rows from `row` on with its thread, file and processor.
    #[must_use]
    pub fn run(&self, row: usize) -> usize {
        let rest =
            |values: &'a [u32], len: usize| values.get(row..row.saturating_add(len)).unwrap_or_default();
        let threads = len_equal(rest(self.threads, self.threads.len()));
        let sources = len_equal(rest(self.sources, threads));
        let end = row.saturating_add(sources);
        if self.cpus.null_count() == 0 {
            return len_equal(self.cpus.values().get(row..end).unwrap_or_default());
        }
        let cpu = self.cpu(row);
        (row..end).take_while(|&other| self.cpu(other) == cpu).count()
    }

    /// The times of some rows.
    #[must_use]
    pub fn times(&self, rows: Range<usize>) -> &[i64] {
        self.ts_ns.get(rows).unwrap_or_default()
    }

    /// The processor of a row.
    #[must_use]
    #[inline]
    pub fn cpu(&self, row: usize) -> Option<u32> {
        self.cpus.is_valid(row).then(|| self.cpus.value(row))
    }

    /// The argument of a row.
    #[must_use]
    pub fn value(&self, row: usize) -> u64 {
        self.values.value(row)
    }
}
