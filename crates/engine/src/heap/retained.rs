//! What would go with each object, and with each class of them.

use super::NONE;
use super::objects::Objects;
use super::walk::Walk;

/// Sums over the tree of dominators, by the numbers of a walk.
#[derive(Debug)]
pub struct Retained {
    /// Own size and that of all below.
    pub bytes: Vec<u64>,
    /// Itself and all below; the two that stand for no object do not count.
    pub counts: Vec<u32>,
}

impl Retained {
    /// Adds up; `above` are the dominators.
    pub fn new(objects: &Objects, walk: &Walk, above: &[u32]) -> Self {
        let size = |&object: &u32| if object == NONE { 0 } else { objects.size(object) };
        let mut bytes: Vec<u64> = walk.objects.iter().map(size).collect();
        let mut counts: Vec<u32> = walk.objects.iter().map(|&object| u32::from(object != NONE)).collect();
        // Who dominates another has a lower number.
        for number in (0..above.len()).rev() {
            let over = above[number] as usize;
            if over != number {
                bytes[over] = bytes[over].saturating_add(bytes[number]);
                counts[over] += counts[number];
            }
        }
        Self { bytes, counts }
    }
}

/// The tree of dominators from its top down.
#[derive(Debug)]
pub struct Tree {
    starts: Vec<u32>,
    below: Vec<u32>,
}

impl Tree {
    /// Turns dominators around.
    pub fn new(above: &[u32]) -> Self {
        let is_below = |&(number, over): &(u32, u32)| number != over;
        let edges = || (0u32..).zip(above.iter().copied()).filter(is_below);
        let mut starts = vec![0u32; above.len() + 2];
        for (_, over) in edges() {
            starts[over as usize + 2] += 1;
        }
        for number in 1..starts.len() {
            starts[number] += starts[number - 1];
        }
        // The start of the one behind moves on as each is filled, and ends where its own begins.
        let mut below = vec![0; above.len()];
        for (number, over) in edges() {
            let at = &mut starts[over as usize + 1];
            below[*at as usize] = number;
            *at += 1;
        }
        Self { starts, below }
    }

    /// Numbers that one is the dominator of, in ascending order.
    #[inline]
    pub fn below(&self, number: u32) -> &[u32] {
        &self.below[self.range(number)]
    }

    fn range(&self, number: u32) -> std::ops::Range<usize> {
        self.starts[number as usize] as usize..self.starts[number as usize + 1] as usize
    }
}

/// A class: all objects of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// Objects.
    pub num_objects: u64,
    /// Their own sizes.
    pub size_bytes: u64,
    /// Their sizes and what they retain, each object once.
    pub retained_bytes: u64,
    /// How many objects that is.
    pub num_retained: u64,
    /// Objects that no root keeps alive.
    pub num_unreachable: u64,
    /// Their own sizes.
    pub unreachable_bytes: u64,
    /// Object that retains most.
    pub largest: u32,
    /// What it retains.
    pub largest_bytes: u64,
}

/// Sums of each class, by its number. An object below another of its class is in what that one retains already.
pub fn classes(objects: &Objects, walk: &Walk, tree: &Tree, retained: &Retained) -> Vec<Class> {
    let mut classes = vec![Class::default(); objects.types().len()];
    let mut num_above = vec![0u32; classes.len()];
    for top in [0, walk.rest] {
        let mut open = vec![(NONE, tree.range(top))];
        while let Some((class, rest)) = open.last_mut() {
            let Some(at) = rest.next() else {
                if *class != NONE {
                    num_above[*class as usize] -= 1;
                }
                open.pop();
                continue;
            };
            let number = tree.below[at];
            let object = walk.objects[number as usize];
            let bytes = retained.bytes[number as usize];
            let of = objects.class(object);
            let sums = &mut classes[of as usize];
            sums.num_objects += 1;
            sums.size_bytes = sums.size_bytes.saturating_add(objects.size(object));
            if top != 0 {
                sums.num_unreachable += 1;
                sums.unreachable_bytes = sums.unreachable_bytes.saturating_add(objects.size(object));
            }
            if num_above[of as usize] == 0 {
                sums.retained_bytes = sums.retained_bytes.saturating_add(bytes);
                sums.num_retained += u64::from(retained.counts[number as usize]);
            }
            if sums.num_objects == 1 || (bytes, sums.largest) > (sums.largest_bytes, object) {
                (sums.largest, sums.largest_bytes) = (object, bytes);
            }
            let below = tree.range(number);
            if !below.is_empty() {
                num_above[of as usize] += 1;
                open.push((of, below));
            }
        }
    }
    classes
}
