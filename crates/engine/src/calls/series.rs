//! Calls whose figures are told together.

use perfuse_tables::{EndReason, StartReason};
use rustc_hash::FxHashMap;

use super::durations::Durations;
use super::visitor::Leave;

/// Calls whose figures are told together.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    pub caller_id: u32,
    pub function_id: u32,
    pub group: u32,
    pub counts: Counts,
}

/// How many calls did not simply begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
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

impl Counts {
    fn add(&mut self, leave: &Leave) {
        match leave.reason {
            EndReason::Exit => {}
            EndReason::TailCall => self.num_tail_calls += 1,
            EndReason::Unwound => self.num_unwound += 1,
            EndReason::Truncated => self.num_truncated += 1,
        }
        self.num_lost += u64::from(leave.start_reason == StartReason::Lost);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.num_unwound += other.num_unwound;
        self.num_tail_calls += other.num_tail_calls;
        self.num_truncated += other.num_truncated;
        self.num_lost += other.num_lost;
        self.num_orphans += other.num_orphans;
    }
}

/// Series, and the durations of each. A node has the number of its series, with [`UNWANTED`] added where only the other counts
/// of it are looked at: then there are no durations of that number.
#[derive(Debug, Default)]
pub struct SeriesList {
    pub list: Vec<Series>,
    /// By themselves, because they are needed for every call.
    pub durations: Vec<Durations>,
    known: FxHashMap<(u32, u32, u32), u32>,
}

/// See [`SeriesList`].
pub(super) const UNWANTED: u32 = 1 << 31;

impl SeriesList {
    /// The series of a caller (or none), a function and a group.
    pub fn of(&mut self, caller_id: u32, function_id: u32, group: u32) -> u32 {
        let next = self.list.len() as u32;
        let found = *self.known.entry((caller_id, function_id, group)).or_insert(next);
        if found == next { self.new_of(caller_id, function_id, group) } else { found }
    }

    pub fn new_of(&mut self, caller_id: u32, function_id: u32, group: u32) -> u32 {
        self.list.push(Series { caller_id, function_id, group, counts: Counts::default() });
        self.durations.push(Durations::default());
        self.list.len() as u32 - 1
    }

    /// Moves what is counted in a series of another list to one of this.
    pub fn take(&mut self, series: u32, other: &mut Self, its: u32) {
        let (series, its) = ((series & !UNWANTED) as usize, (its & !UNWANTED) as usize);
        self.list[series].counts.merge(std::mem::take(&mut other.list[its].counts));
        self.durations[series].append(std::mem::take(&mut other.durations[its]));
    }

    /// A call of a series ends.
    #[inline(always)]
    pub fn add(&mut self, series: u32, leave: &Leave) {
        let was_begun = leave.start_reason == StartReason::Entry;
        if !(was_begun && leave.reason == EndReason::Exit)
            && let Some(series) = self.list.get_mut((series & !UNWANTED) as usize)
        {
            series.counts.add(leave);
        }
        // How long a call took is only known of one that was seen whole.
        if was_begun
            && leave.reason != EndReason::Truncated
            && let Some(durations) = self.durations.get_mut(series as usize)
        {
            durations.push(leave.duration_ns);
        }
    }
}
