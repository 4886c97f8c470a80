//! Code objects by address and time, with moves and reuse of addresses.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::layered_space::LayeredSpace;
use crate::timed_space::{Interval, TimedSpace};

/// A piece of code: where it is, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedInTime {
    /// Key of the code object.
    pub code_object_id: u32,
    /// Key of the process.
    pub process_id: u32,
    /// Address at which it was created.
    pub start_address: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// When it was created.
    pub from_ns: i64,
    /// When other code replaced it; `i64::MAX` for never.
    pub until_ns: i64,
}

impl PlacedInTime {
    fn interval(&self, start: u64, from_ns: i64, until_ns: i64) -> Interval {
        Interval {
            start,
            end: start.saturating_add(self.size_bytes),
            from_ns,
            until_ns,
            id: self.code_object_id,
        }
    }
}

/// Moves of each code object: when, and to which address; in time order.
pub type Moves = FxHashMap<u32, Vec<(i64, u64)>>;

/// JIT code of processes. Code can be added at any time.
#[derive(Clone, Debug, Default)]
pub struct CodeMap {
    by_process: FxHashMap<u32, LayeredSpace>,
    /// How much later than code ran its time of creation may be, by process, in nanoseconds.
    late_ns: FxHashMap<u32, i64>,
}

/// The code object at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeHit {
    /// Key of the code object.
    pub code_object_id: u32,
    /// Bytes from its start, independent of its address at the time.
    pub code_offset: u64,
    /// Time since which it is there.
    pub from_ns: i64,
    /// Time until which it is there.
    pub until_ns: i64,
}

impl CodeMap {
    /// Adds code, with its moves. What is at an address from a time on ends earlier code there, also that of another dump of
    /// the process and code that moves away only later.
    pub fn extend(&mut self, code: impl IntoIterator<Item = PlacedInTime>, moves: &Moves) {
        let mut added: FxHashMap<u32, Vec<Interval>> = FxHashMap::default();
        for placed in code {
            let intervals = added.entry(placed.process_id).or_default();
            let (mut start, mut from) = (placed.start_address, placed.from_ns);
            for &(at, to) in moves.get(&placed.code_object_id).into_iter().flatten() {
                intervals.push(placed.interval(start, from, at.min(placed.until_ns)));
                (start, from) = (to, at);
            }
            intervals.push(placed.interval(start, from, placed.until_ns));
        }
        for (process_id, mut intervals) in added {
            end_replaced(&mut intervals);
            self.by_process.entry(process_id).or_default().extend(intervals);
        }
    }

    /// Adds code that does not move, of which none is where other code is at that time: that of one dump, which states when its
    /// code was overwritten.
    pub fn extend_apart(&mut self, code: impl IntoIterator<Item = PlacedInTime>) {
        let mut added: FxHashMap<u32, Vec<Interval>> = FxHashMap::default();
        for placed in code {
            let interval = placed.interval(placed.start_address, placed.from_ns, placed.until_ns);
            added.entry(placed.process_id).or_default().push(interval);
        }
        for (process_id, intervals) in added {
            self.by_process.entry(process_id).or_default().extend(intervals);
        }
    }

    /// Sets when code that was added, and never moved, was replaced.
    pub fn end(&mut self, placed: &PlacedInTime, until_ns: i64) {
        if let Some(space) = self.by_process.get_mut(&placed.process_id) {
            space.end(placed.start_address, placed.from_ns, placed.code_object_id, until_ns);
        }
    }

    /// States how much later than code of a process ran its times may be, in nanoseconds; the largest number counts.
    pub fn allow_late(&mut self, process_id: u32, late_ns: i64) {
        if late_ns > 0 {
            let known = self.late_ns.entry(process_id).or_insert(late_ns);
            *known = late_ns.max(*known);
        }
    }

    /// The code at an address at a time. Where there is none, code that was created later by no more than the uncertainty of
    /// its times: it cannot have run before.
    #[must_use]
    #[inline]
    pub fn find(&self, process_id: u32, address: u64, at_ns: i64) -> Option<CodeHit> {
        let space = self.by_process.get(&process_id)?;
        if let Some(found) = space.find(address, at_ns) {
            return Some(hit(found, address));
        }
        let late = *self.late_ns.get(&process_id)?;
        let found =
            space.find_next(address, at_ns).filter(|next| next.from_ns.saturating_sub(at_ns) <= late)?;
        Some(CodeHit { from_ns: at_ns, until_ns: found.from_ns, ..hit(found, address) })
    }

    /// The code at an address at a time in each process that has some there.
    pub fn find_all(&self, address: u64, at_ns: i64) -> impl Iterator<Item = (u32, CodeHit)> {
        let found = move |&process_id: &u32| Some((process_id, self.find(process_id, address, at_ns)?));
        self.by_process.keys().filter_map(found)
    }

    /// Each process that has code, and its code by address.
    pub fn spaces(&self) -> impl Iterator<Item = (u32, TimedSpace)> {
        self.by_process.iter().map(|(&process_id, space)| (process_id, space.whole()))
    }

