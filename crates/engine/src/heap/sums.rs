//! Sums of the objects of snapshots by type, which need no references.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_tables::SnapshotSum;
use perfuse_tables::access::{nullable, numbers};

use super::Error;

/// Sums of the snapshots of a recording, by snapshot and type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSums(BTreeMap<(u32, Option<u32>), SnapshotSum>);

impl SnapshotSums {
    /// Adds up rows of `heap_objects` and of `heap_references`.
    pub fn read(
        objects: impl Iterator<Item = RecordBatch>,
        references: impl Iterator<Item = RecordBatch>,
    ) -> Result<Self, Error> {
        let mut sums = Self::default();
        for batch in objects {
            let ids = numbers::<UInt32Type>(&batch, "snapshot_id")?.values();
            let types = numbers::<UInt32Type>(&batch, "type_id")?;
            let sizes = numbers::<UInt64Type>(&batch, "size_bytes")?.values();
            for (row, (&snapshot_id, &size_bytes)) in ids.iter().zip(sizes).enumerate() {
                let type_id = nullable(types, row);
                sums.add(SnapshotSum { snapshot_id, type_id, num_objects: 1, size_bytes, num_references: 0 });
            }
        }
        for batch in references {
            for &snapshot_id in numbers::<UInt32Type>(&batch, "snapshot_id")?.values() {
                sums.add(SnapshotSum { snapshot_id, num_references: 1, ..SnapshotSum::default() });
            }
        }
        Ok(sums)
    }

    /// Adds objects and references of a snapshot and type.
    pub fn add(&mut self, more: SnapshotSum) {
        let (snapshot_id, type_id) = (more.snapshot_id, more.type_id);
        let empty = SnapshotSum { snapshot_id, type_id, ..SnapshotSum::default() };
        let sum = self.0.entry((snapshot_id, type_id)).or_insert(empty);
        sum.num_objects = sum.num_objects.saturating_add(more.num_objects);
        sum.size_bytes = sum.size_bytes.saturating_add(more.size_bytes);
        sum.num_references = sum.num_references.saturating_add(more.num_references);
    }

    /// The sums with objects, by snapshot and type.
    pub fn classes(&self) -> impl Iterator<Item = &SnapshotSum> {
        self.0.values().filter(|sum| sum.num_objects > 0)
    }

    /// Number of rows of `heap_references`, by snapshot.
    #[must_use]
    pub fn references(&self) -> BTreeMap<u32, u64> {
        let mut references = BTreeMap::new();
        for sum in self.0.values() {
            let of_snapshot: &mut u64 = references.entry(sum.snapshot_id).or_default();
            *of_snapshot = of_snapshot.saturating_add(sum.num_references);
        }
        references
    }
}

impl Extend<SnapshotSum> for SnapshotSums {
    fn extend<T: IntoIterator<Item = SnapshotSum>>(&mut self, more: T) {
        more.into_iter().for_each(|sum| self.add(sum));
    }
}

impl IntoIterator for SnapshotSums {
    type Item = SnapshotSum;
    type IntoIter = std::collections::btree_map::IntoValues<(u32, Option<u32>), SnapshotSum>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_values()
    }
}
