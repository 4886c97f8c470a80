//! Look-up of the range that covers an address at a time.

/// A half-open range of addresses that is valid in a half-open range of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Start of its validity.
    pub from_ns: i64,
    /// End of its validity; `i64::MAX` for none.
    pub until_ns: i64,
    /// Its identifier.
    pub id: u32,
}

/// Ranges of one process; at most one is valid for an address at a time.
///
/// Ranges that start at one address are grouped and sorted by time, so that reused addresses of a code cache cost a binary
/// search rather than a linear one.
#[derive(Clone, Debug, Default)]
pub struct TimedSpace {
    intervals: Vec<Interval>,
    groups: Vec<StartGroup>,
}

/// Ranges that start at one address.
#[derive(Clone, Copy, Debug)]
struct StartGroup {
    start: u64,
    /// Largest end of this group and all preceding ones.
    reach: u64,
    first: u32,
}

impl TimedSpace {
    /// Takes ranges in any order; empty ones are dropped.
    #[must_use]
    pub fn new(mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|i| i.end > i.start && i.until_ns > i.from_ns);
        intervals.sort_by_key(|i| (i.start, i.from_ns));
        Self::of_sorted(intervals)
    }

    /// The ranges of both.
    #[must_use]
    pub fn merged_with(self, other: Self) -> Self {
        let mut intervals = self.intervals;
        intervals.extend(other.intervals);
        // Two sorted runs, which this sort merges in one pass.
        intervals.sort_by_key(|i| (i.start, i.from_ns));
        Self::of_sorted(intervals)
    }

    fn of_sorted(intervals: Vec<Interval>) -> Self {
        let mut groups: Vec<StartGroup> = Vec::new();
        for (at, interval) in intervals.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if group.start == interval.start => group.reach = group.reach.max(interval.end),
                last => {
                    let reach = last.map_or(0, |group| group.reach).max(interval.end);
                    groups.push(StartGroup { start: interval.start, reach, first: at as u32 });
                }
            }
        }
        Self { intervals, groups }
    }

    /// Sets the end of a range, given by its start, the start of its validity and its identifier; false where there is none.
    pub fn end(&mut self, start: u64, from_ns: i64, id: u32, until_ns: i64) -> bool {
        let first = self.intervals.partition_point(|i| (i.start, i.from_ns) < (start, from_ns));
        let same =
            self.intervals.iter_mut().skip(first).take_while(|i| i.start == start && i.from_ns == from_ns);
        let found = same.into_iter().find(|i| i.id == id);
        found.map(|interval| interval.until_ns = until_ns).is_some()
    }

    /// The range that is valid for an address at a time.
    #[must_use]
    #[inline]
    pub fn find(&self, address: u64, at_ns: i64) -> Option<&Interval> {
        self.candidates(address, |group| {
            let last = group.partition_point(|i| i.from_ns <= at_ns).checked_sub(1)?;
            group.get(..=last)?.iter().rev().find(|i| address < i.end && at_ns < i.until_ns)
        })
    }

    /// The first range that is valid for an address after a time.
    #[must_use]
    pub fn find_next(&self, address: u64, at_ns: i64) -> Option<&Interval> {
        let mut next: Option<&Interval> = None;
        self.candidates(address, |group| -> Option<()> {
            let later = group.iter().filter(|i| address < i.end && i.from_ns > at_ns);
            next = later.chain(next).min_by_key(|i| i.from_ns);
            None
        });
        next
    }

    /// Whether any range contains an address, at any time.
    #[must_use]
    pub fn ever_contains(&self, address: u64) -> bool {
        self.candidates(address, |group| group.iter().any(|i| address < i.end).then_some(())).is_some()
    }

    /// All ranges, by address, then time.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// First result of `pick` over the groups that may contain an address, nearest start first.
    fn candidates<'a, T>(
        &'a self,
        address: u64,
        mut pick: impl FnMut(&'a [Interval]) -> Option<T>,
    ) -> Option<T> {
        let after = self.groups.partition_point(|group| group.start <= address);
        for at in (0..after).rev() {
            let group = self.groups.get(at)?;
            if group.reach <= address {
                return None;
            }
            let next = self.groups.get(at.wrapping_add(1));
            let end = next.map_or(self.intervals.len(), |next| next.first as usize);
            if let Some(found) = self.intervals.get(group.first as usize..end).and_then(&mut pick) {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(start: u64, end: u64, from_ns: i64, until_ns: i64, id: u32) -> Interval {
        Interval { start, end, from_ns, until_ns, id }
    }

    #[test]
    fn a_reused_address_belongs_to_the_range_valid_at_the_time() {
        let space = TimedSpace::new(vec![
            interval(100, 200, 0, 10, 0),
            interval(100, 150, 10, 20, 1),
            interval(120, 180, 20, i64::MAX, 2),
        ]);
        let id = |address, at| space.find(address, at).map(|i| i.id);
        assert_eq!(id(130, 5), Some(0));
        assert_eq!(id(130, 10), Some(1));
        assert_eq!(id(160, 15), None);
        assert_eq!(id(130, 25), Some(2));
        assert_eq!(id(110, 25), None);
        assert_eq!(id(200, 5), None);
    }

    #[test]
    fn a_wide_range_below_many_narrow_ones_is_found() {
        let mut all: Vec<_> = (0..1000).map(|n| interval(1000 + n, 1001 + n, 5, 6, 1 + n as u32)).collect();
        all.push(interval(0, 5000, 0, 5, 0));
        let space = TimedSpace::new(all);
        assert_eq!(space.find(1500, 1).map(|i| i.id), Some(0));
        assert_eq!(space.find(1500, 5).map(|i| i.id), Some(501));
    }
}