    /// Whether there is ever code at an address.
    #[must_use]
    pub fn ever_contains(&self, process_id: u32, address: u64) -> bool {
        self.by_process.get(&process_id).is_some_and(|space| space.ever_contains(address))
    }
}

/// Ends each interval where one that begins later overlaps it; of those that begin at one time, the last one counts.
fn end_replaced(intervals: &mut [Interval]) {
    intervals.sort_by_key(|interval| interval.from_ns);
    // End and interval by start of what is there; these do not overlap.
    let mut there: BTreeMap<u64, (u64, &mut Interval)> = BTreeMap::new();
    for interval in intervals.iter_mut().filter(|it| it.start < it.end && it.from_ns < it.until_ns) {
        let (start, end, from_ns) = (interval.start, interval.end, interval.from_ns);
        while let Some((&first, &(last, _))) = there.range(..end).next_back() {
            if last <= start {
                break;
            }
            if let Some((_, replaced)) = there.remove(&first) {
                replaced.until_ns = replaced.until_ns.min(from_ns);
            }
        }
        there.insert(start, (end, interval));
    }
}

fn hit(interval: &Interval, address: u64) -> CodeHit {
    CodeHit {
        code_object_id: interval.id,
        code_offset: address.wrapping_sub(interval.start),
        from_ns: interval.from_ns,
        until_ns: interval.until_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(code_object_id: u32, from_ns: i64, until_ns: i64) -> PlacedInTime {
        PlacedInTime {
            code_object_id,
            process_id: 1,
            start_address: 0x1000,
            size_bytes: 0x100,
            from_ns,
            until_ns,
        }
    }

    #[test]
    fn code_moves_and_leaves_its_old_address() {
        let mut map = CodeMap::default();
        map.extend([placed(7, 100, 300)], &Moves::from_iter([(7, vec![(200, 0x8000)])]));
        let offset = |address, at| map.find(1, address, at).map(|hit| hit.code_offset);
        assert_eq!(offset(0x1010, 150), Some(0x10));
        assert_eq!(offset(0x1010, 250), None);
        assert_eq!(offset(0x8010, 250), Some(0x10));
        assert_eq!(offset(0x8010, 300), None);
        assert_eq!(map.find(2, 0x1010, 150), None);
    }

    #[test]
    fn code_that_moves_to_where_other_code_was_is_found_there_before_that_moves_away() {
        let second = PlacedInTime { start_address: 0x1080, size_bytes: 0x200, ..placed(2, 110, i64::MAX) };
        let first = PlacedInTime { start_address: 0x8000, ..placed(1, 100, i64::MAX) };
        let moves = Moves::from_iter([(1, vec![(200, 0x1100)]), (2, vec![(210, 0x9000)])]);
        let mut map = CodeMap::default();
        map.extend([second, first], &moves);
        let id = |address, at| map.find(1, address, at).map(|hit| hit.code_object_id);
        assert_eq!([199, 200, 209, 210].map(|at| id(0x1110, at)), [Some(2), Some(1), Some(1), Some(1)]);
        assert_eq!([199, 200, 209, 210].map(|at| id(0x1210, at)), [Some(2), None, None, None]);
        assert_eq!([209, 210].map(|at| id(0x9000, at)), [None, Some(2)]);
    }

    #[test]
    fn code_of_a_later_dump_of_the_process_replaces_earlier_code() {
        let mut map = CodeMap::default();
        map.extend([placed(7, 100, i64::MAX), placed(8, 300, i64::MAX)], &Moves::default());
        let id = |at| map.find(1, 0x1010, at).map(|hit| hit.code_object_id);
        assert_eq!([299, 300].map(id), [Some(7), Some(8)]);
    }

    #[test]
    fn code_may_run_before_its_time_by_the_uncertainty_of_that() {
        let mut map = CodeMap::default();
        map.extend([placed(7, 100, 300), placed(8, 300, i64::MAX)], &Moves::default());
        assert_eq!(map.find(1, 0x1010, 95), None);
        map.allow_late(1, 10);
        map.allow_late(1, 5);
        let id = |at| map.find(1, 0x1010, at).map(|hit| hit.code_object_id);
        assert_eq!([89, 90, 99, 100, 295, 300].map(id), [None, Some(7), Some(7), Some(7), Some(7), Some(8)]);
    }

    #[test]
    fn code_is_replaced_by_code_that_is_added_later() {
        let mut map = CodeMap::default();
        let first = placed(7, 100, i64::MAX);
        map.extend([first], &Moves::default());
        map.end(&first, 300);
        map.extend([placed(8, 300, i64::MAX)], &Moves::default());
        let id = |at| map.find(1, 0x1010, at).map(|hit| hit.code_object_id);
        assert_eq!([99, 100, 299, 300].map(id), [None, Some(7), Some(7), Some(8)]);
    }
}
