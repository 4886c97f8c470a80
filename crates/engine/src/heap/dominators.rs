//! Who alone keeps each object alive: the algorithm of Lengauer and Tarjan, with their simple way of linking, whose time is
//! m log n whatever the graph.

use super::NONE;
use super::references::References;
use super::walk::Walk;

/// The number above each in the tree of dominators, by the numbers of a walk. The two that stand for no object are above
/// themselves.
pub fn dominators(walk: &Walk, references: &References, roots: &[u32]) -> Vec<u32> {
    let mut forest = Forest::new(walk, references, roots);
    forest.settle(walk, walk.rest, walk.objects.len() as u32);
    forest.settle(walk, 0, walk.rest);
    forest.above
}

struct Forest {
    /// Least number from which a way leads to each over higher ones only.
    semi: Vec<u32>,
    /// Towards the top of the tree each is linked into, with shortcuts; [`NONE`] at its top, and for those not linked yet.
    ancestors: Vec<u32>,
    /// The number with the least `semi` on the way that a shortcut leaves out.
    least: Vec<u32>,
    above: Vec<u32>,
    /// Numbers that wait for each to be linked, as lists: the first, and the one behind each.
    waiting: Vec<u32>,
    next: Vec<u32>,
    owners: Owners,
    path: Vec<u32>,
}

/// What refers to each, by number.
struct Owners {
    starts: Vec<u32>,
    numbers: Vec<u32>,
}

impl Owners {
    fn new(walk: &Walk, references: &References) -> Self {
        let len = walk.objects.len();
        let mut starts = vec![0u32; len + 1];
        for_each(walk, references, |_, target| starts[target as usize + 1] += 1);
        for number in 0..len {
            starts[number + 1] += starts[number];
        }
        let mut numbers = vec![0; starts[len] as usize];
        // Filled from the back of each, so that the starts are right again afterwards.
        let mut ends = starts[1..].to_vec();
        for_each(walk, references, |owner, target| {
            let end = &mut ends[target as usize];
            *end -= 1;
            numbers[*end as usize] = owner;
        });
        Self { starts, numbers }
    }
}

/// Calls `each` with the numbers of owner and target, but for garbage that refers to what is alive: it keeps nothing so.
fn for_each(walk: &Walk, references: &References, mut each: impl FnMut(u32, u32)) {
    for (owner, &object) in (0u32..).zip(&walk.objects) {
        if object == NONE {
            continue;
        }
        for &target in references.of(object) {
            let target = walk.numbers[target as usize];
            // A walk goes everywhere, so nothing alive refers to garbage. What it was met from refers to each.
            if (owner < walk.rest) == (target < walk.rest) && owner != target {
                each(owner, target);
            }
        }
    }
}

impl Forest {
    fn new(walk: &Walk, references: &References, roots: &[u32]) -> Self {
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
            owners: Owners::new(walk, references),
            path: Vec::new(),
        }
    }

    /// Finds the dominators of the numbers behind `top`, up to `end`.
    fn settle(&mut self, walk: &Walk, top: u32, end: u32) {
        for number in (top + 1..end).rev() {
            let parent = walk.parents[number as usize];
            let mut semi = self.semi[number as usize].min(parent);
            let range = self.owners.starts[number as usize] as usize
                ..self.owners.starts[number as usize + 1] as usize;
            for at in range {
                let owner = self.owners.numbers[at];
                // Lower numbers are not linked yet: each is its own least.
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

    /// The number with the least `semi` on the way from one to the top of its tree, without that; makes the way shorter.
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
