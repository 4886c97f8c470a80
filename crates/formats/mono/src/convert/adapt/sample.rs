//! Conversion of samples and counters.

use super::Adapter;
use crate::consts::PERFCOUNTERS;
use crate::convert::misfits::{Misfit, Written};
use crate::records::{Body, Event, SampleFrame};

/// Nanoseconds per millisecond.
const MS: u64 = 1_000_000;
/// The position of a frame whose offsets are unknown.
const UNKNOWN_PLACE: SampleFrame = SampleFrame { il_offset: -1, native_offset: 0 };

impl Adapter {
    /// Converts samples and counters.
    pub(super) fn sampled(&mut self, event: &mut Event<'_>, thread: u64, time: u64, written: &mut Written) {
        match event.body {
            Body::SampleHit { .. } => self.sample(event, thread, written),
            Body::CountersDesc => self.descriptions(event, written),
            Body::Counters { .. } => self.values(event, time, written),
            _ => {}
        }
    }

    /// Converts a sample. `buffer` is the thread of its buffer.
    fn sample(&self, event: &mut Event<'_>, buffer: u64, written: &mut Written) {
        let (from, to) = (self.from, self.to);
        let Body::SampleHit { kind, stamp, thread } = &mut event.body else { return };
        if from.version < 11 {
            *thread = buffer;
        }
        match (from.modern(), to.modern()) {
            (false, true) => event.time = Some(*stamp),
            (true, false) => *stamp = event.time.unwrap_or(0),
            _ => {}
        }
        if to.version >= 14 && !to.early.sample_type && *kind != 0 {
            written.add(Misfit::SampleTypes, 1);
        }
        if to.version < 6 && !event.frames.is_empty() {
            written.add(Misfit::SampleStacks, 1);
        }
        let placed = |version: u8| (6..=12).contains(&version);
        let num = event.frames.len();
        if placed(to.version) && !placed(from.version) {
            event.places.clear();
            event.places.resize(num, UNKNOWN_PLACE);
        }
        if placed(from.version) && to.modern() || placed(to.version) && from.modern() {
            written.add(Misfit::SamplePlaces, num as u64);
        }
    }

    /// Converts counter descriptions.
    fn descriptions(&self, event: &mut Event<'_>, written: &mut Written) {
        let before = event.descriptions.len();
        if self.to.version < 7 {
            event.descriptions.retain(|it| it.section != PERFCOUNTERS);
        }
        written.add(Misfit::Counters, before.saturating_sub(event.descriptions.len()) as u64);
        if self.to.counter_bytes() {
            for it in event.descriptions.iter_mut().filter(|it| it.unit > 0xff || it.variance > 0xff) {
                (it.unit, it.variance) = (0, 0);
                written.add(Misfit::CounterUnits, 1);
            }
        }
    }

    /// Converts counter values.
    fn values(&mut self, event: &mut Event<'_>, time: u64, written: &mut Written) {
        let before = event.values.len();
        if self.to.version < 7 {
            event.values.retain(|it| !self.performance.contains(&it.index));
        }
        written.add(Misfit::Counters, before.saturating_sub(event.values.len()) as u64);
        // Mono 4.6 writes 0 as the time of the first values.
        let known = event.time.filter(|time| *time != 0);
        let since = *self.counters_since.get_or_insert(known.unwrap_or(time));
        let Body::Counters { ms } = &mut event.body else { return };
        match (self.from.modern(), self.to.modern()) {
            (false, true) => event.time = Some(since.wrapping_add(ms.wrapping_mul(MS))),
            (true, false) => {
                *ms = known.unwrap_or(since).saturating_sub(since).wrapping_div(MS);
                written.add(Misfit::CounterTimes, 1);
            }
            _ => {}
        }
    }
}
