//! Objects numbered as a walk meets them, depth first: first from the roots, then from where the rest can be entered.

use super::NONE;
use super::references::References;

/// The walk. Two numbers stand for no object: 0, above all that roots keep alive, and [`Walk::rest`], above all others.
#[derive(Debug)]
pub struct Walk {
    /// Number of each object.
    pub numbers: Vec<u32>,
    /// Object of each number; [`NONE`] for the two.
    pub objects: Vec<u32>,
    /// Number each was met from.
    pub parents: Vec<u32>,
    /// Number that stands above the objects no root keeps alive.
    pub rest: u32,
    /// Objects the rest is entered by: nothing else that no root keeps alive refers to them, or they stand for a cycle
    /// that nothing else refers to.
    pub entries: Vec<u32>,
}

/// Marks an object that is looked at, before it has its number.
const SEEN: u32 = NONE - 1;

impl Walk {
    /// Walks over all objects; `roots` are those that keep themselves alive.
    pub fn new(references: &References, num_objects: usize, roots: &[u32]) -> Self {
        let mut walk = Self {
            numbers: vec![NONE; num_objects],
            objects: Vec::with_capacity(num_objects + 2),
            parents: Vec::with_capacity(num_objects + 2),
            rest: 0,
            entries: Vec::new(),
        };
        walk.push(NONE, 0);
        for &root in roots {
            walk.descend(references, root, 0);
        }
        walk.rest = walk.objects.len() as u32;
        walk.push(NONE, walk.rest);
        // What is left last by a walk from anywhere is referred to by nothing of the rest, or only by its own cycle.
        for object in walk.left_in_order(references).into_iter().rev() {
            if walk.numbers[object as usize] == NONE {
                walk.entries.push(object);
                walk.descend(references, object, walk.rest);
            }
        }
        walk
    }

    /// Whether roots keep an object alive.
    #[inline]
    pub fn is_reachable(&self, object: u32) -> bool {
        self.numbers[object as usize] < self.rest
    }

    fn push(&mut self, object: u32, parent: u32) {
        self.objects.push(object);
        self.parents.push(parent);
    }

    fn meet(&mut self, object: u32, parent: u32) {
        self.numbers[object as usize] = self.objects.len() as u32;
        self.push(object, parent);
    }

    fn descend(&mut self, references: &References, from: u32, parent: u32) {
        if self.numbers[from as usize] != NONE {
            return;
        }
        self.meet(from, parent);
        let mut open = vec![(self.numbers[from as usize], references.range(from))];
        while let Some((number, rest)) = open.last_mut() {
            let Some(at) = rest.next() else {
                open.pop();
                continue;
            };
            let (number, target) = (*number, references.target(at));
            if self.numbers[target as usize] == NONE {
                self.meet(target, number);
                open.push((self.numbers[target as usize], references.range(target)));
            }
        }
    }

    /// Objects without a number, in the order in which a walk over them is done with each.
    fn left_in_order(&mut self, references: &References) -> Vec<u32> {
        let mut done = Vec::new();
        let mut open = Vec::new();
        for from in 0..self.numbers.len() as u32 {
            if self.numbers[from as usize] != NONE {
                continue;
            }
            self.numbers[from as usize] = SEEN;
            open.push((from, references.range(from)));
            while let Some((object, rest)) = open.last_mut() {
                let Some(at) = rest.next() else {
                    done.push(*object);
                    open.pop();
                    continue;
                };
                let target = references.target(at);
                if self.numbers[target as usize] == NONE {
                    self.numbers[target as usize] = SEEN;
                    open.push((target, references.range(target)));
                }
            }
        }
        for &object in &done {
            self.numbers[object as usize] = NONE;
        }
        done
    }
}
