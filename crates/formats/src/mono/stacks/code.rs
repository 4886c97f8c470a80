//! Which method an address is in, at a time: code is freed and its memory used again.

use crate::mono::names::Names;
use crate::mono::survey::Survey;

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
            if let Some(size) = code_size(method.code, method.size) {
                let (start, time) = (method.code, method.time);
                let function = names.function(method.method, time);
                ranges.push(Range { start, end: start.saturating_add(size), time, function });
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

/// No compiler makes as much of one method.
const TOO_LARGE: u64 = 1 << 22;
/// Where no program has code: the first page, and what is beyond 48 bits.
const PLAUSIBLE: std::ops::Range<u64> = 0x1000..1 << 48;

/// Size of a method's code; `None` where it has none of its own. Profiler 3.0 writes memory it has not filled in for
/// methods that were not compiled, so a place or size that no code has is none.
#[must_use]
pub fn code_size(code: u64, size: u64) -> Option<u64> {
    (PLAUSIBLE.contains(&code) && (1..TOO_LARGE).contains(&size)).then_some(size)
}
