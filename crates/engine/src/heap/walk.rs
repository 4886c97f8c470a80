//! Numbers objects depth first: first from the roots, then from the entries of the unreachable rest.

use super::references::ObjectReferences;
use crate::NONE;

/// A depth-first numbering. Two numbers are not objects: 0, above all reachable objects, and [`HeapWalk::rest`], above all others.
#[derive(Debug)]
pub struct HeapWalk {
    /// Number of each object.
    pub numbers: Vec<u32>,
    /// Object of each number; [`NONE`] for the two.
    pub objects: Vec<u32>,
    /// Number that each was reached from.
    pub parents: Vec<u32>,
    /// Number above the unreachable objects.
    pub rest: u32,
    /// Entries of the rest: no other unreachable object refers to them, or they are of a cycle that no other object refers to.
    pub entries: Vec<u32>,
}

/// Marks an object that was visited and has no number yet.
const SEEN: u32 = NONE - 1;

#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "`numbers` has an entry for each object; roots and targets are numbers of objects, and the walk has two numbers more than objects"
)]
impl HeapWalk {
    /// Numbers all objects; `roots` are the objects of roots.
    pub fn new(references: &ObjectReferences, num_objects: usize, roots: &[u32]) -> Self {
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
        // The object that a walk leaves last has no references from the rest, or only from its own cycle.
        for object in walk.left_in_order(references).into_iter().rev() {
            if walk.numbers[object as usize] == NONE {
                walk.entries.push(object);
                walk.descend(references, object, walk.rest);
            }
        }
        walk
    }

    /// Whether a root keeps an object alive.
    #[inline]
    pub fn is_reachable(&self, object: u32) -> bool {
        self.number(object) < self.rest
    }

    /// Number of an object.
    #[inline]
    pub fn number(&self, object: u32) -> u32 {
        self.numbers.get(object as usize).copied().unwrap_or(NONE)
    }

    /// Object of a number; [`NONE`] for the two that are not objects.
    #[inline]
    pub fn object(&self, number: u32) -> u32 {
        self.objects.get(number as usize).copied().unwrap_or(NONE)
    }

    fn push(&mut self, object: u32, parent: u32) {
        self.objects.push(object);
        self.parents.push(parent);
    }

    fn meet(&mut self, object: u32, parent: u32) {
        self.numbers[object as usize] = self.objects.len() as u32;
        self.push(object, parent);
    }

    fn descend(&mut self, references: &ObjectReferences, from: u32, parent: u32) {
        if self.numbers[from as usize] != NONE {
            return;
        }
        self.meet(from, parent);
        let mut open = vec![(self.numbers[from as usize], references.range(from))];
        while let Some((number, rest)) = open.last_mut() {
            perfuse_stopping::checkpoint();
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

    /// Objects without a number, in the order in which a walk over them leaves each.
    fn left_in_order(&mut self, references: &ObjectReferences) -> Vec<u32> {
        let mut done = Vec::new();
        let mut open = Vec::new();
        for from in 0..self.numbers.len() as u32 {
            if self.numbers[from as usize] != NONE {
                continue;
            }
            self.numbers[from as usize] = SEEN;
            open.push((from, references.range(from)));
            while let Some((object, rest)) = open.last_mut() {
                perfuse_stopping::checkpoint();
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
