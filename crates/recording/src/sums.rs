//! Sums over tables that a recording has without decoding the tables.

/// Sum over the objects of one heap snapshot and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedSnapshotSum {
    /// Key of the heap snapshot.
    pub snapshot_id: u32,
    /// Key of the type, where it is known.
    pub type_id: Option<u32>,
    /// Rows of `heap_objects`.
    pub num_objects: u64,
    /// Sum of their sizes in bytes.
    pub size_bytes: u64,
    /// Rows of `heap_references` of objects of the type.
    pub num_references: u64,
}
