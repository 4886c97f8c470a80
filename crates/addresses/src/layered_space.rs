//! A [`TimedSpace`] to which ranges are added.

use crate::timed_space::{Interval, TimedSpace};

/// How many times larger than the next layer a layer at least is.
const GROWTH: usize = 4;

/// Ranges of one process in layers, each several times larger than the next: what is added becomes a new layer, and layers of
/// similar size are merged, so that n additions cost n log n in all and a look-up asks few layers.
#[derive(Clone, Debug, Default)]
pub struct LayeredSpace {
    layers: Vec<TimedSpace>,
}

impl LayeredSpace {
    /// Adds ranges, in any order.
    pub fn extend(&mut self, intervals: Vec<Interval>) {
        let mut top = TimedSpace::new(intervals);
        while let Some(below) = self.layers.pop() {
            if below.intervals().len() >= top.intervals().len().saturating_mul(GROWTH) {
                self.layers.push(below);
                break;
            }
            top = below.merged_with(top);
        }
        self.layers.push(top);
    }

    /// Sets the end of a range that was added.
    pub fn end(&mut self, start: u64, from_ns: i64, id: u32, until_ns: i64) {
        let _ = self.layers.iter_mut().rev().any(|layer| layer.end(start, from_ns, id, until_ns));
    }

    /// The range that is valid for an address at a time.
    #[must_use]
    #[inline]
    pub fn find(&self, address: u64, at_ns: i64) -> Option<&Interval> {
        self.layers.iter().find_map(|layer| layer.find(address, at_ns))
    }

    /// The first range that is valid for an address after a time.
    #[must_use]
    pub fn find_next(&self, address: u64, at_ns: i64) -> Option<&Interval> {
        let next = self.layers.iter().filter_map(|layer| layer.find_next(address, at_ns));
        next.min_by_key(|interval| interval.from_ns)
    }

    /// Whether any range contains an address, at any time.
    #[must_use]
    pub fn ever_contains(&self, address: u64) -> bool {
        self.layers.iter().any(|layer| layer.ever_contains(address))
    }

    /// All ranges in one space.
    #[must_use]
    pub fn whole(&self) -> TimedSpace {
        let all = self.layers.iter().cloned().reduce(TimedSpace::merged_with);
        all.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_few_and_find_what_one_space_finds() {
        let mut layered = LayeredSpace::default();
        let mut all = Vec::new();
        for number in 0..3000u32 {
            // 200 addresses, used again and again.
            let start = 0x1000 + u64::from(number % 200) * 0x40;
            let from_ns = i64::from(number) * 10;
            let added = Interval { start, end: start + 0x40, from_ns, until_ns: i64::MAX, id: number };
            if let Some(before) = number.checked_sub(200) {
                layered.end(start, i64::from(before) * 10, before, from_ns);
                let before: &mut Interval = &mut all[before as usize];
                before.until_ns = from_ns;
            }
            all.push(added);
            layered.extend(vec![added]);
        }
        let space = TimedSpace::new(all);
        assert!(layered.layers.len() <= 8, "{}", layered.layers.len());
        assert_eq!(layered.whole().intervals(), space.intervals());
        for at_ns in (-5..31_000).step_by(97) {
            for address in (0x0ff0..0x4300).step_by(0x21) {
                assert_eq!(layered.find(address, at_ns), space.find(address, at_ns));
                assert_eq!(layered.find_next(address, at_ns), space.find_next(address, at_ns));
            }
        }
    }
}
