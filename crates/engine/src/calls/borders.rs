//! Rows of `call_events` that calls of any time range need, found in one pass over the table as it is saved.
//!
//! A saved table consists of row groups, of which a reader leaves out those without an event in the range. Calls that begin in
//! one row group and end in another are open in those between, so their rows are needed whichever row groups are read. With
//! these rows and the row groups of the range, [`Calls`] has the same stacks at each row of the range as with all rows: what
//! is left out are calls that begin and end within one row group. Of each thread and row group, the first, the last, the
//! earliest and the latest row are needed too, and each with the begin and the end of its call: an end alone could be taken for
//! that of another call.
//!
//! Keys of calls in table `slices` count calls from the first row on, and the time of a call itself depends on the calls within
//! it, of which some are left out: the rows have both.

use std::sync::Arc;

use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt64Array};
use perfuse_tables::access::{ColumnError, numbers};
use perfuse_tables::{EndReason, border_events};
use rustc_hash::FxHashMap;

use super::events::Event;
use super::machine::Calls;
use super::selection::Selection;
use super::visitor::{CallEntry, Leave, Level, OpenCall, Visitor};
use crate::NONE;
use crate::batch::{add_row, take_runs};

/// So many rows are never too many.
const FEW_ROWS: u64 = 1 << 16;
/// Partners of an event: the begin of its call, the end of that, and the begin of the outermost call that this ends.
const MAX_PARTNERS: usize = 3;
/// More than one row of so many is too many: all rows are not much more.
const MIN_RATIO: u64 = 8;

/// Finds the rows, which table `border_events` consists of.
#[derive(Debug)]
pub struct BorderEvents {
    group_rows: u64,
    /// The stacks, of events whose offsets and arguments are replaced by the number of their row.
    calls: Calls<Marker>,
    source_id: Option<u32>,
    /// Rows of the row group so far, with the number of the first.
    group: Vec<(u64, RecordBatch)>,
    /// The rows found so far: numbers, numbers of calls before, events.
    found: Vec<(Vec<u64>, Vec<u64>, RecordBatch)>,
    num_found: u64,
    are_too_many: bool,
}

impl BorderEvents {
    /// No rows yet, of a table with row groups of a number of rows.
    #[must_use]
    pub fn new(group_rows: usize) -> Self {
        Self {
            group_rows: (group_rows as u64).max(1),
            calls: Calls::segment(Marker::default(), Selection::default()),
            source_id: None,
            group: Vec::new(),
            found: Vec::new(),
            num_found: 0,
            are_too_many: false,
        }
    }

