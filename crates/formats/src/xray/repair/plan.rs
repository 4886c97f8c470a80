//! Which buffers are written, in which order, and with which wall time.

use rustc_hash::FxHashMap;

use super::super::block::{Block, Clock};
use super::super::log::XRay;
use super::super::survey::{Survey, owner};
use crate::{Rate, Recording};

/// A buffer to be written.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    /// Its block.
    pub index: usize,
    /// Its wall time: seconds and microseconds.
    pub wall: (i64, i32),
}

const SECOND: i128 = 1_000_000;

/// All buffers that have something in them, copies left out: as they lie in the file where that is in the order of time for each
/// thread, else in that order.
pub fn plan(log: &XRay, survey: &Survey) -> Vec<Planned> {
    let mut order: Vec<usize> =
        survey.order.iter().copied().filter(|&index| is_worth_it(survey, index)).collect();
    if threads_are_in_order(survey, &order) {
        order.sort_unstable();
    }
    let walls = walls(log, survey, &order);
    order.into_iter().zip(walls).map(|(index, wall)| Planned { index, wall }).collect()
}

/// Whether there is more than the beginning of a preamble.
fn is_worth_it(survey: &Survey, index: usize) -> bool {
    survey.blocks.get(index).is_some_and(|block| {
        let calls = block.counts.functions.iter().any(|count| *count > 0);
        calls || block.has_events() || block.first_cpu.is_some()
    })
}

fn threads_are_in_order(survey: &Survey, order: &[usize]) -> bool {
    let mut last: FxHashMap<(i32, i32), usize> = FxHashMap::default();
    let mut blocks = order.iter().filter_map(|&index| Some((index, survey.blocks.get(index)?)));
    blocks.all(|(index, block)| last.insert(owner(block), index).is_none_or(|before| before < index))
}

/// Wall times; where a block has none, that which the counter shows, between those of its neighbours.
fn walls(log: &XRay, survey: &Survey, order: &[usize]) -> Vec<(i64, i32)> {
    let blocks = || order.iter().map(|&index| (index, survey.blocks.get(index)));
    if blocks().all(|(_, block)| block.is_some_and(|block| block.wall.is_some())) {
        return blocks().filter_map(|(_, block)| block?.wall).collect();
    }
    let mut next: FxHashMap<(i32, i32), i128> = FxHashMap::default();
    let mut before_next: Vec<i128> = blocks()
        .rev()
        .map(|(_, block)| {
            let Some(block) = block else { return i128::MAX };
            let limit = next.get(&owner(block)).copied().unwrap_or(i128::MAX);
            next.extend(block.wall.map(|wall| (owner(block), micros(wall))));
            limit
        })
        .collect();
    before_next.reverse();
    let map = log.clock(Rate::Auto).map;
    let mut last: FxHashMap<(i32, i32), i128> = FxHashMap::default();
    let shown = |index: usize, block: &Block| {
        let tsc = block.first_cpu.map_or(survey.clock(index, Clock::default()).tsc, |(_, tsc)| tsc);
        i128::from(map.ns(tsc)).saturating_div(1000)
    };
    blocks()
        .zip(before_next)
        .map(|((index, block), next)| {
            let Some(block) = block else { return (0, 0) };
            let after = last.get(&owner(block)).map_or(0, |last| last.saturating_add(1));
            let wall = match block.wall {
                Some(wall) => micros(wall),
                None => shown(index, block).min(next.saturating_sub(1)).max(after),
            };
            last.insert(owner(block), wall);
            block.wall.unwrap_or_else(|| wall_of(wall))
        })
        .collect()
}

fn micros((seconds, microseconds): (i64, i32)) -> i128 {
    i128::from(seconds).saturating_mul(SECOND).saturating_add(microseconds.into())
}

fn wall_of(micros: i128) -> (i64, i32) {
    let seconds = i64::try_from(micros.div_euclid(SECOND)).unwrap_or(i64::MAX);
    (seconds, i32::try_from(micros.rem_euclid(SECOND)).unwrap_or(0))
}
