//! Tables of a snapshot.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::{BATCH_ROWS, heap_classes, heap_dominators};

use super::duplicates::duplicates;
use super::sites::find_origins;
use super::{Heap, HeapObjects, ObjectLifetimes};
use crate::NONE;
use crate::batch;

impl Heap {
    /// Ranges of objects for the batches of [`Heap::dominator_rows`].
    pub fn object_ranges(&self) -> impl Iterator<Item = Range<u32>> + use<> {
        let len = self.objects.len() as u32;
        let rows = BATCH_ROWS as u32;
        (0..len).step_by(BATCH_ROWS).map(move |start| start..start.saturating_add(rows).min(len))
    }

    /// Rows of `heap_dominators`.
    pub fn dominator_rows(&self, snapshot: u32, objects: Range<u32>) -> RecordBatch {
        let paths = self.has_roots().then(|| self.paths());
        let address = |object| self.objects.address(object);
        let mut table = heap_dominators::Builder::new();
        for object in objects {
            let (bytes, count) = self.retained(object);
            table.push(
                snapshot,
                address(object),
                self.objects.type_id(object),
                self.objects.size(object),
                self.dominator(object).map(address),
                bytes,
                count,
                self.is_reachable(object),
                paths.and_then(|paths| paths.distance(object)),
                paths.and_then(|paths| paths.nearer(object)).map(address),
            );
        }
        table.finish()
    }

    /// Rows of `heap_classes`, the one that retains most first.
    pub fn class_rows(&self, snapshot: u32) -> RecordBatch {
        let mut rows: Vec<_> = self.classes().iter().zip(self.objects.types()).collect();
        rows.sort_by_key(|(class, of)| (Reverse(class.retained_bytes), **of));
        let mut table = heap_classes::Builder::new();
        let if_roots = |number| self.has_roots().then_some(number);
        // Without classes whose objects all had repeated addresses.
        for (class, &of) in rows.into_iter().filter(|(class, _)| class.num_objects > 0) {
            table.push(
                snapshot,
                of,
                class.num_objects,
                class.size_bytes,
                class.retained_bytes,
                class.num_retained,
                if_roots(class.num_unreachable),
                if_roots(class.unreachable_bytes),
                self.objects.address(class.largest),
                class.largest_bytes,
            );
        }
        table.finish()
    }

    /// The objects that an object is the immediate dominator of; for `None`, those without a dominator. Those that retain most first.
    pub fn below(&self, object: Option<u32>, limit: Option<usize>) -> RecordBatch {
        let tree = self.tree();
        let numbers = match object {
            Some(object) => tree.below(self.walk.number(object)).to_vec(),
            None => [tree.below(0), tree.below(self.walk.rest)].concat(),
        };
        self.largest(numbers, limit)
    }

    /// Unreachable objects, without those that another of them retains.
    pub fn rest(&self, limit: Option<usize>) -> RecordBatch {
        self.largest(self.tree().below(self.walk.rest).to_vec(), limit)
    }

    /// The objects of a type, or of none; those that retain most first.
    pub fn of_type(&self, type_id: Option<u32>, limit: Option<usize>) -> RecordBatch {
        self.largest(self.objects.of_type(type_id).map(|object| self.walk.number(object)).collect(), limit)
    }

    fn largest(&self, mut numbers: Vec<u32>, limit: Option<usize>) -> RecordBatch {
        let key = |number: &u32| (Reverse(self.retained.bytes(*number)), *number);
        if let Some(limit) = limit.filter(|limit| *limit < numbers.len()) {
            numbers.select_nth_unstable_by_key(limit, key);
            numbers.truncate(limit);
        }
        numbers.sort_unstable_by_key(key);
        let objects = numbers.into_iter().map(|number| self.walk.object(number)).collect();
        self.object_rows(objects, None)
    }

    /// An object, as a row.
    pub fn object_row(&self, object: u32) -> RecordBatch {
        self.object_rows(vec![object], None)
    }

    /// The objects that an earlier snapshot did not have; those that retain most first.
    pub fn new_rows(&self, kept: &RetainedObjects, limit: Option<usize>) -> RecordBatch {
        let new = kept.origins.iter().zip(&self.walk.numbers).filter(|(origin, _)| **origin == NONE);
        self.largest(new.map(|(_, number)| *number).collect(), limit)
    }

    /// The shortest path to an object: one row per object, with the offset of the reference in the object before.
    pub fn path_rows(&self, object: u32) -> RecordBatch {
        let way = self.paths().to(object);
        let steps = way.iter().zip(way.iter().skip(1)).map(|(&owner, &next)| {
            let targets = self.references.of(owner).iter();
            let fields = targets.zip(self.references.fields(owner));
            fields.filter(|(target, _)| **target == next).map(|(_, field)| *field).min()
        });
        let fields = std::iter::once(None).chain(steps).map(|field| field.filter(|field| *field != NONE));
        let fields = fields.take(way.len()).collect();
        self.object_rows(way, Some(fields))
    }

