//! Parallel scans of the buffers that contain certain kinds of events, with results in file order.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_recording::BatchStream;
use perfuse_workers::{in_call, install, num_threads};
use rayon::prelude::*;

use crate::consts::{EventByte, KindSet};
use crate::log::LogData;
use crate::reader::{EventBuffer, file_range};
use crate::records::Event;

/// Bytes of events per batch.
const BATCH_BYTES: u64 = 1 << 20;
/// Bytes of the file that the buffers of a batch may be spread over: the system maps much of it around the few that are read.
const BATCH_SPAN_BYTES: u64 = 8 << 20;

/// The buffers to read.
#[derive(Clone, Debug)]
pub struct BufferSelection {
    /// Range of file offsets; buffers that overlap it are read.
    pub range: Range<u64>,
    /// Sorted object addresses; only buffers whose allocations may contain one of them are read.
    pub objects: Option<Arc<[u64]>>,
}

impl Default for BufferSelection {
    fn default() -> Self {
        Self { range: 0..u64::MAX, objects: None }
    }
}

impl From<Range<u64>> for BufferSelection {
    fn from(range: Range<u64>) -> Self {
        Self { range, ..Self::default() }
    }
}

impl BufferSelection {
    /// Whether a buffer is selected.
    fn contains(&self, log: &LogData, number: usize, buffer: &EventBuffer) -> bool {
        let is_inside = buffer.end() > self.range.start && buffer.offset < self.range.end;
        let may_have = |objects: &Arc<[u64]>| {
            let Some((lowest, highest)) = log.survey().events.allocations.address_ranges.get(number) else {
                return true;
            };
            let at = objects.partition_point(|object| object < lowest);
            objects.get(at).is_some_and(|object| object <= highest)
        };
        is_inside && self.objects.as_ref().is_none_or(may_have)
    }
}

/// Indices of the selected buffers that contain events of these kinds, in groups of about equal size in bytes.
pub fn buffer_groups(log: &LogData, kinds: KindSet, selection: &BufferSelection) -> Vec<Vec<usize>> {
    let survey = log.survey();
    let mut groups = Vec::new();
    let (mut group, mut bytes, mut start) = (Vec::new(), 0u64, 0u64);
    for ((number, buffer), kinds_in_buffer) in
        survey.buffers.list.iter().enumerate().zip(&survey.events.kinds)
    {
        if !kinds_in_buffer.meets(kinds) || !selection.contains(log, number, buffer) {
            continue;
        }
        if group.is_empty() {
            start = buffer.offset;
        }
        group.push(number);
        bytes = bytes.saturating_add(buffer.len);
        if bytes >= BATCH_BYTES || buffer.end().saturating_sub(start) >= BATCH_SPAN_BYTES {
            groups.push(std::mem::take(&mut group));
            bytes = 0;
        }
    }
    groups.push(group);
    groups
}

/// The position of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventContext {
    /// Index of its buffer.
    pub buffer: usize,
    /// Its time, or that of the previous timed event.
    pub time: u64,
}

