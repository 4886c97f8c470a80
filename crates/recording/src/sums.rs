//! Sums over tables that a recording has without decoding the tables.

/// Sum over the rows of `allocations` of one thread and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationSum {
    /// Key of the thread.
    pub thread_id: u32,
    /// Key of the type, where it is known.
    pub type_id: Option<u32>,
    /// Number of objects.
    pub count: u64,
    /// Sum of their sizes in bytes.
    pub bytes: u64,
    /// Size of the largest in bytes.
    pub largest: u64,
    /// Time of the first.
    pub first_ns: i64,
    /// File that contains them.
    pub source_id: u32,
    /// Offset of the first record.
    pub record_offset: u64,
}

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
