//! Selection of the events in a range of time. Intervals that overlap the range are retained whole: calls and their
//! callers, collections, lock waits, finalizers and heapshots. So stacks and durations in the result are correct.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::brackets::Thread;
use crate::MonoLog;
use crate::consts::EventByte;
use crate::records::{Body, Event};
use perfuse_recording::Recording;

/// The events of a log that a time range selects.
#[derive(Debug)]
pub struct Cut {
    range: Range<u64>,
    /// Offsets of events outside the range that belong to an interval which overlaps it.
    kept: FxHashSet<u64>,
    /// Heapshots of each thread in file order: offsets of the first and last event, and whether it is retained.
    shots: FxHashMap<u64, Vec<(Range<u64>, bool)>>,
}

impl Cut {
    /// Finds the intervals of a log that overlap a range.
    pub fn new(log: &MonoLog, range: Range<u64>) -> Self {
        let (shared, survey) = (log.share(), log.survey());
        let threads = &shared.names().threads;
        let mut all: FxHashMap<u32, Thread> = FxHashMap::default();
        let mut kept = FxHashSet::default();
        let mut event = Event::default();
        for (number, buffer) in survey.buffers.list.iter().enumerate() {
            let thread = all.entry(threads.of_buffer(number)).or_default();
            let mut decoder = buffer.decoder(log.source(), survey.dialect);
            let mut time = buffer.header.time_base;
            while let Some(Ok(())) = decoder.read(&mut event) {
                time = event.time.unwrap_or(time);
                thread.event(&event, time >= range.start, range.contains(&time), &mut kept);
            }
        }
        let shots = shots(log, &range);
        Self { range, kept, shots }
    }

    /// Whether an event is retained.
    pub fn has(&self, event: &Event<'_>, thread: u64, time: u64) -> bool {
        if matches!(event.body, Body::HeapMark | Body::HeapObject(_) | Body::HeapRoot(_))
            && let Some(is_kept) = self.of_shot(thread, event.offset)
        {
            return is_kept;
        }
        self.range.contains(&time) || self.kept.contains(&event.offset)
    }

    /// Whether the heapshot that contains an offset is retained; `None` outside of heapshots.
    fn of_shot(&self, thread: u64, offset: u64) -> Option<bool> {
        let own = self.shots.get(&thread)?;
        let next = own.partition_point(|(places, _)| places.start <= offset);
        let (places, is_kept) = own.get(next.checked_sub(1)?)?;
        (offset <= places.end).then_some(*is_kept)
    }
}

/// Offset ranges of the heapshots of each thread, and whether they overlap the time range.
fn shots(log: &MonoLog, range: &Range<u64>) -> FxHashMap<u64, Vec<(Range<u64>, bool)>> {
    let mut shots: FxHashMap<u64, Vec<(Range<u64>, bool)>> = FxHashMap::default();
    let mut since: FxHashMap<u64, u64> = FxHashMap::default();
    for mark in &log.survey().facts.shots {
        let own = shots.entry(mark.thread).or_default();
        if mark.begins {
            since.insert(mark.thread, mark.time);
            own.push((mark.offset..u64::MAX, mark.time < range.end));
        } else if let Some(begun) = since.remove(&mark.thread)
            && let Some((places, is_kept)) = own.last_mut()
        {
            places.end = mark.offset;
            *is_kept = begun < range.end && mark.time >= range.start;
        }
    }
    shots
}

/// Time of an event: its own, or that of the previous timed event (`before`).
pub fn time_of(event: &Event<'_>, before: u64) -> u64 {
    match (event.time, &event.body) {
        (None, Body::SampleHit { stamp, .. }) if event.byte == EventByte::SAMPLE_HIT => *stamp,
        (time, _) => time.unwrap_or(before),
    }
}
