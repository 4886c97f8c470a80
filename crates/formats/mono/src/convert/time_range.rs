//! Selection of the events in a range of time.
//!
//! Intervals that overlap the range are retained whole: calls and their callers, collections, lock waits, finalizers
//! and heapshots. So stacks and durations in the result are correct.

use std::ops::Range;

use perfuse_recording::Recording;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::consts::{EventByte, gc, monitor};
use crate::recording::MonoLog;
use crate::records::{Event, EventBody};

/// The events of a log that a time range selects.
#[derive(Debug)]
pub struct TimeRangeFilter {
    range: Range<u64>,
    /// Offsets of events outside the range that belong to an interval which overlaps it.
    retained: FxHashSet<u64>,
    /// Heapshots of each thread in file order: offsets of the first and last event, and whether it is retained.
    heapshots: FxHashMap<u64, Vec<(Range<u64>, bool)>>,
}

impl TimeRangeFilter {
    /// Finds the intervals of a log that overlap a range.
    pub fn new(log: &MonoLog, range: Range<u64>) -> Self {
        let (data, survey) = (log.data(), log.survey());
        let threads = &data.names().threads;
        let mut all: FxHashMap<u32, OpenIntervals> = FxHashMap::default();
        let mut retained = FxHashSet::default();
        let mut event = Event::default();
        for (number, buffer) in survey.buffers.list.iter().enumerate() {
            let thread = all.entry(threads.of_buffer(number)).or_default();
            let mut decoder = buffer.decoder(log.source(), survey.dialect);
            let mut time = buffer.header.time_base;
            while let Some(Ok(())) = decoder.read(&mut event) {
                time = event.time.unwrap_or(time);
                thread.add_event(&event, time >= range.start, range.contains(&time), &mut retained);
            }
        }
        let heapshots = find_heapshots(log, &range);
        Self { range, retained, heapshots }
    }

    /// Whether an event is retained.
    pub fn retains(&self, event: &Event<'_>, thread: u64, time: u64) -> bool {
        if matches!(
            event.body,
            EventBody::HeapshotBoundary | EventBody::HeapObject(_) | EventBody::HeapRoot(_)
        ) && let Some(is_retained) = self.heapshot_retained(thread, event.offset)
        {
            return is_retained;
        }
        self.range.contains(&time) || self.retained.contains(&event.offset)
    }

    /// Whether the heapshot that contains an offset is retained; `None` outside of heapshots.
    fn heapshot_retained(&self, thread: u64, offset: u64) -> Option<bool> {
        let own = self.heapshots.get(&thread)?;
        let next = own.partition_point(|(offsets, _)| offsets.start <= offset);
        let (offsets, is_retained) = own.get(next.checked_sub(1)?)?;
        (offset <= offsets.end).then_some(*is_retained)
    }
}

/// Offset ranges of the heapshots of each thread, and whether they overlap the time range.
fn find_heapshots(log: &MonoLog, range: &Range<u64>) -> FxHashMap<u64, Vec<(Range<u64>, bool)>> {
    let mut heapshots: FxHashMap<u64, Vec<(Range<u64>, bool)>> = FxHashMap::default();
    let mut start_times: FxHashMap<u64, u64> = FxHashMap::default();
    for boundary in &log.survey().events.definitions.heapshots {
        let own = heapshots.entry(boundary.thread).or_default();
        if boundary.is_start {
            start_times.insert(boundary.thread, boundary.time);
            own.push((boundary.offset..u64::MAX, boundary.time < range.end));
        } else if let Some(start_time) = start_times.remove(&boundary.thread)
            && let Some((offsets, is_retained)) = own.last_mut()
        {
            offsets.end = boundary.offset;
            *is_retained = start_time < range.end && boundary.time >= range.start;
        }
    }
    heapshots
}

/// Time of an event: its own, or that of the previous timed event (`previous`).
pub fn event_time(event: &Event<'_>, previous: u64) -> u64 {
    match (event.time, &event.body) {
        (None, EventBody::SampleHit { timestamp, .. }) if event.byte == EventByte::SAMPLE_HIT => *timestamp,
        (time, _) => time.unwrap_or(previous),
    }
}

