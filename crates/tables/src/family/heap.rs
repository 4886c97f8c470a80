//! Heap shots: every living object at a moment, what it refers to, and what keeps it alive.

use crate::schema::table;

table! {
    /// One row a heap shot.
    heap_snapshots {
        /// Surrogate key.
        snapshot_id: u32,
        /// When it was begun, on the profile's clock.
        ts_ns: i64,
        /// When it was done; null where the recording ended first.
        end_ns: Opt<i64>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its first record.
        record_offset: u64,
    }
}

table! {
    /// One row an object of a heap shot.
    heap_objects {
        /// Heap shot.
        snapshot_id: u32,
        /// Its address then.
        object_address: u64,
        /// Type; null where the file never describes it.
        type_id: Opt<u32>,
        /// Its size.
        size_bytes: u64,
        /// Generation it is in; null where the file does not say.
        generation: Opt<u8>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a reference from an object to another.
    heap_references {
        /// Heap shot.
        snapshot_id: u32,
        /// Object that refers.
        owner_address: u64,
        /// Object referred to.
        target_address: u64,
        /// Where in the owner the reference lies, in bytes; null where the file does not say.
        field_offset: Opt<u64>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a root: what keeps an object alive that no object has to refer to.
    heap_roots {
        /// Heap shot; null for roots of a collection without one.
        snapshot_id: Opt<u32>,
        /// Time on the profile's clock; null where the file does not say.
        ts_ns: Opt<i64>,
        /// Object that is kept.
        object_address: u64,
        /// `static`, `stack`, `gc_handle`, `finalizer_queue` and so on.
        kind: Str,
        /// What the memory it lies in is called.
        name: Opt<Str>,
        /// Where it lies.
        slot_address: Opt<u64>,
        /// Type whose static field it is.
        owner_type_id: Opt<u32>,
        /// Thread whose stack or thread static it is.
        owner_thread_id: Opt<u32>,
        /// Whether the object cannot be moved; null where the file does not say.
        pinning: Opt<bool>,
        /// Whether it does not keep the object alive after all; null where the file does not say.
        weak: Opt<bool>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}
