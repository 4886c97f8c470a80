//! Parallel scans of the buffers that contain certain kinds of events, with results in file order.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use perfuse_recording::BatchStream;
use perfuse_workers::{in_call, install, num_threads};
use rayon::prelude::*;

use crate::consts::{EventByte, KindSet};
use crate::log::LogData;
use crate::open_calls::{self, KnownPaths};
use crate::reader::{EventBuffer, file_range};
use crate::records::Event;
use crate::stacks::LogStacks;

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

/// The same with the stack of each event: that of its backtrace, or that of the open calls of its thread. No event has one without
/// `stacks`.
#[inline]
pub fn for_each_event_and_stack(
    log: &LogData,
    buffers: &[usize],
    kinds: KindSet,
    stacks: Option<&LogStacks>,
    mut each: impl FnMut(&EventContext, &Event<'_>, Option<u32>),
) {
    let (survey, names) = (log.survey(), log.names());
    let of_open_calls =
        if stacks.is_some() { open_calls::kinds(survey).and(kinds) } else { KindSet::default() };
    let open_calls = log.open_calls(of_open_calls);
    let backtrace =
        |time, event: &Event<'_>| stacks.and_then(|stacks| stacks.find_backtrace(&event.frames, names, time));
    let mut known = KnownPaths::default();
    for &buffer in buffers {
        let needs_calls = survey.events.kinds.get(buffer).is_some_and(|kinds| kinds.meets(of_open_calls));
        let Some((LogStacks { tree, .. }, open_calls)) = stacks.zip(open_calls).filter(|_| needs_calls)
        else {
            for_each_event_of(log, &[buffer], kinds, stacks.is_some(), |at, event| {
                each(at, event, backtrace(at.time, event));
            });
            continue;
        };
        open_calls.for_each_event(log.named(), buffer, kinds, |time, event, calls| {
            let stack = if of_open_calls.has(event.byte) {
                calls.stack(&mut known, |caller, function| tree.find_call(caller, function))
            } else {
                backtrace(time, event)
            };
            each(&EventContext { buffer, time }, event, stack);
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
    collect(log, kinds, |group, found| {
        for_each_event_of(log, group, kinds, true, |at, event| {
            if let Some(buffer) = buffers.get(at.buffer) {
                pick(at, buffer, event, found);
            }
        });
    })
}

/// The same, with the stack of each event if `stacks`.
pub fn collect_events_and_stacks<T: Send>(
    log: &LogData,
    kinds: KindSet,
    stacks: Option<&LogStacks>,
    pick: impl Fn(&EventContext, &Event<'_>, Option<u32>, &mut Vec<T>) + Sync,
) -> Vec<T> {
    collect(log, kinds, |group, found| {
        for_each_event_and_stack(log, group, kinds, stacks, |at, event, stack| pick(at, event, stack, found));
    })
}

/// Collects what `pick` appends for groups of buffers that contain events of these kinds, in parallel; in file order.
fn collect<T: Send>(log: &LogData, kinds: KindSet, pick: impl Fn(&[usize], &mut Vec<T>) + Sync) -> Vec<T> {
    let groups = buffer_groups(log, kinds, &BufferSelection::default());
    let collect_group = |group: Vec<usize>| {
        let mut found = Vec::new();
        pick(&group, &mut found);
        release(log, &group);
        found
    };
    let parts: Vec<_> = install(|| groups.into_par_iter().map(in_call(collect_group)).collect());
    parts.into_iter().flatten().collect()
}

/// Returns the pages of a group of buffers to the system.
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
    scan_prepared_batches(log, kinds, selection, |_| (), move |log, group, (): &mut ()| make(log, group))
}

/// The same; `prepare` computes those values of the log that `make` needs and that are computed in parallel, such as its stacks.
/// `make` also gets what an earlier call of it stored, of whichever batch.
pub fn scan_prepared_batches<S: Default + Send + 'static>(
    log: &Arc<LogData>,
    kinds: KindSet,
    selection: &BufferSelection,
    prepare: impl FnOnce(&LogData) + Send + 'static,
    make: impl Fn(&LogData, &[usize], &mut S) -> RecordBatch + Send + Sync + 'static,
) -> BatchStream {
    let pending = buffer_groups(log, kinds, selection).into_iter().collect();
    let (log, prepare) = (Arc::clone(log), Some(prepare));
    let (ready, stored) = (VecDeque::new(), Mutex::default());
    Box::new(ScanBatches { log, pending, ready, per_thread: 1, prepare, make, stored })
}

/// Most batches that a thread makes at a time. The threads wait for the last one.
const MOST_PER_THREAD: usize = 4;

/// Builds the batches of a table in parallel, several at a time. The values that all need are computed before: a thread that waits
/// for a part of such a value would take up another batch, which waits for the same value.
struct ScanBatches<P, F, S> {
    log: Arc<LogData>,
    pending: VecDeque<Vec<usize>>,
    /// Batches that are ready.
    ready: VecDeque<RecordBatch>,
    /// Batches that each thread makes next: few at first, since the first ones may be enough.
    per_thread: usize,
    /// Until the first batch.
    prepare: Option<P>,
    make: F,
    /// What `make` stored, one for each thread.
    stored: Mutex<Vec<S>>,
}

impl<P, F, S> Iterator for ScanBatches<P, F, S>
where
    P: FnOnce(&LogData),
    F: Fn(&LogData, &[usize], &mut S) -> RecordBatch + Send + Sync,
    S: Default + Send,
{
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if let Some(prepare) = self.prepare.take() {
            prepare(&self.log);
        }
        if self.ready.is_empty() {
            let num = self.pending.len().min(num_threads().saturating_mul(self.per_thread));
            self.per_thread = self.per_thread.saturating_mul(2).min(MOST_PER_THREAD);
            let groups: Vec<_> = self.pending.drain(..num).collect();
            let Self { log, make, stored, .. } = &*self;
            let stored = || stored.lock().unwrap_or_else(PoisonError::into_inner);
            let make = |group: &Vec<usize>| {
                let mut own = stored().pop().unwrap_or_default();
                let batch = make(log, group, &mut own);
                stored().push(own);
                batch
            };
            self.ready = install(|| groups.par_iter().with_max_len(1).map(in_call(make)).collect());
            groups.iter().for_each(|group| release(&self.log, group));
        }
        self.ready.pop_front()
    }
}
