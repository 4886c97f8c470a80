//! Sums of the objects of snapshots by type, which need no references.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_tables::access::{nullable, numbers};

use super::Error;

/// The objects of one snapshot and type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSum {
    /// Number of rows of `heap_objects`.
    pub num_objects: u64,
    /// Sum of their sizes.
    pub size_bytes: u64,
}

/// Sums of the snapshots of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSums {
    /// By snapshot and type.
    pub classes: BTreeMap<(u32, Option<u32>), SnapshotSum>,
    /// Number of rows of `heap_references`, by snapshot.
    pub references: BTreeMap<u32, u64>,
}

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
                sums.add(snapshot_id, nullable(types, row), SnapshotSum { num_objects: 1, size_bytes });
            }
        }
        for batch in references {
            for snapshot_id in numbers::<UInt32Type>(&batch, "snapshot_id")?.values() {
                sums.add_references(*snapshot_id, 1);
            }
        }
        Ok(sums)
    }

    /// Adds objects of a snapshot and type.
    pub fn add(&mut self, snapshot_id: u32, type_id: Option<u32>, more: SnapshotSum) {
        let sum = self.classes.entry((snapshot_id, type_id)).or_default();
        sum.num_objects = sum.num_objects.saturating_add(more.num_objects);
        sum.size_bytes = sum.size_bytes.saturating_add(more.size_bytes);
    }

    /// Adds references of a snapshot.
    pub fn add_references(&mut self, snapshot_id: u32, more: u64) {
        let sum = self.references.entry(snapshot_id).or_default();
        *sum = sum.saturating_add(more);
    }
}