/// Passes every event of some buffers to `each`. Allocations may lack their backtraces.
#[inline]
pub fn for_each_event(
    log: &LogData,
    buffers: &[usize],
    mut each: impl FnMut(&EventContext, &EventBuffer, &Event<'_>),
) {
    let without_backtraces = KindSet::of(&[EventByte::ALLOC_BT]);
    let survey = log.survey();
    let mut event = Event::default();
    for &number in buffers {
        let Some(buffer) = survey.buffers.list.get(number) else { continue };
        let mut decoder = buffer.decoder(&log.source, survey.dialect).skip_backtraces(without_backtraces);
        let mut at = EventContext { buffer: number, time: buffer.header.time_base };
        while let Some(Ok(())) = decoder.read(&mut event) {
            at.time = event.time.unwrap_or(at.time);
            each(&at, buffer, &event);
        }
    }
}

/// The same for events of the given kinds only, which is faster if they are rare. They have backtraces only if
/// `stacks`.
#[inline]
pub fn for_each_event_of(
    log: &LogData,
    buffers: &[usize],
    kinds: KindSet,
    stacks: bool,
    mut each: impl FnMut(&EventContext, &Event<'_>),
) {
    let without_backtraces = if stacks { KindSet::all().without(kinds) } else { KindSet::all() };
    for &buffer in buffers {
        log.survey().for_each_event(&log.source, buffer, kinds, without_backtraces, |time, event| {
            each(&EventContext { buffer, time }, event);
        });
    }
}

/// Collects what `pick` appends for events of these kinds, in file order.
pub fn collect_events<T: Send>(
    log: &LogData,
    kinds: KindSet,
    pick: impl Fn(&EventContext, &EventBuffer, &Event<'_>, &mut Vec<T>) + Sync,
) -> Vec<T> {
    let buffers = &log.survey().buffers.list;
    collect_events_of(log, kinds, true, |at, event, found| {
        if let Some(buffer) = buffers.get(at.buffer) {
            pick(at, buffer, event, found);
        }
    })
}

/// The same, with backtraces only if `stacks`.
pub fn collect_events_of<T: Send>(
    log: &LogData,
    kinds: KindSet,
    stacks: bool,
    pick: impl Fn(&EventContext, &Event<'_>, &mut Vec<T>) + Sync,
) -> Vec<T> {
    let groups = buffer_groups(log, kinds, &BufferSelection::default());
    let collect_group = |group: Vec<usize>| {
        let mut found = Vec::new();
        for_each_event_of(log, &group, kinds, stacks, |at, event| pick(at, event, &mut found));
        release(log, &group);
        found
    };
    let parts: Vec<_> = install(|| groups.into_par_iter().map(in_call(collect_group)).collect());
    parts.into_iter().flatten().collect()
}

/// Returns the pages of buffers to the system.
fn release(log: &LogData, group: &[usize]) {
    let buffer = |number: Option<&usize>| log.survey().buffers.list.get(*number?);
    log.source.release(file_range(buffer(group.first()), buffer(group.last())));
}

/// A table whose batches `make` builds from groups of buffers, in parallel, on demand.
pub fn scan_batches(
    log: &Arc<LogData>,
    kinds: KindSet,
    make: impl Fn(&LogData, &[usize]) -> RecordBatch + Send + Sync + 'static,
) -> BatchStream {
    scan_selected_batches(log, kinds, &BufferSelection::default(), make)
}

/// The same for selected buffers.
pub fn scan_selected_batches(
    log: &Arc<LogData>,
    kinds: KindSet,
    selection: &BufferSelection,
    make: impl Fn(&LogData, &[usize]) -> RecordBatch + Send + Sync + 'static,
) -> BatchStream {
    let pending = buffer_groups(log, kinds, selection).into_iter().collect();
    Box::new(ScanBatches { log: Arc::clone(log), pending, ready: VecDeque::new(), make })
}

/// Builds the batches of a table in parallel, as many at a time as there are threads. More would not be right: a thread that waits
/// for a part of a value that `make` needs, such as the stacks of the log, would take up another batch, which needs the same value.
struct ScanBatches<F> {
    log: Arc<LogData>,
    pending: VecDeque<Vec<usize>>,
    /// Batches that are ready.
    ready: VecDeque<RecordBatch>,
    make: F,
}

impl<F: Fn(&LogData, &[usize]) -> RecordBatch + Send + Sync> Iterator for ScanBatches<F> {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.ready.is_empty() {
            let num = self.pending.len().min(num_threads());
            let groups: Vec<_> = self.pending.drain(..num).collect();
            let make = |group: &Vec<usize>| (self.make)(&self.log, group);
            self.ready = install(|| groups.par_iter().map(in_call(make)).collect());
            groups.iter().for_each(|group| release(&self.log, group));
        }
        self.ready.pop_front()
    }
}
