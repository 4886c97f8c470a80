//! Retained sizes of objects and of classes.

use super::objects::HeapObjects;
use super::walk::HeapWalk;
use crate::NONE;

/// Sums over the tree of dominators, by the numbers of a walk.
#[derive(Debug)]
pub struct RetainedSums {
    /// Size of the object and of all objects below it.
    bytes: Vec<u64>,
    /// Number of objects, the object itself included; the two numbers that are not objects do not count.
    counts: Vec<u32>,
}

impl RetainedSums {
    /// Adds up over the tree; `above` are the dominators.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "dominators are numbers of the walk, and a count is at most the number of objects"
    )]
    pub fn new(objects: &HeapObjects, walk: &HeapWalk, above: &[u32]) -> Self {
        let size = |&object: &u32| if object == NONE { 0 } else { objects.size(object) };
        let mut bytes: Vec<u64> = walk.objects.iter().map(size).collect();
        let mut counts: Vec<u32> = walk.objects.iter().map(|&object| u32::from(object != NONE)).collect();
        // A dominator has a lower number.
        for number in (0..above.len()).rev() {
            let over = above[number] as usize;
            if over != number {
                bytes[over] = bytes[over].saturating_add(bytes[number]);
                counts[over] += counts[number];
            }
        }
        Self { bytes, counts }
    }

    /// Bytes retained by a number.
    pub fn bytes(&self, number: u32) -> u64 {
        self.bytes.get(number as usize).copied().unwrap_or_default()
    }

    /// Number of objects retained by a number.
    pub fn count(&self, number: u32) -> u32 {
        self.counts.get(number as usize).copied().unwrap_or_default()
    }
}

/// The tree of dominators, by parent.
#[derive(Debug)]
pub struct DominatorTree {
    starts: Vec<u32>,
    below: Vec<u32>,
}

impl DominatorTree {
    /// The tree of these dominators.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "dominators are numbers of the walk, `starts` has two more entries, and the sum of all is their number"
    )]
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
        // The start of the next number advances as each is filled, and ends at its own start.
        let mut below = vec![0; above.len()];
        for (number, over) in edges() {
            let at = &mut starts[over as usize + 1];
            below[*at as usize] = number;
            *at += 1;
        }
        Self { starts, below }
    }

    /// The numbers that a number is the immediate dominator of, in ascending order.
    #[inline]
    pub fn below(&self, number: u32) -> &[u32] {
        self.below.get(self.range(number)).unwrap_or_default()
    }

    fn range(&self, number: u32) -> std::ops::Range<usize> {
        match self.starts.get(number as usize..).and_then(<[u32]>::first_chunk) {
            Some(&[start, end]) => start as usize..end as usize,
            None => 0..0,
        }
    }
}

/// A class: all objects of one type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassSums {
    /// Number of objects.
    pub num_objects: u64,
    /// Sum of their sizes.
    pub size_bytes: u64,
    /// Sum of their sizes and of the sizes they retain, each object once.
    pub retained_bytes: u64,
    /// Number of these objects.
    pub num_retained: u64,
    /// Number of objects that no root keeps alive.
    pub num_unreachable: u64,
    /// Sum of their sizes.
    pub unreachable_bytes: u64,
    /// The object that retains most.
    pub largest: u32,
    /// Bytes it retains.
    pub largest_bytes: u64,
}

/// Sums by class number. An object that another of its class retains is counted with that one.
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "all numbers in the tree but 0 and `rest` are of objects, each of which has a class; a class is left as often as it was entered"
)]
pub fn classes(
    objects: &HeapObjects,
    walk: &HeapWalk,
    tree: &DominatorTree,
    retained: &RetainedSums,
) -> Vec<ClassSums> {
    let mut classes = vec![ClassSums::default(); objects.types().len()];
    let mut num_above = vec![0u32; classes.len()];
    for top in [0, walk.rest] {
        let mut open = vec![(NONE, tree.range(top))];
        while let Some((class, rest)) = open.last_mut() {
            perfuse_stopping::checkpoint();
            let Some(at) = rest.next() else {
                if *class != NONE {
                    num_above[*class as usize] -= 1;
                }
                open.pop();
                continue;
            };
            let number = tree.below[at];
            let object = walk.objects[number as usize];
            let bytes = retained.bytes(number);
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
                sums.num_retained += u64::from(retained.count(number));
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
