//! The log as a whole: the order of its buffers, and whose its function ids are.

use perfuse_wire::Diagnostics;
use rustc_hash::FxHashMap;

use super::super::block::Block;
use super::super::consts::HEADER_BYTES;
use super::super::log::XRay;
use super::super::reader::Bound;
use super::super::rules::{ALIASES, HALF_EMPTY, ROTATED, UNORDERED};
use super::super::survey::{Survey, owner};
use super::say;

/// Where the object number begins in a packed function id.
const OBJECT_SHIFT: u32 = 24;

/// Room that a buffer may have left when its thread goes on in another: a function record, with all that may come before it.
const ROOM_LEFT: u64 = 64;

/// Tells what is wrong with the order of buffers, and what their ids leave open.
pub fn tell(log: &XRay, survey: &Survey, sink: &mut Diagnostics) {
    order(survey, sink);
    half_empty(log, survey, sink);
    let objects = survey.function_ids.iter().map(|id| id >> OBJECT_SHIFT).filter(|&object| object > 0);
    if let Some(last) = objects.max() {
        let message = format!("ids of objects up to {last}; those of 16 on would look like lower ones");
        say(sink, &ALIASES, HEADER_BYTES as u64, "function_id", message);
    }
}

/// How often the wall time goes back from a buffer of a thread to its next in the file.
#[derive(Default)]
struct Descents {
    last: (i64, i32),
    num: u64,
}

fn order(survey: &Survey, sink: &mut Diagnostics) {
    let mut threads: FxHashMap<(i32, i32), Descents> = FxHashMap::default();
    let mut first: Option<&Block> = None;
    for (index, block) in survey.blocks.iter().enumerate() {
        let Some(wall) = block.wall.filter(|_| !survey.copies.contains_key(&index)) else { continue };
        let thread = threads.entry(owner(block)).or_insert(Descents { last: wall, num: 0 });
        if wall < thread.last {
            thread.num = thread.num.saturating_add(1);
            let _ = first.get_or_insert(block);
        }
        thread.last = wall;
    }
    let Some(first) = first else { return };
    let back = threads.values().filter(|thread| thread.num > 0).count();
    if threads.values().all(|thread| thread.num <= 1) {
        let message =
            format!("the oldest buffer that is left begins here; time goes back once in {back} threads");
        say(sink, &ROTATED, first.offset, "", message);
    } else {
        let num = threads.values().fold(0u64, |sum, thread| sum.saturating_add(thread.num));
        let message = format!("time goes back {num} times in {back} threads");
        say(sink, &UNORDERED, first.offset, "", message);
    }
}

/// A thread takes another buffer when its own is full; else there was something between.
fn half_empty(log: &XRay, survey: &Survey, sink: &mut Diagnostics) {
    let size = log.header().file.buffer_size;
    let mut last: FxHashMap<(i32, i32), &Block> = FxHashMap::default();
    for block in survey.order.iter().filter_map(|&index| survey.blocks.get(index)) {
        let Some(before) = last.insert(owner(block), block) else { continue };
        let used = before.end.saturating_sub(before.records.start) as u64;
        let room = size.saturating_sub(used);
        if before.bound == Bound::Stated && !before.has_events() && !block.has_events() && room > ROOM_LEFT {
            let message = format!("{room} of {size} bytes were free");
            say(sink, &HALF_EMPTY, before.offset, "size", message);
        }
    }
}
