//! Which of many ranges covered an address at a time.

/// A half-open range of addresses that held for a half-open range of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// First address.
    pub start: u64,
    /// First address after it.
    pub end: u64,
    /// Since when.
    pub from_ns: i64,
    /// Until when; `i64::MAX` for ever.
    pub until_ns: i64,
    /// What it is.
    pub id: u32,
}

/// Ranges of one process, ready for look-ups: at most one holds an address at a time.
///
/// Ranges that start at one address stand together, by time, so a code cache that is used over and over costs a binary
/// search and not a walk.
#[derive(Clone, Debug, Default)]
pub struct TimedSpace {
    intervals: Vec<Interval>,
    groups: Vec<Group>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    start: u64,
    /// Largest end of this and all groups before it.
    reach: u64,
    first: u32,
}

impl TimedSpace {
    /// Takes ranges in any order.
    #[must_use]
    pub fn new(mut intervals: Vec<Interval>) -> Self {
        intervals.retain(|i| i.end > i.start && i.until_ns > i.from_ns);
        intervals.sort_by_key(|i| (i.start, i.from_ns));
        let mut groups: Vec<Group> = Vec::new();
        for (at, interval) in intervals.iter().enumerate() {
            match groups.last_mut() {
                Some(group) if group.start == interval.start => group.reach = group.reach.max(interval.end),
                last => {
                    let reach = last.map_or(0, |group| group.reach).max(interval.end);
                    groups.push(Group { start: interval.start, reach, first: at as u32 });
                }
            }
        }
        Self { intervals, groups }
    }

    /// The range that holds an address at a time.
    #[must_use]
    #[inline]
    pub fn find(&self, address: u64, at_ns: i64) -> Option<&Interval> {
        self.candidates(address, |group| {
            let held = group.partition_point(|i| i.from_ns <= at_ns).checked_sub(1)?;
            group[..=held].iter().rev().find(|i| address < i.end && at_ns < i.until_ns)
        })
    }

    /// Whether any range ever holds an address.
    #[must_use]
    pub fn ever(&self, address: u64) -> bool {
        self.candidates(address, |group| group.iter().any(|i| address < i.end).then_some(())).is_some()
    }

    /// All ranges, by address, then time.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    fn candidates<'a, T>(
        &'a self,
        address: u64,
        mut pick: impl FnMut(&'a [Interval]) -> Option<T>,
    ) -> Option<T> {
        let after = self.groups.partition_point(|group| group.start <= address);
        for at in (0..after).rev() {
            let group = self.groups[at];
            if group.reach <= address {
                return None;
            }
            let end = self.groups.get(at + 1).map_or(self.intervals.len(), |next| next.first as usize);
            if let Some(found) = pick(&self.intervals[group.first as usize..end]) {
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
    fn an_address_used_again_belongs_to_whoever_held_it_then() {
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
