//! Calls of call traces as rows of slices: a visitor of calls.

use std::ops::Range;

use super::processors::{Stint, Stints};
use super::row::{SliceRow, TimelineSlice};
use crate::calls::{CallEntry, Event, Leave, Level, OpenCall, Visitor};

/// The rows of each thread, by depth.
#[derive(Debug)]
pub struct CallRowsOfThreads {
    threads: Vec<Vec<SliceRow>>,
    num_slices: u64,
    max_slices: u64,
    /// The selected time.
    time_ns: Option<Range<i64>>,
    stints: Stints,
}

impl CallRowsOfThreads {
    /// No calls yet, and room for so many. Only events within `time_ns` show where threads were.
    #[must_use]
    pub fn new(max_slices: u64, time_ns: Option<Range<i64>>) -> Self {
        Self { threads: Vec::new(), num_slices: 0, max_slices, time_ns, stints: Stints::default() }
    }

    /// Whether there were more calls than there is room for.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.num_slices > self.max_slices
    }

    /// The times that threads were seen on processors, from the first to the last of events that follow each other.
    pub fn take_stints(&mut self) -> Vec<Stint> {
        std::mem::take(&mut self.stints).finish()
    }

    /// The rows of each thread that has calls, by its key.
    pub fn finish(self) -> impl Iterator<Item = (u32, Vec<SliceRow>)> {
        let threads = self.threads.into_iter().zip(0u32..).map(|(rows, thread_id)| (thread_id, rows));
        threads.filter(|(_, rows)| !rows.is_empty())
    }

    #[inline]
    fn push(&mut self, thread_id: u32, depth: u32, slice: TimelineSlice) {
        self.num_slices = self.num_slices.saturating_add(1);
        if self.is_full() {
            return;
        }
        let (thread, depth) = (thread_id as usize, depth as usize);
        if thread >= self.threads.len() {
            self.threads.resize_with(thread.saturating_add(1), Vec::new);
        }
        let Some(rows) = self.threads.get_mut(thread) else { return };
        if depth >= rows.len() {
            rows.resize_with(depth.saturating_add(1), SliceRow::default);
        }
        if let Some(row) = rows.get_mut(depth)
            && !row.push(slice)
        {
            self.num_slices = u64::MAX;
        }
    }
}

impl Visitor for CallRowsOfThreads {
    type CallData = ();

    #[inline(always)]
    fn enter(&mut self, _entry: &CallEntry, _parent: Option<&OpenCall<()>>) {}

    #[inline(always)]
    fn leave(&mut self, call: &OpenCall<()>, level: Level, leave: &Leave, _parent: Option<&OpenCall<()>>) {
        let Leave { start_ns, duration_ns, .. } = *leave;
        self.push(
            level.thread_id,
            level.depth,
            TimelineSlice { start_ns, duration_ns, label: call.function_id },
        );
    }

    fn orphan(&mut self, event: &Event, _cpu: Option<u32>, depth: u32, _parent: Option<&OpenCall<()>>) {
        if self.time_ns.as_ref().is_some_and(|range| !range.contains(&event.ts_ns)) {
            return;
        }
        let slice = TimelineSlice { start_ns: event.ts_ns, duration_ns: 0, label: event.function_id };
        self.push(event.thread_id, depth, slice);
    }

    fn rows(
        &mut self,
        thread_id: u32,
        cpu: Option<u32>,
        _num_rows: usize,
        times: impl DoubleEndedIterator<Item = i64>,
    ) {
        match (cpu, &self.time_ns) {
            (None, _) => {}
            (Some(cpu), None) => self.stints.add(cpu, thread_id, times),
            (Some(cpu), Some(range)) => {
                self.stints.add(cpu, thread_id, times.filter(|ts_ns| range.contains(ts_ns)));
            }
        }
    }
}
