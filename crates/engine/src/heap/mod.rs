//! Heap shots: what keeps each object alive, and how much it keeps alive.
//!
//! [`Heap`] is one shot: objects by number, references as arrays, no pointers. Its tree of dominators tells what each object
//! alone retains; what no root keeps alive has a tree of its own. Where a file has no roots, objects that nothing refers to
//! stand for them. [`Lives`] follows objects over allocations and moves: from one shot to a later one, and back to where
//! they were allocated.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

mod addresses;
mod dominators;
mod duplicates;
mod folded;
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
pub use self::folded::Folded;
pub use self::lives::Lives;
pub use self::objects::Objects;
pub use self::paths::Paths;
use self::references::References;
use self::retained::{Class, Retained, Tree, classes};
pub use self::roots::{Root, Roots};
pub use self::rows::{Change, Kept};
pub use self::sites::{Shots, site_sums, sites, whereabouts};
pub use self::sums::{ShotSum, ShotSums};
use self::walk::Walk;

/// Stands for "none" among numbers.
const NONE: u32 = u32::MAX;

/// Objects, or references, of one shot; numbers beyond have other meanings.
const MOST: usize = (u32::MAX - 16) as usize;

/// Why a shot cannot be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Its tables are not those of the declaration.
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
                f.write_str("a heap shot has more than four thousand million objects or references")
            }
        }
    }
}

impl std::error::Error for Error {}

/// One heap shot.
#[derive(Debug)]
pub struct Heap {
    objects: Objects,
    references: References,
    roots: Roots,
    walk: Walk,
    /// Dominators by the numbers of the walk.
    above: Vec<u32>,
    retained: Retained,
    tree: OnceLock<Tree>,
    classes: OnceLock<Vec<Class>>,
    paths: OnceLock<Paths>,
}

impl Heap {
    /// Reads the rows of one shot: `heap_objects`, then `heap_references`, then `heap_roots`.
    pub fn read<R: Iterator<Item = RecordBatch>>(
        mut rows: impl FnMut(&'static str) -> R,
    ) -> Result<Self, Error> {
        let objects = Objects::read(rows("heap_objects"))?;
        let references = References::read(rows("heap_references"), &objects)?;
        let roots = Roots::read(rows("heap_roots"), &objects)?;
        let kept = roots.objects();
        let walk = Walk::new(&references, objects.len(), &kept);
        let above = dominators(&walk, &references, &kept);
        let retained = Retained::new(&objects, &walk, &above);
        let (tree, classes, paths) = Default::default();
        Ok(Self { objects, references, roots, walk, above, retained, tree, classes, paths })
    }

    /// Its objects.
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// Its roots.
    pub fn roots(&self) -> &Roots {
        &self.roots
    }

    /// References between objects of it.
    pub fn num_references(&self) -> usize {
        self.references.len()
    }

    /// References of or to what is no object of it.
    pub fn num_dangling(&self) -> u64 {
        self.references.num_dangling()
    }

    /// Whether any roots were recorded, of whatever.
    pub fn has_roots(&self) -> bool {
        !self.roots.list().is_empty() || self.roots.num_missed() + self.roots.num_weak() > 0
    }

    /// Objects that no root keeps alive, and their size; all of them where the file has no roots.
    pub fn unreachable(&self) -> (u32, u64) {
        let rest = self.walk.rest as usize;
        (self.retained.counts[rest], self.retained.bytes[rest])
    }

    /// Whether a root keeps an object alive; `None` where the file has no roots.
    pub fn is_reachable(&self, object: u32) -> Option<bool> {
        self.has_roots().then(|| self.walk.is_reachable(object))
    }

    /// The nearest object that every way to one leads over; `None` where there is none.
    pub fn dominator(&self, object: u32) -> Option<u32> {
        let above = self.above[self.walk.numbers[object as usize] as usize];
        Some(self.walk.objects[above as usize]).filter(|above| *above != NONE)
    }

    /// What would go with an object, in bytes, and how many objects that is; both with itself.
    pub fn retained(&self, object: u32) -> (u64, u32) {
        let number = self.walk.numbers[object as usize] as usize;
        (self.retained.bytes[number], self.retained.counts[number])
    }

    /// Shortest ways to objects: from roots; where the file has none, from objects that nothing refers to.
    pub fn paths(&self) -> &Paths {
        self.paths.get_or_init(|| {
            let starts = if self.has_roots() { self.roots.objects() } else { self.walk.entries.clone() };
            Paths::new(&self.references, self.objects.len(), &starts)
        })
    }

    fn tree(&self) -> &Tree {
        self.tree.get_or_init(|| Tree::new(&self.above))
    }

    /// Sums of each class, by the number of the class.
    fn classes(&self) -> &[Class] {
        self.classes.get_or_init(|| classes(&self.objects, &self.walk, self.tree(), &self.retained))
    }
}
