//! Dominators of objects, by the algorithm of Lengauer and Tarjan with simple linking, in time m log n for every graph.

use super::references::ObjectReferences;
use super::walk::HeapWalk;
use crate::NONE;

/// The dominator of each number of a walk. The two numbers that are not objects are their own dominators.
pub fn dominators(walk: &HeapWalk, references: &ObjectReferences, roots: &[u32]) -> Vec<u32> {
    let mut forest = LinkForest::new(walk, references, roots);
    forest.settle(walk, walk.rest, walk.objects.len() as u32);
    forest.settle(walk, 0, walk.rest);
    forest.above
}

/// The forest of linked numbers.
struct LinkForest {
    /// Semidominators: the least number from which a path leads to each through higher numbers only.
    semi: Vec<u32>,
    /// Ancestors in the forest, compressed; [`NONE`] at a root, and for numbers that are not linked yet.
    ancestors: Vec<u32>,
    /// The number with the least `semi` on the compressed path.
    least: Vec<u32>,
    /// Dominators.
    above: Vec<u32>,
    /// Lists of the numbers whose semidominator each is: the first number, and the one after each.
    waiting: Vec<u32>,
    next: Vec<u32>,
    owners: ReferringNumbers,
    path: Vec<u32>,
}

/// The numbers that refer to each number.
struct ReferringNumbers {
    starts: Vec<u32>,
    numbers: Vec<u32>,
}

#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "numbers of the walk are less than its length, by which all arrays are sized; `starts` has one more and counts references, of which there are less than 2^32"
)]
impl ReferringNumbers {
    fn new(walk: &HeapWalk, references: &ObjectReferences) -> Self {
        let len = walk.objects.len();
        let mut starts = vec![0u32; len + 1];
        for_each(walk, references, |_, target| starts[target as usize + 1] += 1);
        for number in 0..len {
            starts[number + 1] += starts[number];
        }
        let mut numbers = vec![0; starts[len] as usize];
        // Each range is filled from its end.
        let mut ends = starts[1..].to_vec();
        for_each(walk, references, |owner, target| {
            let end = &mut ends[target as usize];
            *end -= 1;
            numbers[*end as usize] = owner;
        });
        Self { starts, numbers }
    }
}

/// Calls `each` with the numbers of owner and target of each reference, except those from garbage to reachable objects.
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "`numbers` has an entry for each object, and targets are objects"
)]
fn for_each(walk: &HeapWalk, references: &ObjectReferences, mut each: impl FnMut(u32, u32)) {
    for (owner, &object) in (0u32..).zip(&walk.objects) {
        perfuse_stopping::checkpoint();
        if object == NONE {
            continue;
        }
        for &target in references.of(object) {
            let target = walk.numbers[target as usize];
            // Reachable objects refer to reachable objects only.
            if (owner < walk.rest) == (target < walk.rest) && owner != target {
                each(owner, target);
            }
        }
    }
}

#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "numbers of the walk are less than its length, by which all arrays are sized"
)]
impl LinkForest {
    fn new(walk: &HeapWalk, references: &ObjectReferences, roots: &[u32]) -> Self {
        let len = walk.objects.len();
        let mut semi: Vec<u32> = (0..len as u32).collect();
        for &root in roots {
            semi[walk.numbers[root as usize] as usize] = 0;
        }
        for &entry in &walk.entries {
            semi[walk.numbers[entry as usize] as usize] = walk.rest;
        }
        Self {
            semi,
            ancestors: vec![NONE; len],
            least: (0..len as u32).collect(),
            above: (0..len as u32).collect(),
            waiting: vec![NONE; len],
            next: vec![NONE; len],
            owners: ReferringNumbers::new(walk, references),
            path: Vec::new(),
        }
    }

    /// Finds the dominators of the numbers after `top`, up to `end`.
    fn settle(&mut self, walk: &HeapWalk, top: u32, end: u32) {
        for number in (top + 1..end).rev() {
            perfuse_stopping::checkpoint();
            let parent = walk.parents[number as usize];
            let mut semi = self.semi[number as usize].min(parent);
            let range = self.owners.starts[number as usize] as usize
                ..self.owners.starts[number as usize + 1] as usize;
            for at in range {
                let owner = self.owners.numbers[at];
                // Lower numbers are not linked yet.
                if owner < number {
                    semi = semi.min(owner);
                } else {
                    let least = self.least_above(owner);
                    semi = semi.min(self.semi[least as usize]);
                }
            }
            self.semi[number as usize] = semi;
            self.ancestors[number as usize] = parent;
            if semi == parent {
                self.above[number as usize] = parent;
            } else {
                self.next[number as usize] = self.waiting[semi as usize];
                self.waiting[semi as usize] = number;
            }
            let mut waiting = std::mem::replace(&mut self.waiting[parent as usize], NONE);
            while waiting != NONE {
                let least = self.least_above(waiting);
                let is_below = self.semi[least as usize] < self.semi[waiting as usize];
                self.above[waiting as usize] = if is_below { least } else { parent };
                waiting = self.next[waiting as usize];
            }
        }
        for number in top + 1..end {
            let above = self.above[number as usize];
            if above != self.semi[number as usize] {
                self.above[number as usize] = self.above[above as usize];
            }
        }
    }

    /// The number with the least `semi` on the path to the root of a tree, without the root; compresses the path.
    fn least_above(&mut self, number: u32) -> u32 {
        let mut at = number;
        loop {
            let ancestor = self.ancestors[at as usize];
            if ancestor == NONE || self.ancestors[ancestor as usize] == NONE {
                break;
            }
            self.path.push(at);
            at = ancestor;
        }
        while let Some(below) = self.path.pop() {
            let ancestor = self.ancestors[below as usize] as usize;
            let least = self.least[ancestor];
            if self.semi[least as usize] < self.semi[self.least[below as usize] as usize] {
                self.least[below as usize] = least;
            }
            self.ancestors[below as usize] = self.ancestors[ancestor];
        }
        self.least[number as usize]
    }
}
