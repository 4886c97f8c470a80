//! Selection of the events in a range of time. Intervals that overlap the range are retained whole: calls and their
//! callers, collections, lock waits, finalizers and heapshots. So stacks and durations in the result are correct.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::brackets::OpenIntervals;
use crate::MonoLog;
use crate::consts::EventByte;
use crate::records::{Event, EventBody};
use perfuse_recording::Recording;

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
        let (shared, survey) = (log.shared_data(), log.survey());
        let threads = &shared.names().threads;
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
    for boundary in &log.survey().definitions.heapshots {
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
