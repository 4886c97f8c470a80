//! Which buffers are written, in which order, and with which wall time.

use rustc_hash::FxHashMap;

use super::super::block::{Block, Clock};
use super::super::log::XRay;
use super::super::survey::{Survey, owner};
use crate::{ClockMap, Rate, Recording};

/// A buffer to be written.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// Its block.
    pub index: usize,
    /// Its wall time: seconds and microseconds.
    pub wall: (i64, i32),
    /// Where the counter stands at its beginning, unless it says so itself.
    pub clock: Clock,
}

/// Microseconds.
const SECOND: i64 = 1_000_000;

/// All buffers that have something in them, copies left out: as they lie in the file where that is in the order of time for each
/// thread, else in that order.
pub fn plan(log: &XRay, survey: &Survey) -> Vec<Planned> {
    let clock = log.clock(Rate::Auto);
    let can_tell = clock.alignment == "wall_time" && log.header().dialect().version > 1;
    let worth_it = survey.order.iter().filter_map(|&index| Some((index, survey.blocks.get(index)?)));
    let mut plan: Vec<Planned> = worth_it
        .filter(|(_, block)| is_worth_it(block))
        .map(|(index, block)| {
            let carried = survey.clock(index, Clock::default());
            let tsc = block.first_cpu.map_or(carried.tsc, |(_, tsc)| tsc);
            let wall = block.wall.unwrap_or_else(|| wall_of(clock.map.ns(tsc)));
            let tsc = if can_tell && block.wall.is_some() { tsc_of(wall, clock.map) } else { carried.tsc };
            Planned { index, wall, clock: Clock { tsc, ..carried } }
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