    /// Adds a batch of `call_events`.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), ColumnError> {
        let sources = numbers::<UInt32Type>(batch, "source_id")?.values();
        let mut at = 0usize;
        while at < batch.num_rows() && !self.are_too_many {
            let Marker { next, group_start, .. } = *self.calls.visitor();
            let left = group_start.saturating_add(self.group_rows).saturating_sub(next);
            let rest = sources.get(at..).unwrap_or_default();
            let Some(&source_id) = rest.first() else { break };
            if self.source_id.replace(source_id) != Some(source_id) {
                // Calls that are open end here.
                self.calls.enter_source(source_id);
                self.calls.visitor().end_threads();
            }
            let same = rest.iter().take_while(|&&other| other == source_id).count();
            let len = same.min(usize::try_from(left).unwrap_or(usize::MAX)).max(1);
            let part = batch.slice(at, len);
            self.calls.push(&numbered(&part, next)?)?;
            self.group.push((next, part));
            at = at.saturating_add(len);
            if len as u64 >= left {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// The rows, as batches of table `border_events`; `None` where the table has one row group, or the rows are so many that
    /// they are of no use, or calls were left before exits whose entries were lost, which only all rows show.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn finish(mut self) -> Result<Option<Vec<RecordBatch>>, ColumnError> {
        self.end_group()?;
        if self.calls.visitor().next <= self.group_rows || self.are_too_many {
            return Ok(None);
        }
        let (Marker { self_ns, has_lost_entries, .. }, lost) = self.calls.finish();
        if lost.have_left_others() {
            return Ok(None);
        }
        let known = (!has_lost_entries).then_some(&self_ns);
        self.found.into_iter().map(|found| with_numbers(found, known)).collect::<Result<_, _>>().map(Some)
    }

    /// Takes over the rows of a row group that was added.
    fn end_group(&mut self) -> Result<(), ColumnError> {
        let start = self.calls.visitor().group_start;
        let mut open: Vec<u64> = Vec::new();
        for thread in self.calls.threads.iter().flatten() {
            open.extend(thread.stack.iter().rev().map(|call| call.mark).take_while(|&row| row >= start));
        }
        let ends = self.calls.before.as_mut().map(|before| std::mem::take(&mut before.exits));
        let marker = self.calls.visitor();
        open.into_iter().for_each(|row| marker.mark_begin(row));
        let ends = ends.iter().flat_map(|exits| exits.values().flatten());
        marker.marked.extend(ends.map(|exit| exit.event.record_offset));
        let begins = std::mem::take(&mut marker.begins);
        let num_calls = marker.num_calls.saturating_sub(begins.len() as u64);
        let rows = marker.end_group();
        let before = |row: &u64| num_calls.saturating_add(begins.partition_point(|begin| begin < row) as u64);
        let mut rows = rows.as_slice();
        for (first, batch) in std::mem::take(&mut self.group) {
            perfuse_stopping::checkpoint();
            let end = first.saturating_add(batch.num_rows() as u64);
            let (here, later) =
                rows.split_at_checked(rows.partition_point(|&row| row < end)).unwrap_or_default();
            rows = later;
            if !here.is_empty() {
                self.num_found = self.num_found.saturating_add(here.len() as u64);
                let calls_before = here.iter().map(before).collect();
                self.found.push((here.to_vec(), calls_before, rows_of(&batch, first, here)?));
            }
        }
        let most = (self.calls.visitor().next / MIN_RATIO).max(FEW_ROWS);
        if self.num_found > most {
            self.are_too_many = true;
            self.found.clear();
            self.calls.visitor().self_ns.clear();
        }
        Ok(())
    }
}

/// The events with the numbers of their rows, from `first` on, in place of offsets and arguments.
pub(super) fn numbered(batch: &RecordBatch, first: u64) -> Result<RecordBatch, ColumnError> {
    let end = first.saturating_add(batch.num_rows() as u64);
    let rows: ArrayRef = Arc::new(UInt64Array::from_iter_values(first..end));
    let schema = batch.schema();
    let mut columns = batch.columns().to_vec();
    for column in ["record_offset", "value"] {
        let at = schema.index_of(column).map_err(|_| ColumnError { column })?;
        *columns.get_mut(at).ok_or(ColumnError { column })? = Arc::clone(&rows);
    }
    RecordBatch::try_new(schema, columns).map_err(|_| ColumnError { column: "value" })
}

/// Some rows of a batch, whose first row has the number `first`.
fn rows_of(batch: &RecordBatch, first: u64, rows: &[u64]) -> Result<RecordBatch, ColumnError> {
    let mut runs = Vec::new();
    for &row in rows {
        add_row(&mut runs, usize::try_from(row.saturating_sub(first)).unwrap_or(usize::MAX));
    }
    take_runs(batch, &runs).ok_or(ColumnError { column: "kind" })
}

/// Events with the numbers of their rows and of the calls before, as table `border_events`; without `self_ns`, by row, it has
/// neither the numbers of calls.
fn with_numbers(
    (rows, calls_before, events): (Vec<u64>, Vec<u64>, RecordBatch),
    self_ns: Option<&FxHashMap<u64, i64>>,
) -> Result<RecordBatch, ColumnError> {
    let own: Int64Array = rows.iter().map(|row| self_ns?.get(row).copied()).collect();
    let before: UInt64Array = calls_before.into_iter().map(|before| self_ns.map(|_| before)).collect();
    let row: ArrayRef = Arc::new(UInt64Array::from(rows));
    let last: [ArrayRef; 2] = [Arc::new(before), Arc::new(own)];
    let columns = std::iter::once(row).chain(events.columns().iter().cloned()).chain(last).collect();
    RecordBatch::try_new(border_events::SPEC.schema(), columns).map_err(|_| ColumnError { column: "row" })
}

/// Marks rows; the data of a call is the row of its begin.
#[derive(Debug, Default)]
struct Marker {
    /// Number of the next row.
    next: u64,
    /// First row of the row group.
    group_start: u64,
    marked: Vec<u64>,
    /// Rows of the arguments of calls that began in the row group.
    arguments: FxHashMap<u64, Vec<u64>>,
    /// For each row of the row group another of it: for a begin the end, for an end the begin of the outermost call that it ends,
    /// for others the begin of the call around; [`NONE`] where that is in another row group.
    partners: Vec<u32>,
    threads: FxHashMap<u32, ThreadRows>,
    /// Number of calls that began so far, as table `slices` counts them.
    num_calls: u64,
    /// Rows of the row group in which calls began.
    begins: Vec<u64>,
    /// Time of calls themselves that end in another row group than they begin in, by the row of their begin.
    self_ns: FxHashMap<u64, i64>,
    /// Whether calls were open at the start, which only their ends state: they are counted at the first event of their thread.
    has_lost_entries: bool,
}

/// Rows of a thread in a row group.
#[derive(Clone, Copy, Debug)]
struct ThreadRows {
    first: u64,
    last: u64,
    /// Time and row.
    earliest: (i64, u64),
    latest: (i64, u64),
}

impl Marker {
    fn count_call(&mut self, row: u64) {
        self.num_calls = self.num_calls.saturating_add(1);
        self.begins.push(row);
    }

