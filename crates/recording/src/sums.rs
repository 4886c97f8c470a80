//! Rows of tables that a recording can add up without making them.

/// Rows of `allocations` of one thread and type, added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationSum {
    /// Key of the thread.
    pub thread_id: u32,
    /// Key of the type, where it is known.
    pub type_id: Option<u32>,
    /// Objects.
    pub count: u64,
    /// Their sizes.
    pub bytes: u64,
    /// The largest.
    pub largest: u64,
    /// Time of the first.
    pub first_ns: i64,
    /// File they are from.
    pub source_id: u32,
    /// Offset of the first record.
    pub record_offset: u64,
}

/// Objects of one heap shot and type, added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShotSum {
    /// Key of the heap shot.
    pub snapshot_id: u32,
    /// Key of the type, where it is known.
    pub type_id: Option<u32>,
    /// Rows of `heap_objects`.
    pub num_objects: u64,
    /// Their sizes.
    pub size_bytes: u64,
    /// Rows of `heap_references` of objects of the type.
    pub num_references: u64,
}
