//! Address ranges with a meaning that changes over time: machine code of methods, and memory registered for roots.

use crate::names::LogNames;
use crate::survey::LogSurvey;
use crate::survey::definitions::RootRecord;

/// Maximum number of ranges examined for one address; real logs have fewer overlaps.
const MAX_OVERLAPS: usize = 256;

/// The code of all methods, sorted by address.
#[derive(Debug)]
pub struct MethodRanges {
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

impl MethodRanges {
    /// Collects the code of all methods.
    #[must_use]
    pub fn new(survey: &LogSurvey, names: &LogNames) -> Self {
        let mut ranges = Vec::new();
        for method in &survey.events.definitions.methods {
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

/// Maximum number of registered ranges examined for one address; more do not overlap in practice.
const MAX_ROOT_OVERLAPS: usize = 4096;

/// Registered root memory over time.
#[derive(Debug)]
pub struct RootRanges {
    ranges: Vec<RootRange>,
    /// Maximum end of the ranges up to each index: the search stops where it is too low.
    highest: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct RootRange {
    start: u64,
    end: u64,
    since: u64,
    until: u64,
    record: usize,
}

impl RootRanges {
    /// Pairs registrations and unregistrations.
    pub fn new(records: &[RootRecord]) -> Self {
        let mut order: Vec<_> = records.iter().enumerate().collect();
        order.sort_by_key(|(_, record)| (record.start, record.time));
        let mut ranges: Vec<RootRange> = Vec::new();
        for (record, it) in order {
            if let Some(open) =
                ranges.last_mut().filter(|last| last.start == it.start && last.until == u64::MAX)
            {
                open.until = it.time;
            }
            if let Some(size) = it.size {
                let end = it.start.saturating_add(size);
                ranges.push(RootRange { start: it.start, end, since: it.time, until: u64::MAX, record });
            }
        }
        let highest = ranges.iter().scan(0u64, |highest, range| {
            *highest = range.end.max(*highest);
            Some(*highest)
        });
        let highest = highest.collect();
        Self { ranges, highest }
    }

    /// The innermost range that contained an address at a time, or else at any time, as an index into the
    /// registrations.
    pub fn at(&self, address: u64, time: u64) -> Option<usize> {
        let mut at = self.ranges.partition_point(|range| range.start <= address);
        let mut any = None;
        for _ in 0..MAX_ROOT_OVERLAPS {
            let Some(previous) = at.checked_sub(1) else { break };
            at = previous;
            if self.highest.get(at).is_none_or(|end| *end <= address) {
                break;
            }
            let Some(range) = self.ranges.get(at).filter(|range| range.end > address) else { continue };
            if (range.since..range.until).contains(&time) {
                return Some(range.record);
            }
            any = any.or(Some(range.record));
        }
        any
    }
}
