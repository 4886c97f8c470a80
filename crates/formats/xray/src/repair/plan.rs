//! Which buffers are written, in which order, and with which wall time.

use rustc_hash::FxHashMap;

use super::super::block::{Block, Clock};
use super::super::log::XRay;
use super::super::survey::{Survey, owner};
use perfuse_recording::{ClockMap, Rate, Recording};

/// A buffer to be written.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// Its block.
    pub index: usize,
    /// Its wall time: seconds and microseconds.
    pub wall: (i64, i32),
    /// Where the counter stands at its beginning, unless it says so itself.
    pub clock: Clock,
    /// Whether that is the last time in the buffer before: what is due is the time of its own first record.
    pub is_carried: bool,
}

/// Microseconds.
const SECOND: i64 = 1_000_000;

/// All buffers that have something in them, copies left out: as they lie in the file where that is in the order of time for each
/// thread, else in that order.
pub fn plan(log: &XRay, survey: &Survey) -> Vec<Planned> {
    let map = wall_clock(log, survey);
    let worth_it = survey.order.iter().filter_map(|&index| Some((index, survey.blocks.get(index)?)));
    let mut plan: Vec<Planned> = worth_it
        .filter(|(_, block)| is_worth_it(block))
        .map(|(index, block)| {
            let carried = survey.clock(index, Clock::default());
            let tsc = block.first_cpu.map_or(carried.tsc, |(_, tsc)| tsc);
            let wall = block.wall.unwrap_or_else(|| wall_of(map.ns(tsc)));
            // Version 1 does without NewCPUId and is exact; else it is lost, and the wall time tells the counter best.
            let is_carried = carried.is_whole && log.header().dialect().version == 1;
            let tsc = if is_carried || block.wall.is_none() { carried.tsc } else { tsc_of(wall, map) };
            Planned { index, wall, clock: Clock { tsc, ..carried }, is_carried }
        })
        .collect();
    plan.sort_by_key(|planned| planned.index);
    if !threads_are_in_order(survey, &plan) {
        let tsc =
            |index: usize| survey.blocks.get(index).and_then(|block| block.first_cpu).map(|(_, tsc)| tsc);
        plan.sort_by_key(|planned| (planned.wall, tsc(planned.index), planned.index));
    }
    plan
}

/// How wall times and the counter go together; where no buffer has both, the first that has a wall time is taken to begin
/// where its times are counted from.
fn wall_clock(log: &XRay, survey: &Survey) -> ClockMap {
    let clock = log.clock(Rate::Auto);
    if clock.alignment == perfuse_tables::Alignment::WallTime {
        return clock.map;
    }
    let mut walls = survey.order.iter().filter_map(|&index| Some((index, survey.blocks.get(index)?.wall?)));
    let offset_ns = walls.next().map_or(0, |(index, (seconds, microseconds))| {
        let begin = clock.map.ns(survey.clock(index, Clock::default()).tsc);
        let micros = seconds.saturating_mul(SECOND).saturating_add(microseconds.into());
        micros.saturating_mul(1000).saturating_sub(begin)
    });
    ClockMap { offset_ns, ..clock.map }
}

/// Whether there is more than the beginning of a preamble.
fn is_worth_it(block: &Block) -> bool {
    let calls = block.counts.functions.iter().take(4).any(|count| *count > 0);
    calls || block.has_events() || block.first_cpu.is_some()
}

fn threads_are_in_order(survey: &Survey, plan: &[Planned]) -> bool {
    let mut last: FxHashMap<(i32, i32), _> = FxHashMap::default();
    let mut blocks = plan.iter().filter_map(|planned| Some((planned, survey.blocks.get(planned.index)?)));
    blocks.all(|(planned, block)| {
        let now = (planned.wall, block.first_cpu.map(|(_, tsc)| tsc));
        last.insert(owner(block), now).is_none_or(|before| before <= now)
    })
}

fn wall_of(ns: i64) -> (i64, i32) {
    let micros = ns.div_euclid(1000);
    (micros.div_euclid(SECOND), i32::try_from(micros.rem_euclid(SECOND)).unwrap_or(0))
}

/// The counter at a wall time.
fn tsc_of((seconds, microseconds): (i64, i32), map: ClockMap) -> u64 {
    let micros = i128::from(seconds).saturating_mul(SECOND.into()).saturating_add(microseconds.into());
    let ns = micros.saturating_mul(1000).saturating_sub(map.offset_ns.into());
    let ticks = ns.saturating_mul(map.denominator.into()).checked_div(map.numerator.into());
    u64::try_from(ticks.unwrap_or(0)).unwrap_or(0)
}
