//! Sums over rows of table `allocations`: recordings that know them without decoding the table, and the engine, use one type.

/// Allocations of one thread, type and stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocationGroup {
    /// Key of the thread.
    pub thread_id: u32,
    /// Key of the type; `None` where unknown.
    pub type_id: Option<u32>,
    /// Key of the stack; `None` where none was recorded, or sums are not by stack.
    pub stack_id: Option<u32>,
}

/// The sum of a group of allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationSum {
    /// The group.
    pub group: AllocationGroup,
    /// Number of allocations.
    pub count: u64,
    /// Sum of their sizes in bytes.
    pub bytes: u64,
    /// Size of the largest in bytes.
    pub largest: u64,
    /// Time of the first on the profile's clock.
    pub first_ns: i64,
    /// File that contains it.
    pub source_id: u32,
    /// Offset of its record.
    pub record_offset: u64,
}

impl AllocationSum {
    /// Adds a sum of the same group.
    pub fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.largest = self.largest.max(other.largest);
        self.first_ns = self.first_ns.min(other.first_ns);
    }
}

/// Sum over the objects of one heap snapshot and type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotSum {
    /// Key of the heap snapshot.
    pub snapshot_id: u32,
    /// Key of the type, where it is known.
    pub type_id: Option<u32>,
    /// Rows of `heap_objects`.
    pub num_objects: u64,
    /// Sum of their sizes in bytes.
    pub size_bytes: u64,
    /// Rows of `heap_references` of objects of the type, where that is known; else of the snapshot, in its sum without a type.
    pub num_references: u64,
}