/// An interval other than a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum IntervalKind {
    /// A phase of a collection, by the event that starts it.
    Gc(u64),
    /// A wait for the lock of an object.
    Monitor(u64),
    /// A round of the finalizer thread.
    Finalize,
    /// The finalizer of an object.
    FinalizeObject(u64),
}

/// The interval that an event starts (`true`) or ends.
fn interval_edge(event: &Event<'_>) -> Option<(bool, IntervalKind)> {
    Some(match event.body {
        EventBody::GcEvent { event, .. } => match event {
            gc::START | gc::PRE_STOP_WORLD | gc::POST_STOP_WORLD | gc::PRE_STOP_WORLD_LOCKED | 1 | 3 => {
                (true, IntervalKind::Gc(event))
            }
            gc::END => (false, IntervalKind::Gc(gc::START)),
            gc::POST_START_WORLD => (false, IntervalKind::Gc(gc::PRE_STOP_WORLD)),
            gc::PRE_START_WORLD => (false, IntervalKind::Gc(gc::POST_STOP_WORLD)),
            gc::POST_START_WORLD_UNLOCKED => (false, IntervalKind::Gc(gc::PRE_STOP_WORLD_LOCKED)),
            2 | 4 => (false, IntervalKind::Gc(event.wrapping_sub(1))),
            _ => return None,
        },
        EventBody::Monitor { event, object } => (event == monitor::CONTENTION, IntervalKind::Monitor(object)),
        EventBody::Finalize => (event.byte == EventByte::GC_FINALIZE_START, IntervalKind::Finalize),
        EventBody::FinalizeObject { object } => {
            (event.byte == EventByte::GC_FINALIZE_OBJECT_START, IntervalKind::FinalizeObject(object))
        }
        _ => return None,
    })
}

/// The open intervals of one thread.
/// Whether the time range has started.
#[derive(Debug, Default)]
pub struct OpenIntervals {
    /// Open calls, outermost first.
    has_started: bool,
    calls: Vec<OpenInterval>,
    /// Number of open calls of each method, so that unmatched leaves are not searched.
    num_open: FxHashMap<u64, u32>,
    intervals: FxHashMap<IntervalKind, OpenInterval>,
}

/// An open call or interval.
#[derive(Clone, Copy, Debug)]
struct OpenInterval {
    method: u64,
    /// Offset of its start event.
    offset: u64,
    /// Whether it overlaps the time range.
    is_retained: bool,
}

impl OpenIntervals {
    /// Processes an event. Offsets of events outside the range that belong to an interval which overlaps it are added
    /// to `retained`.
    pub fn add_event(
        &mut self,
        event: &Event<'_>,
        has_begun: bool,
        is_inside: bool,
        retained: &mut FxHashSet<u64>,
    ) {
        if has_begun && !self.has_started {
            self.has_started = true;
            for open in self.calls.iter_mut().chain(self.intervals.values_mut()) {
                open.is_retained = true;
                retained.insert(open.offset);
            }
        }
        let offset = event.offset;
        if let EventBody::Call { method } = event.body {
            if event.byte == EventByte::METHOD_ENTER {
                let count = self.num_open.entry(method).or_default();
                *count = count.saturating_add(1);
                self.calls.push(OpenInterval { method, offset, is_retained: is_inside });
            } else if self.close_call(method) {
                retained.insert(offset);
            }
            return;
        }
        let Some((starts, kind)) = interval_edge(event) else { return };
        if starts {
            self.intervals.insert(kind, OpenInterval { method: 0, offset, is_retained: is_inside });
        } else if self.intervals.remove(&kind).is_some_and(|open| open.is_retained) {
            retained.insert(offset);
        }
    }

    /// Closes the innermost call of a method and the calls nested in it; returns whether that call is retained.
    fn close_call(&mut self, method: u64) -> bool {
        if self.num_open.get(&method).is_none_or(|&count| count == 0) {
            return false;
        }
        while let Some(call) = self.calls.pop() {
            if let Some(count) = self.num_open.get_mut(&call.method) {
                *count = count.saturating_sub(1);
            }
            if call.method == method {
                return call.is_retained;
            }
        }
        false
    }
}
