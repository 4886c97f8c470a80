//! Single calls: rows of table `slices`.

use std::fmt::Write;
use std::iter::Map;

use arrow_array::RecordBatch;
use perfuse_tables::access::ColumnError;
use perfuse_tables::{BATCH_ROWS, SliceKind, StartReason, slices as table};
use rustc_hash::FxHashMap;

use super::events::Event;
use super::machine::{Calls, LostEntries};
use super::selection::Selection;
use super::visitor::{CallEntry, Leave, Level, OpenCall, Visitor};

/// Calls in batches of table `slices`, made on demand.
#[derive(Debug)]
pub struct Slices<B> {
    /// Each batch with the number of calls that begin before it, where that is not the number of calls so far.
    events: B,
    first_id: u64,
    /// `None` after the last event.
    calls: Option<Calls<Writer>>,
}

/// Batches without others left out between them.
pub type AllEvents<B> = Map<B, fn(RecordBatch) -> (Option<u64>, RecordBatch)>;

/// The calls of `call_events` streams as slices, numbered from `first_id` on. There are two passes over the events, the first
/// immediately: it finds calls whose entries were lost.
///
/// # Errors
/// [`ColumnError`] when the batches are not of `call_events`.
pub fn slices<B: Iterator<Item = RecordBatch>>(
    events: impl Fn() -> B,
    first_id: u64,
) -> Result<Slices<AllEvents<B>>, ColumnError> {
    let lost = LostEntries::of(events())?;
    let writer = Writer { next_id: first_id, ..Writer::default() };
    let events: AllEvents<B> = events().map(|batch| (None, batch));
    Ok(Slices { events, first_id, calls: Some(Calls::new(writer, Selection::default(), lost)) })
}

/// The same of a part of the rows of `call_events`, without lost entries: each batch with the number of calls that begin before
/// it, where rows were left out there. `self_ns` has the time of calls themselves by their number, of calls around such rows.
pub fn slices_of_part<B: Iterator<Item = (Option<u64>, RecordBatch)>>(
    events: B,
    first_id: u64,
    self_ns: FxHashMap<u64, i64>,
) -> Slices<B> {
    let self_ns = self_ns.into_iter().map(|(number, ns)| (first_id.saturating_add(number), ns)).collect();
    let writer = Writer { next_id: first_id, self_ns, ..Writer::default() };
    Slices { events, first_id, calls: Some(Calls::new(writer, Selection::default(), LostEntries::default())) }
}

impl<B: Iterator<Item = (Option<u64>, RecordBatch)>> Iterator for Slices<B> {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let mut calls = self.calls.take()?;
        while calls.visitor().rows.len() < BATCH_ROWS {
            let next = self.events.next();
            if let Some((Some(before), _)) = &next {
                calls.visitor().next_id = self.first_id.saturating_add(*before);
            }
            // The columns of all batches were checked before.
            let Some(batch) = next.filter(|(_, batch)| calls.push(batch).is_ok()) else {
                let mut rows = calls.finish().0.rows;
                return (!rows.is_empty()).then(|| rows.finish());
            };
            drop(batch);
        }
        let rows = calls.visitor().rows.finish();
        self.calls = Some(calls);
        Some(rows)
    }
}

/// A duration as in the table, limited to 292 years.
fn signed(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

/// Writes a row for each call.
#[derive(Debug, Default)]
struct Writer {
    next_id: u64,
    /// What is known of the time of calls themselves, of which calls within them may be missing.
    self_ns: FxHashMap<u64, i64>,
    /// Arguments of open calls, as a JSON array that is not closed yet.
    args: FxHashMap<u64, String>,
    rows: table::Builder,
}

impl Writer {
    fn id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id = id.saturating_add(1);
        id
    }
}

/// The data of a call's begin that its row needs.
#[derive(Clone, Copy, Debug)]
struct SliceStart {
    slice_id: u64,
    cpu: Option<u32>,
    record_offset: u64,
}

impl Visitor for Writer {
    type CallData = SliceStart;

    #[inline]
    fn enter(&mut self, entry: &CallEntry, _parent: Option<&OpenCall<SliceStart>>) -> SliceStart {
        SliceStart { slice_id: self.id(), cpu: entry.cpu, record_offset: entry.record_offset }
    }

    fn leave(
        &mut self,
        call: &OpenCall<SliceStart>,
        level: Level,
        leave: &Leave,
        parent: Option<&OpenCall<SliceStart>>,
    ) {
        let SliceStart { slice_id, cpu, record_offset } = call.mark;
        let args = if self.args.is_empty() { None } else { self.args.remove(&slice_id) };
        let args = args.map(|mut open| {
            open.push(']');
            open
        });
        let Level { source_id, thread_id, depth } = level;
        let is_lost = leave.start_reason == StartReason::Lost;
        let record_offset = if is_lost { leave.record_offset } else { record_offset };
        let known = if self.self_ns.is_empty() { None } else { self.self_ns.get(&slice_id).copied() };
        self.rows.push(
            slice_id,
            thread_id,
            leave.start_ns,
            signed(leave.duration_ns),
            known.unwrap_or_else(|| signed(leave.self_ns)),
            depth,
            parent.map(|parent| parent.mark.slice_id),
            Some(call.function_id),
            None,
            SliceKind::Call,
            leave.start_reason,
            leave.reason,
            cpu,
            args.as_deref(),
            source_id,
            record_offset,
        );
    }

    fn argument(&mut self, call: &OpenCall<SliceStart>, _level: Level, value: u64) {
        let args = self.args.entry(call.mark.slice_id).or_default();
        let separator = if args.is_empty() { '[' } else { ',' };
        // Writing to a string cannot fail.
        let _ = write!(args, "{separator}{value}");
    }

    fn orphan(&mut self, event: &Event, cpu: Option<u32>, depth: u32, parent: Option<&OpenCall<SliceStart>>) {
        let id = self.id();
        self.rows.push(
            id,
            event.thread_id,
            event.ts_ns,
            0,
            0,
            depth,
            parent.map(|parent| parent.mark.slice_id),
            Some(event.function_id),
            None,
            SliceKind::Call,
            StartReason::Lost,
            event.end_reason(),
            cpu,
            None,
            event.source_id,
            event.record_offset,
        );
    }
}
