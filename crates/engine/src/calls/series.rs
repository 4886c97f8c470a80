//! Series: calls whose figures are reported together.

use perfuse_tables::{EndReason, StartReason};
use rustc_hash::FxHashMap;

use super::durations::Durations;
use super::visitor::Leave;

/// Calls whose figures are reported together.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    pub caller_id: u32,
    pub function_id: u32,
    pub group: u32,
    pub counts: EndCounts,
}

/// Numbers of calls that did not simply begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndCounts {
    /// Left without an exit, by an exception or `longjmp`.
    pub num_unwound: u64,
    /// Ended by jumping into the next function.
    pub num_tail_calls: u64,
    /// Still open at the end of the recording, or of the selected time.
    pub num_truncated: u64,
    /// Already open at its start.
    pub num_lost: u64,
    /// Exits in the middle of other calls that belong to no entry: not calls.
    pub num_orphans: u64,
}

impl EndCounts {
    fn add(&mut self, leave: &Leave) {
        match leave.reason {
            EndReason::Exit => {}
            EndReason::TailCall => self.num_tail_calls = self.num_tail_calls.saturating_add(1),
            EndReason::Unwound => self.num_unwound = self.num_unwound.saturating_add(1),
            EndReason::Truncated => self.num_truncated = self.num_truncated.saturating_add(1),
        }
        self.num_lost = self.num_lost.saturating_add((leave.start_reason == StartReason::Lost).into());
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.num_unwound = self.num_unwound.saturating_add(other.num_unwound);
        self.num_tail_calls = self.num_tail_calls.saturating_add(other.num_tail_calls);
        self.num_truncated = self.num_truncated.saturating_add(other.num_truncated);
        self.num_lost = self.num_lost.saturating_add(other.num_lost);
        self.num_orphans = self.num_orphans.saturating_add(other.num_orphans);
    }
}

/// Series, and the durations of each. A node has the number of its series, with [`EXCLUDED`] set where only its other counts are
/// needed: then there are no durations with that number.
#[derive(Debug, Default)]
pub struct SeriesList {
    pub list: Vec<Series>,
    /// Separate from `list`, because they are accessed for every call.
    pub durations: Vec<Durations>,
    by_key: FxHashMap<(u32, u32, u32), u32>,
}

/// See [`SeriesList`].
pub(super) const EXCLUDED: u32 = 1 << 31;

impl SeriesList {
    /// The series of a caller (or none), a function and a group.
    pub fn of(&mut self, caller_id: u32, function_id: u32, group: u32) -> u32 {
        let next = self.list.len() as u32;
        let found = *self.by_key.entry((caller_id, function_id, group)).or_insert(next);
        if found == next { self.new_of(caller_id, function_id, group) } else { found }
    }

    /// A new series.
    pub fn new_of(&mut self, caller_id: u32, function_id: u32, group: u32) -> u32 {
        let number = self.list.len() as u32;
        self.list.push(Series { caller_id, function_id, group, counts: EndCounts::default() });
        self.durations.push(Durations::default());
        number
    }

    /// Moves the counts of a series of another list to a series of this list.
    pub fn take(&mut self, series: u32, other: &mut Self, its: u32) {
        let (series, its) = ((series & !EXCLUDED) as usize, (its & !EXCLUDED) as usize);
        if let (Some(series), Some(its)) = (self.list.get_mut(series), other.list.get_mut(its)) {
            series.counts.merge(std::mem::take(&mut its.counts));
        }
        if let (Some(durations), Some(its)) = (self.durations.get_mut(series), other.durations.get_mut(its)) {
            durations.append(std::mem::take(its));
        }
    }

    /// Counts a call of a series at its end.
    #[inline(always)]
    pub fn add(&mut self, series: u32, leave: &Leave) {
        let was_begun = leave.start_reason == StartReason::Entry;
        if !(was_begun && leave.reason == EndReason::Exit)
            && let Some(series) = self.list.get_mut((series & !EXCLUDED) as usize)
        {
            series.counts.add(leave);
        }
        // The duration is only known of a call that was recorded as a whole.
        if was_begun
            && leave.reason != EndReason::Truncated
            && let Some(durations) = self.durations.get_mut(series as usize)
        {
            durations.push(leave.duration_ns);
        }
    }
}
