//! Shortest ways from roots.

use super::NONE;
use super::references::References;

/// The way to each object, breadth first.
#[derive(Debug)]
pub struct Paths {
    /// Object before each; [`NONE`] where it begins, and where none leads to it.
    nearer: Vec<u32>,
    /// References to each; [`NONE`] where none lead to it.
    distances: Vec<u32>,
}

impl Paths {
    /// Goes out from some objects; of ways as short as each other the one from the earlier of them counts.
    pub fn new(references: &References, num_objects: usize, starts: &[u32]) -> Self {
        let mut paths = Self { nearer: vec![NONE; num_objects], distances: vec![NONE; num_objects] };
        let mut queue = Vec::with_capacity(num_objects);
        for &start in starts {
            if paths.distances[start as usize] == NONE {
                paths.distances[start as usize] = 0;
                queue.push(start);
            }
        }
        let mut next = 0;
        while let Some(&object) = queue.get(next) {
            next += 1;
            let distance = paths.distances[object as usize] + 1;
            for &target in references.of(object) {
                if paths.distances[target as usize] == NONE {
                    paths.distances[target as usize] = distance;
                    paths.nearer[target as usize] = object;
                    queue.push(target);
                }
            }
        }
        paths
    }

    /// References from where a way begins to an object; `None` where none leads to it.
    pub fn distance(&self, object: u32) -> Option<u32> {
        Some(self.distances[object as usize]).filter(|distance| *distance != NONE)
    }

    /// The object before it.
    pub fn nearer(&self, object: u32) -> Option<u32> {
        Some(self.nearer[object as usize]).filter(|nearer| *nearer != NONE)
    }

    /// The objects on the way, from where it begins to the object itself; empty where none leads to it.
    pub fn to(&self, object: u32) -> Vec<u32> {
        let mut way = Vec::new();
        let mut at = self.distance(object).map(|_| object);
        while let Some(object) = at {
            way.push(object);
            at = self.nearer(object);
        }
        way.reverse();
        way
    }
}
