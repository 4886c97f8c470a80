//! Conversion of samples and counters.

use super::Adapter;
use crate::consts::PERFCOUNTERS;
use crate::convert::misfits::{ConvertSummary, UnsupportedItem};
use crate::records::{Event, EventBody, FramePosition};

/// Nanoseconds per millisecond.
const NS_PER_MS: u64 = 1_000_000;
/// The position of a frame whose offsets are unknown.
const UNKNOWN_POSITION: FramePosition = FramePosition { il_offset: -1, native_offset: 0 };

impl Adapter {
    /// Converts samples and counters.
    pub(super) fn adapt_sample(
        &mut self,
        event: &mut Event<'_>,
        thread: u64,
        time: u64,
        summary: &mut ConvertSummary,
    ) {
        match event.body {
            EventBody::SampleHit { .. } => self.adapt_hit(event, thread, summary),
            EventBody::CountersDesc => self.adapt_descriptions(event, summary),
            EventBody::Counters { .. } => self.adapt_values(event, time, summary),
            _ => {}
        }
    }

    /// Converts a sample. `buffer` is the thread of its buffer.
    fn adapt_hit(&self, event: &mut Event<'_>, buffer: u64, summary: &mut ConvertSummary) {
        let (from, to) = (self.from, self.to);
        let EventBody::SampleHit { kind, timestamp, thread } = &mut event.body else { return };
        if from.version < 11 {
            *thread = buffer;
        }
        match (from.since_v13(), to.since_v13()) {
            (false, true) => event.time = Some(*timestamp),
            (true, false) => *timestamp = event.time.unwrap_or(0),
            _ => {}
        }
        if to.version >= 14 && !to.prerelease.sample_type && *kind != 0 {
            summary.count_item(UnsupportedItem::SampleTypes, 1);
        }
        if to.version < 6 && !event.frames.is_empty() {
            summary.count_item(UnsupportedItem::SampleStacks, 1);
        }
        let has_positions = |version: u8| (6..=12).contains(&version);
        let num = event.frames.len();
        if has_positions(to.version) && !has_positions(from.version) {
            event.frame_positions.clear();
            event.frame_positions.resize(num, UNKNOWN_POSITION);
        }
        if has_positions(from.version) && to.since_v13() || has_positions(to.version) && from.since_v13() {
            summary.count_item(UnsupportedItem::SamplePositions, num as u64);
        }
    }

    /// Converts counter descriptions.
    fn adapt_descriptions(&self, event: &mut Event<'_>, summary: &mut ConvertSummary) {
        let before = event.descriptions.len();
        if self.to.version < 7 {
            event.descriptions.retain(|it| it.section != PERFCOUNTERS);
        }
        summary.count_item(UnsupportedItem::Counters, before.saturating_sub(event.descriptions.len()) as u64);
        if self.to.has_byte_counter_fields() {
            for it in event.descriptions.iter_mut().filter(|it| it.unit > 0xff || it.variance > 0xff) {
                (it.unit, it.variance) = (0, 0);
                summary.count_item(UnsupportedItem::CounterUnits, 1);
            }
        }
    }

    /// Converts counter values.
    fn adapt_values(&mut self, event: &mut Event<'_>, time: u64, summary: &mut ConvertSummary) {
        let before = event.values.len();
        if self.to.version < 7 {
            event.values.retain(|it| !self.performance_counters.contains(&it.index));
        }
        summary.count_item(UnsupportedItem::Counters, before.saturating_sub(event.values.len()) as u64);
        // Mono 4.6 writes 0 as the time of the first values.
        let known = event.time.filter(|time| *time != 0);
        let start = *self.first_counter_time.get_or_insert(known.unwrap_or(time));
        let EventBody::Counters { ms } = &mut event.body else { return };
        match (self.from.since_v13(), self.to.since_v13()) {
            (false, true) => event.time = Some(start.wrapping_add(ms.wrapping_mul(NS_PER_MS))),
            (true, false) => {
                *ms = known.unwrap_or(start).saturating_sub(start).wrapping_div(NS_PER_MS);
                summary.count_item(UnsupportedItem::CounterTimes, 1);
            }
            _ => {}
        }
    }
}
