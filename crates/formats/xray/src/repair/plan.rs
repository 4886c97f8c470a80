//! Plans a repair: which buffers are written, in which order, with which wall times.

use rustc_hash::FxHashMap;

use crate::block::{FdrBlock, TscState};
use crate::fdr::{FdrSurvey, thread_ids};
use crate::log::XRay;
use perfuse_recording::{ClockMap, Rate, Recording};

/// A buffer to write.
#[derive(Clone, Copy, Debug)]
pub struct PlannedBuffer {
    /// Index of its block.
    pub index: usize,
    /// Wall time: seconds and microseconds.
    pub wall: (i64, i32),
    /// The initial counter, where the buffer does not contain it.
    pub clock: TscState,
    /// Whether the counter continues from the thread's previous buffer; then the time of the first record is used.
    pub is_carried: bool,
    /// Whether the bytes of events are left out, since a reader of the written buffer would take them for records.
    pub without_payloads: bool,
}

/// Microseconds per second.
const MICROSECONDS_PER_SECOND: i64 = 1_000_000;

/// All buffers with content, without copies: in file order where that is in order of time for each thread, else in
/// order of time.
pub fn plan(log: &XRay, survey: &FdrSurvey) -> Vec<PlannedBuffer> {
    let map = wall_clock(log, survey);
    let blocks = survey.order.iter().filter_map(|&index| Some((index, survey.blocks.get(index)?)));
    let mut plan: Vec<PlannedBuffer> = blocks
        .filter(|(_, block)| has_content(block))
        .map(|(index, block)| {
            let carried = survey.clock(index, TscState::default());
            let tsc = block.first_cpu.map_or(carried.tsc, |(_, tsc)| tsc);
            let wall = block.wall.unwrap_or_else(|| wall_time_of(map.ns(tsc)));
            // In version 1 the counter continues exactly without NewCPUId; in later versions it is lost, and the wall
            // time is the best source.
            let is_carried = carried.is_whole && log.header().dialect().version == 1;
            let tsc = if is_carried || block.wall.is_none() { carried.tsc } else { tsc_of(wall, map) };
            PlannedBuffer {
                index,
                wall,
                clock: TscState { tsc, ..carried },
                is_carried,
                without_payloads: false,
            }
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

/// The relation of wall times and the counter. Where no buffer has both, the first with a wall time is assumed to
/// start at its relative counter.
fn wall_clock(log: &XRay, survey: &FdrSurvey) -> ClockMap {
    let clock = log.clock(Rate::Auto);
    if clock.alignment == perfuse_tables::Alignment::WallTime {
        return clock.map;
    }
    let mut walls = survey.order.iter().filter_map(|&index| Some((index, survey.blocks.get(index)?.wall?)));
    let offset_ns = walls.next().map_or(0, |(index, (seconds, microseconds))| {
        let begin = clock.map.ns(survey.clock(index, TscState::default()).tsc);
        let micros = seconds.saturating_mul(MICROSECONDS_PER_SECOND).saturating_add(microseconds.into());
        micros.saturating_mul(1000).saturating_sub(begin)
    });
    ClockMap { offset_ns, ..clock.map }
}

/// Whether a block contains more than a part of the preamble.
fn has_content(block: &FdrBlock) -> bool {
    let calls = block.counts.functions.iter().take(4).any(|count| *count > 0);
    calls || block.has_events() || block.first_cpu.is_some()
}

/// Whether the wall times of each thread are in order. Counters are not compared: a buffer may be written with another one
/// than it has, and would then be moved by the next repair.
fn threads_are_in_order(survey: &FdrSurvey, plan: &[PlannedBuffer]) -> bool {
    let mut last: FxHashMap<(i32, i32), _> = FxHashMap::default();
    let mut blocks = plan.iter().filter_map(|planned| Some((planned, survey.blocks.get(planned.index)?)));
    blocks.all(|(planned, block)| {
        let now = planned.wall;
        last.insert(thread_ids(block), now).is_none_or(|before| before <= now)
    })
}

/// Seconds and microseconds of a time in nanoseconds.
fn wall_time_of(ns: i64) -> (i64, i32) {
    let micros = ns.div_euclid(1000);
    (
        micros.div_euclid(MICROSECONDS_PER_SECOND),
        i32::try_from(micros.rem_euclid(MICROSECONDS_PER_SECOND)).unwrap_or(0),
    )
}

/// The counter at a wall time.
fn tsc_of((seconds, microseconds): (i64, i32), map: ClockMap) -> u64 {
    let micros = i128::from(seconds)
        .saturating_mul(MICROSECONDS_PER_SECOND.into())
        .saturating_add(microseconds.into());
    let ns = micros.saturating_mul(1000).saturating_sub(map.offset_ns.into());
    let ticks = ns.saturating_mul(map.denominator.into()).checked_div(map.numerator.into());
    u64::try_from(ticks.unwrap_or(0)).unwrap_or(0)
}
