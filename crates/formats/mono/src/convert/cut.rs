//! Cuts a range of time out of a log.
//!
//! What overlaps the range is kept whole: calls and the calls around them, collections, waits, finalizers, heap shots. So what
//! is cut out has stacks and durations that are true.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use super::brackets::Thread;
use crate::MonoLog;
use crate::consts::EventByte;
use crate::records::{Body, Event};
use perfuse_recording::Recording;

/// Which events of a log are kept.
#[derive(Debug)]
pub struct Cut {
    range: Range<u64>,
    /// Offsets of events outside the range that belong to something that overlaps it.
    kept: FxHashSet<u64>,
    /// Of each thread, in the order of the file: offsets of a shot's first event and of its last, and whether it is kept.
    shots: FxHashMap<u64, Vec<(Range<u64>, bool)>>,
}

impl Cut {
    /// Looks over a log.
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

    /// Whether an event is kept.
    pub fn has(&self, event: &Event<'_>, thread: u64, time: u64) -> bool {
        if matches!(event.body, Body::HeapMark | Body::HeapObject(_) | Body::HeapRoot(_))
            && let Some(is_kept) = self.of_shot(thread, event.offset)
        {
            return is_kept;
        }
        self.range.contains(&time) || self.kept.contains(&event.offset)
    }

    fn of_shot(&self, thread: u64, offset: u64) -> Option<bool> {
        let own = self.shots.get(&thread)?;
        let next = own.partition_point(|(places, _)| places.start <= offset);
        let (places, is_kept) = own.get(next.checked_sub(1)?)?;
        (offset <= places.end).then_some(*is_kept)
    }
}

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

/// When an event was, by what the log says: its own time, or that of the one before it.
pub fn time_of(event: &Event<'_>, before: u64) -> u64 {
    match (event.time, &event.body) {
        (None, Body::SampleHit { stamp, .. }) if event.byte == EventByte::SAMPLE_HIT => *stamp,
        (time, _) => time.unwrap_or(before),
    }
}
