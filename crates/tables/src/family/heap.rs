//! Heap snapshots: all live objects at one time, their references, and the roots that keep them alive.

use crate::schema::table;

table! {
    /// One row for each heap snapshot.
    heap_snapshots {
        /// Surrogate key.
        snapshot_id: u32,
        /// Start of the snapshot on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// End of the snapshot, in nanoseconds: from then on, its objects have the recorded addresses. Null where the recording
        /// ended before it.
        end_ns: Opt<i64>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of its first record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each object of a heap snapshot.
    heap_objects {
        /// Heap snapshot.
        snapshot_id: u32,
        /// Address of the object at the time of the snapshot.
        object_address: u64,
        /// Type; null where the file does not describe it.
        type_id: Opt<u32>,
        /// Size of the object.
        size_bytes: u64,
        /// Garbage collector generation of the object; null where the file does not contain it.
        generation: Opt<u8>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each reference from one object to another.
    heap_references {
        /// Heap snapshot.
        snapshot_id: u32,
        /// Address of the object that contains the reference.
        owner_address: u64,
        /// Address of the referenced object.
        target_address: u64,
        /// Offset of the reference in the object that contains it, in bytes; null where the file does not contain it.
        field_offset: Opt<u64>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each root: a reference from outside the heap that keeps an object alive.
    heap_roots {
        /// Heap snapshot; null for roots of a collection without a snapshot.
        snapshot_id: Opt<u32>,
        /// Time on the profile's clock; null where the file does not contain it.
        ts_ns: Opt<i64>,
        /// Address, in the heap snapshot, of the object that the root keeps alive.
        object_address: u64,
        /// Kind of root, such as `static`, `stack`, `gc_handle` or `finalizer_queue`.
        kind: Str,
        /// Name of the memory area that contains the root; null where it has none.
        name: Opt<Str>,
        /// Address of the root.
        slot_address: Opt<u64>,
        /// Type whose static field is the root.
        owner_type_id: Opt<u32>,
        /// Thread whose stack or thread-static field contains the root.
        owner_thread_id: Opt<u32>,
        /// Whether the root prevents the collector from moving the object; null where the file does not contain it.
        pinning: Opt<bool>,
        /// Whether the root is weak and does not keep the object alive; null where the file does not contain it.
        weak: Opt<bool>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
