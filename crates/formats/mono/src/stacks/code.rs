//! Which method's code contains an address at a time: memory of freed code is reused.

use crate::names::LogNames;
use crate::survey::LogSurvey;

/// Maximum number of ranges examined for one address; real logs have fewer overlaps.
const MAX_OVERLAPS: usize = 256;

/// The code of all methods, sorted by address.
#[derive(Debug)]
pub struct CodeRanges {
    ranges: Vec<CodeRange>,
    /// Maximum end of the ranges up to each index: the search stops where it is too low.
    highest: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct CodeRange {
    start: u64,
    end: u64,
    time: u64,
    function: u32,
}

impl CodeRanges {
    /// Collects the code of all methods.
    #[must_use]
    pub fn new(survey: &LogSurvey, names: &LogNames) -> Self {
        let mut ranges = Vec::new();
        for method in &survey.definitions.methods {
            if method.size > 0 {
                let (start, time) = (method.code, method.time);
                let function = names.function(method.method, time);
                ranges.push(CodeRange { start, end: start.saturating_add(method.size), time, function });
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

    /// Index of the function whose code contains an address: the latest created before `time`, or else the first
    /// created after.
    #[must_use]
    pub fn function_at(&self, address: u64, time: u64) -> Option<u32> {
        let mut at = self.ranges.partition_point(|range| range.start <= address);
        let mut best: Option<&CodeRange> = None;
        for _ in 0..MAX_OVERLAPS {
            at = at.checked_sub(1)?;
            if self.highest.get(at).is_none_or(|end| *end <= address) {
                break;
            }
            let Some(range) = self.ranges.get(at).filter(|range| range.end > address) else { continue };
            let order = |range: &CodeRange| {
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
