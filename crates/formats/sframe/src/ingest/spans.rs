//! Functions cut into groups, a batch each.

use std::collections::VecDeque;
use std::ops::Range;

use crate::SFrame;

/// Functions of one piece, by their indexes, and the key of the first.
#[derive(Clone, Debug)]
pub struct Span {
    pub piece: usize,
    pub indexes: Range<u32>,
    pub id: u32,
}

/// All functions, cut into groups of so many. An empty table still has one, so that its schema is seen.
pub fn groups(file: &SFrame, size: u32, mut id: u32) -> VecDeque<Vec<Span>> {
    let (mut groups, mut group, mut room) = (VecDeque::new(), Vec::new(), size);
    for (piece, found) in file.pieces().iter().enumerate() {
        let mut from = 0u32;
        while from < found.num_functions {
            let to = from.saturating_add(room).min(found.num_functions);
            let num = to.saturating_sub(from);
            group.push(Span { piece, indexes: from..to, id });
            (from, id, room) = (to, id.saturating_add(num), room.saturating_sub(num));
            if room == 0 {
                groups.push_back(std::mem::take(&mut group));
                room = size;
            }
        }
    }
    if !group.is_empty() || groups.is_empty() {
        groups.push_back(group);
    }
    groups
}
