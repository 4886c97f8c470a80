//! In which order the buffers of several FDR logs are written.

use rustc_hash::FxHashMap;

use super::super::block::Block;
use super::super::log::{Content, XRay};
use super::super::survey::{Survey, owner};
use super::super::writer::Owner;
use perfuse_recording::Recording;

/// A buffer of a log.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The log.
    pub log: &'a XRay,
    /// What one pass found in it.
    pub survey: &'a Survey,
    /// The buffer.
    pub block: &'a Block,
    /// Its index in the log.
    pub index: usize,
}

/// When a buffer was begun, as far as it says.
type Begun = (Option<(i64, i32)>, Option<u64>);

/// The buffers: each thread's in order of time, in the places that the thread's buffers have in the files. So a log that is in
/// order keeps the order it is in. Copies are left out; they are counted.
pub fn places<'a>(logs: &[&'a XRay]) -> (Vec<Place<'a>>, u64) {
    let mut all: Vec<Place<'a>> = Vec::new();
    let mut copies = 0u64;
    let mut of_thread: FxHashMap<Owner, Vec<(Begun, usize)>> = FxHashMap::default();
    let mut seen: FxHashMap<(Owner, Begun, usize), Vec<Place<'a>>> = FxHashMap::default();
    for &log in logs {
        let Content::Fdr(survey) = log.content() else { continue };
        let mut last: FxHashMap<Owner, (i64, i32)> = FxHashMap::default();
        for (index, block) in survey.blocks.iter().enumerate() {
            let owner = owner(block);
            // A buffer without a wall time stands with the one before it of its thread.
            let wall = block.wall.or_else(|| last.get(&owner).copied());
            wall.and_then(|wall| last.insert(owner, wall));
            let begun = (wall, block.first_cpu.map(|(_, tsc)| tsc));
            let place = Place { log, survey, block, index };
            let same = seen.entry((owner, begun, block.records.len())).or_default();
            if survey.copies.contains_key(&index) || same.iter().any(|other| is_copy(other, &place)) {
                copies = copies.saturating_add(1);
                continue;
            }
            if logs.len() > 1 && same.len() < MOST_COMPARED {
                same.push(place);
            }
            of_thread.entry(owner).or_default().push((begun, all.len()));
            all.push(place);
        }
    }
    let mut ordered: Vec<Option<Place<'a>>> = vec![None; all.len()];
    for blocks in of_thread.values() {
        let mut in_time = blocks.clone();
        in_time.sort_by_key(|&(begun, place)| (begun, place));
        for (&(_, to), &(_, from)) in blocks.iter().zip(&in_time) {
            if let Some(slot) = ordered.get_mut(to) {
                *slot = all.get(from).copied();
            }
        }
    }
    (ordered.into_iter().flatten().collect(), copies)
}

/// Buffers that share thread, time and size, and differ, are no more than a few, or hostile: then only those are compared.
const MOST_COMPARED: usize = 8;

/// Whether two logs have the same buffer; within one log its survey tells.
fn is_copy<'a>(one: &Place<'a>, other: &Place<'a>) -> bool {
    let of = |place: &Place<'a>| place.log.source().get(place.block.records.clone());
    !std::ptr::eq(one.survey, other.survey) && of(one) == of(other)
}
