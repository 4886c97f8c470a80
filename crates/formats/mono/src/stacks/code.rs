//! Which method an address is in, at a time: code is freed and its memory used again.

use crate::names::Names;
use crate::survey::Survey;

/// Pieces of code that are looked at for one address; more of them over each other are no real log.
const MOST_OVERLAPS: usize = 256;

/// The code of all methods, by address.
#[derive(Debug)]
pub struct CodeRanges {
    ranges: Vec<Range>,
    /// Highest end so far, by place in `ranges`: tells where looking back can stop.
    highest: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    start: u64,
    end: u64,
    time: u64,
    function: u32,
}

impl CodeRanges {
    /// Gathers them.
    #[must_use]
    pub fn new(survey: &Survey, names: &Names) -> Self {
        let mut ranges = Vec::new();
        for method in &survey.facts.methods {
            if method.size > 0 {
                let (start, time) = (method.code, method.time);
                let function = names.function(method.method, time);
                ranges.push(Range { start, end: start.saturating_add(method.size), time, function });
            }
        }
        ranges.sort_by_key(|range| (range.start, range.time));
        let highest = ranges.iter().scan(0u64, |highest, range| {
            *highest = range.end.max(*highest);
            Some(*highest)
        });
        let highest = highest.collect();
        Self { ranges, highest }
    }

    /// Number of the function whose code an address is in: the one made last before `time`, else the one made first after.
    #[must_use]
    pub fn function(&self, address: u64, time: u64) -> Option<u32> {
        let mut at = self.ranges.partition_point(|range| range.start <= address);
        let mut best: Option<&Range> = None;
        for _ in 0..MOST_OVERLAPS {
            at = at.checked_sub(1)?;
            if self.highest.get(at).is_none_or(|end| *end <= address) {
                break;
            }
            let Some(range) = self.ranges.get(at).filter(|range| range.end > address) else { continue };
            let order = |range: &Range| {
                (
                    range.time <= time,
                    if range.time <= time { range.time } else { u64::MAX.wrapping_sub(range.time) },
                )
            };
            if best.is_none_or(|best| order(best) < order(range)) {
                best = Some(range);
            }
            if at == 0 {
                break;
            }
        }
        best.map(|range| range.function)
    }
}