    /// Marks begin and arguments of a call that does not end within its row group.
    fn mark_begin(&mut self, row: u64) {
        if row >= self.group_start {
            self.marked.push(row);
            self.marked.extend(self.arguments.remove(&row).unwrap_or_default());
        }
    }

    /// Number of a row in the row group; `None` for one of an earlier row group.
    fn place(&self, row: u64) -> Option<usize> {
        usize::try_from(row.checked_sub(self.group_start)?).ok()
    }

    #[inline]
    fn pair(&mut self, row: u64, partner: u64) {
        let (Some(row), Some(partner)) = (self.place(row), self.place(partner)) else { return };
        if row >= self.partners.len() {
            self.partners.resize(row.saturating_add(1), NONE);
        }
        if let Some(slot) = self.partners.get_mut(row) {
            *slot = u32::try_from(partner).unwrap_or(NONE);
        }
    }

    /// Marks rows of threads of the row group, with their calls.
    fn end_threads(&mut self) {
        let mut rows = Vec::new();
        for (_, ThreadRows { first, last, earliest, latest }) in self.threads.drain() {
            rows.extend([first, last, earliest.1, latest.1]);
        }
        for mut row in rows {
            self.marked.push(row);
            // From an event to its call, whose end may end others around it.
            for _ in 0..MAX_PARTNERS {
                let partner = self.place(row).and_then(|row| self.partners.get(row));
                let Some(&partner) = partner.filter(|partner| **partner != NONE) else { break };
                row = self.group_start.saturating_add(partner.into());
                self.marked.push(row);
            }
        }
    }

    /// The marked rows, sorted.
    fn end_group(&mut self) -> Vec<u64> {
        self.end_threads();
        self.arguments.clear();
        self.partners.clear();
        self.group_start = self.next;
        let mut marked = std::mem::take(&mut self.marked);
        marked.sort_unstable();
        marked.dedup();
        marked
    }
}

impl Visitor for Marker {
    type CallData = u64;

    #[inline]
    fn enter(&mut self, entry: &CallEntry, _parent: Option<&OpenCall<u64>>) -> u64 {
        self.count_call(entry.record_offset);
        entry.record_offset
    }

    fn leave_earlier(&mut self, _thread_id: u32) {
        self.has_lost_entries = true;
    }

    #[inline]
    fn leave(&mut self, call: &OpenCall<u64>, _level: Level, leave: &Leave, _parent: Option<&OpenCall<u64>>) {
        let end = leave.record_offset;
        if call.mark < self.group_start || leave.reason == EndReason::Truncated {
            self.self_ns.insert(call.mark, i64::try_from(leave.self_ns).unwrap_or(i64::MAX));
        }
        if leave.reason == EndReason::Truncated {
            return self.mark_begin(call.mark);
        }
        if call.mark < self.group_start {
            self.marked.push(end);
        } else if !self.arguments.is_empty() {
            self.arguments.remove(&call.mark);
        }
        self.pair(call.mark, end);
        // Of several calls, the outermost ends last.
        if let Some(slot) = self.place(end).and_then(|end| self.partners.get_mut(end)) {
            *slot = NONE;
        }
        self.pair(end, call.mark);
    }

    fn orphan(&mut self, event: &Event, _cpu: Option<u32>, _depth: u32, parent: Option<&OpenCall<u64>>) {
        self.count_call(event.record_offset);
        // With the call around it, it is not taken for the end of another.
        if let Some(parent) = parent {
            self.pair(event.record_offset, parent.mark);
        }
    }

    fn argument(&mut self, call: &OpenCall<u64>, _level: Level, row: u64) {
        self.pair(row, call.mark);
        if call.mark < self.group_start {
            self.marked.push(row);
        } else {
            self.arguments.entry(call.mark).or_default().push(row);
        }
    }

    fn argument_outside(&mut self, row: u64) {
        // It is of a call from before the recording, if the thread has one.
        self.marked.push(row);
    }

    fn rows(
        &mut self,
        thread_id: u32,
        _cpu: Option<u32>,
        num_rows: usize,
        times: impl DoubleEndedIterator<Item = i64>,
    ) {
        let first = self.next;
        self.next = first.saturating_add(num_rows as u64);
        let here = |place: (usize, i64)| (place.1, first.saturating_add(place.0 as u64));
        let mut times = times.enumerate();
        let Some(start) = times.next().map(here) else { return };
        let (mut earliest, mut latest) = (start, start);
        for (at, ts_ns) in times {
            if ts_ns < earliest.0 {
                earliest = here((at, ts_ns));
            }
            if ts_ns > latest.0 {
                latest = here((at, ts_ns));
            }
        }
        let last = self.next.saturating_sub(1);
        let thread = self.threads.entry(thread_id).or_insert(ThreadRows { first, last, earliest, latest });
        thread.last = last;
        if earliest.0 < thread.earliest.0 {
            thread.earliest = earliest;
        }
        if latest.0 > thread.latest.0 {
            thread.latest = latest;
        }
    }
}
