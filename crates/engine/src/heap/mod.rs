//! Heap snapshots: the paths that keep each object alive, and the sizes that each object retains.
//!
//! [`Heap`] is one snapshot: objects by number, references as arrays, no pointers. Its tree of dominators contains the objects
//! that each object retains; unreachable objects have a tree of their own. Where a file has no roots, objects without references
//! to them are used instead. [`ObjectLifetimes`] follows objects over allocations and moves: from one snapshot to a later one, and back to
//! their allocations.

mod addresses;
mod dominators;
mod duplicates;
mod folded;
mod holders;
mod lives;
mod objects;
mod pages;
mod paths;
mod references;
mod retained;
mod roots;
mod rows;
mod sites;
mod sums;
#[cfg(test)]
mod tests;
mod walk;

use std::fmt;
use std::sync::OnceLock;

use arrow_array::RecordBatch;
use perfuse_tables::access::ColumnError;

use self::dominators::dominators;
pub use self::folded::FoldedHeap;
pub use self::holders::HeldObjects;
pub use self::lives::ObjectLifetimes;
pub use self::objects::HeapObjects;
pub use self::paths::HeapPaths;
use self::references::ObjectReferences;
use self::retained::{ClassSums, DominatorTree, RetainedSums, classes};
pub use self::roots::{HeapRoots, RootIdentity, SnapshotRoot};
pub use self::rows::{ClassChange, RetainedObjects};
pub use self::sites::{Snapshots, site_sums, sites, whereabouts};
pub use self::sums::SnapshotSums;
use self::walk::HeapWalk;
use crate::NONE;

/// Limit on the objects, and on the references, of one snapshot; greater numbers have other meanings.
const MOST: usize = (u32::MAX - 16) as usize;

/// Why a snapshot cannot be analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// A table does not have the declared columns.
    Column(ColumnError),
    /// More than four thousand million rows.
    TooLarge,
}

impl From<ColumnError> for Error {
    fn from(error: ColumnError) -> Self {
        Self::Column(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column(error) => error.fmt(f),
            Self::TooLarge => {
                f.write_str("a heap snapshot has more than four thousand million objects or references")
            }
        }
    }
}

impl std::error::Error for Error {}

/// One heap snapshot.
#[derive(Debug)]
pub struct Heap {
    objects: HeapObjects,
    references: ObjectReferences,
    roots: HeapRoots,
    walk: HeapWalk,
    /// Dominators by the numbers of the walk.
    above: Vec<u32>,
    retained: RetainedSums,
    tree: OnceLock<DominatorTree>,
    classes: OnceLock<Vec<ClassSums>>,
    paths: OnceLock<HeapPaths>,
}

impl Heap {
    /// Reads the rows of one snapshot: `heap_objects`, then `heap_references`, then `heap_roots`.
    pub fn read<R: Iterator<Item = RecordBatch>>(
        mut rows: impl FnMut(&'static str) -> R,
    ) -> Result<Self, Error> {
        let objects = HeapObjects::read(rows("heap_objects"))?;
        let references = ObjectReferences::read(rows("heap_references"), &objects)?;
        let roots = HeapRoots::read(rows("heap_roots"), &objects)?;
        let rooted = roots.objects();
        let walk = HeapWalk::new(&references, objects.len(), &rooted);
        let above = dominators(&walk, &references, &rooted);
        let retained = RetainedSums::new(&objects, &walk, &above);
        let (tree, classes, paths) = Default::default();
        Ok(Self { objects, references, roots, walk, above, retained, tree, classes, paths })
    }

    /// Its objects.
    pub fn objects(&self) -> &HeapObjects {
        &self.objects
    }

    /// Its roots.
    pub fn roots(&self) -> &HeapRoots {
        &self.roots
    }

    /// Number of references between its objects.
    pub fn num_references(&self) -> usize {
        self.references.len()
    }

    /// The objects that an object refers to, with the offsets of the references in it; `None` where unknown.
    pub fn references_from(
        &self,
        object: u32,
    ) -> impl ExactSizeIterator<Item = (u32, Option<u32>)> + Clone + '_ {
        let pairs = self.references.of(object).iter().zip(self.references.fields(object));
        pairs.map(|(&target, &field)| (target, (field != NONE).then_some(field)))
    }

    /// The objects that refer to an object, with the offsets of the references in them; `None` where unknown.
    pub fn references_to(&self, object: u32) -> Vec<(u32, Option<u32>)> {
        self.references.to(object).map(|(owner, field)| (owner, (field != NONE).then_some(field))).collect()
    }

    /// Number of references from or to addresses that are not objects of it.
    pub fn num_dangling(&self) -> u64 {
        self.references.num_dangling()
    }

    /// Whether any roots were recorded, also weak ones and those without an object.
    pub fn has_roots(&self) -> bool {
        !self.roots.list().is_empty() || self.roots.num_missed() > 0 || self.roots.num_weak() > 0
    }

    /// Number and size of the objects that no root keeps alive; of all objects where the file has no roots.
    pub fn unreachable(&self) -> (u32, u64) {
        let rest = self.walk.rest;
        (self.retained.count(rest), self.retained.bytes(rest))
    }

    /// Objects from which all that no root keeps alive is reached: what nothing else refers to, and one object of each cycle.
    pub fn unreachable_entries(&self) -> &[u32] {
        &self.walk.entries
    }

    /// Whether a root keeps an object alive; `None` where the file has no roots.
    pub fn is_reachable(&self, object: u32) -> Option<bool> {
        self.has_roots().then(|| self.walk.is_reachable(object))
    }

    /// The immediate dominator of an object: the nearest object on every path to it; `None` where there is none.
    pub fn dominator(&self, object: u32) -> Option<u32> {
        let above = self.above.get(self.walk.number(object) as usize)?;
        Some(self.walk.object(*above)).filter(|above| *above != NONE)
    }

    /// Bytes and number of objects that an object retains, itself included.
    pub fn retained(&self, object: u32) -> (u64, u32) {
        let number = self.walk.number(object);
        (self.retained.bytes(number), self.retained.count(number))
    }

    /// Shortest paths to objects: from roots; where the file has none, from objects without references to them.
    pub fn paths(&self) -> &HeapPaths {
        self.paths.get_or_init(|| {
            let starts = if self.has_roots() { self.roots.objects() } else { self.walk.entries.clone() };
            HeapPaths::new(&self.references, self.objects.len(), &starts)
        })
    }

    fn tree(&self) -> &DominatorTree {
        self.tree.get_or_init(|| DominatorTree::new(&self.above))
    }

    /// Sums by class number.
    fn classes(&self) -> &[ClassSums] {
        self.classes.get_or_init(|| classes(&self.objects, &self.walk, self.tree(), &self.retained))
    }
}