    fn object_rows(&self, objects: Vec<u32>, fields: Option<UInt32Array>) -> RecordBatch {
        let each = || objects.iter().copied();
        let address = |object| self.objects.address(object);
        let addresses: UInt64Array = each().map(|object| Some(address(object))).collect();
        let types: UInt32Array = each().map(|object| self.objects.type_id(object)).collect();
        let sizes: UInt64Array = each().map(|object| Some(self.objects.size(object))).collect();
        let above: UInt64Array = each().map(|object| self.dominator(object).map(address)).collect();
        let bytes: UInt64Array = each().map(|object| Some(self.retained(object).0)).collect();
        let counts: UInt32Array = each().map(|object| Some(self.retained(object).1)).collect();
        let reachable: BooleanArray = each().map(|object| self.is_reachable(object)).collect();
        let mut columns: Vec<(&str, arrow_array::ArrayRef)> = vec![
            ("object_address", Arc::new(addresses)),
            ("type_id", Arc::new(types)),
            ("size_bytes", Arc::new(sizes)),
            ("dominator_address", Arc::new(above)),
            ("retained_bytes", Arc::new(bytes)),
            ("num_retained", Arc::new(counts)),
            ("is_reachable", Arc::new(reachable)),
        ];
        columns.extend(fields.map(|fields| ("field_offset", Arc::new(fields) as _)));
        batch::of(columns)
    }

    /// Groups of duplicate objects, one row per group; objects with fewer references are left out.
    pub fn duplicate_rows(&self, least_references: usize) -> RecordBatch {
        let groups = duplicates(&self.objects, &self.references, least_references);
        let first = || groups.iter().map(|group| group.first);
        let types: UInt32Array = first().map(|object| self.objects.type_id(object)).collect();
        let sizes = UInt64Array::from_iter_values(first().map(|object| self.objects.size(object)));
        let references = first().map(|object| self.references.of(object).len() as u32);
        let addresses = first().map(|object| self.objects.address(object));
        batch::of(vec![
            ("object_address", Arc::new(UInt64Array::from_iter_values(addresses))),
            ("type_id", Arc::new(types)),
            ("size_bytes", Arc::new(sizes)),
            ("num_references", Arc::new(UInt32Array::from_iter_values(references))),
            (
                "num_objects",
                Arc::new(UInt64Array::from_iter_values(groups.iter().map(|group| group.num_objects))),
            ),
            (
                "spare_bytes",
                Arc::new(UInt64Array::from_iter_values(groups.iter().map(|group| group.spare_bytes))),
            ),
        ])
    }
}

/// Changes of the objects of a class between two snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassChange {
    /// Number of objects of the later snapshot that are not in the earlier one.
    pub num_new: u64,
    /// Their sizes.
    pub new_bytes: u64,
    /// Number of objects of the earlier snapshot that are not in the later one.
    pub num_gone: u64,
    /// Their sizes.
    pub gone_bytes: u64,
}

/// The objects of a snapshot that an earlier one contains, at any address.
#[derive(Debug)]
pub struct RetainedObjects {
    /// The object of the earlier snapshot; [`NONE`] for new ones.
    origins: Vec<u32>,
}

impl RetainedObjects {
    /// Follows the objects of one snapshot to a later one; each with the time of its end.
    pub fn new(lifetimes: ObjectLifetimes, earlier: (&HeapObjects, i64), later: (&HeapObjects, i64)) -> Self {
        Self { origins: find_origins(lifetimes, earlier, later) }
    }

    /// The changes by type.
    pub fn changes(&self, earlier: &HeapObjects, later: &HeapObjects) -> Vec<(Option<u32>, ClassChange)> {
        let mut changes = rustc_hash::FxHashMap::<Option<u32>, ClassChange>::default();
        let mut is_gone = vec![true; earlier.len()];
        for (&origin, object) in self.origins.iter().zip(0u32..) {
            if let Some(gone) = is_gone.get_mut(origin as usize) {
                *gone = false;
                continue;
            }
            let change = changes.entry(later.type_id(object)).or_default();
            change.num_new = change.num_new.saturating_add(1);
            change.new_bytes = change.new_bytes.saturating_add(later.size(object));
        }
        for object in (0u32..).zip(is_gone).filter(|(_, gone)| *gone).map(|(object, _)| object) {
            let change = changes.entry(earlier.type_id(object)).or_default();
            change.num_gone = change.num_gone.saturating_add(1);
            change.gone_bytes = change.gone_bytes.saturating_add(earlier.size(object));
        }
        let mut changes: Vec<_> = changes.into_iter().collect();
        changes.sort_by_key(|&(of, change)| (Reverse(change.new_bytes), of));
        changes
    }
}
