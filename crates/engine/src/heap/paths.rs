//! Shortest paths from roots.

use super::references::ObjectReferences;
use crate::NONE;

/// The shortest path to each object.
#[derive(Debug)]
pub struct HeapPaths {
    /// The object before each on its path; [`NONE`] at the start of a path, and where none leads to it.
    nearer: Vec<u32>,
    /// Number of references on the path; [`NONE`] where none leads to it.
    distances: Vec<u32>,
}

impl HeapPaths {
    /// Breadth-first search from some objects; of several shortest paths the one from the earlier object is used.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "both arrays have an entry for each object, and a distance is less than the number of objects"
    )]
    pub fn new(references: &ObjectReferences, num_objects: usize, starts: &[u32]) -> Self {
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
            perfuse_stopping::checkpoint();
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

    /// Number of references on the path to an object; `None` where none leads to it.
    pub fn distance(&self, object: u32) -> Option<u32> {
        self.distances.get(object as usize).copied().filter(|distance| *distance != NONE)
    }

    /// The object before it.
    pub fn nearer(&self, object: u32) -> Option<u32> {
        self.nearer.get(object as usize).copied().filter(|nearer| *nearer != NONE)
    }

    /// The objects on the path, the object itself last; empty where none leads to it.
    pub fn to(&self, object: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = self.distance(object).map(|_| object);
        while let Some(object) = at {
            path.push(object);
            at = self.nearer(object);
        }
        path.reverse();
        path
    }
}
