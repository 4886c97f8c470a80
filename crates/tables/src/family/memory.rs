//! Managed memory: what is allocated, of which type, and where it goes.

use crate::schema::table;

table! {
    /// One row a type of objects.
    types {
        /// Surrogate key.
        type_id: u32,
        /// The file's own id or address for it.
        native_id: Opt<u64>,
        /// Full name.
        name: Str,
        /// Module that defines it.
        module_id: Opt<u32>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row an allocation, in time order for each thread.
    allocations {
        /// Time on the profile's clock.
        ts_ns: i64,
        /// Thread.
        thread_id: u32,
        /// Type; null where the file never describes it.
        type_id: Opt<u32>,
        /// Address the object has at first; see `object_moves`.
        object_address: u64,
        /// Its size.
        size_bytes: u64,
        /// Stack; null where none was taken.
        stack_id: Opt<u32>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a move of an object by the collector.
    object_moves {
        /// Time on the profile's clock.
        ts_ns: i64,
        /// Address before.
        old_address: u64,
        /// Address after.
        new_address: u64,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}

table! {
    /// One row a handle that keeps or watches an object.
    gc_handles {
        /// The runtime's number for it, which it uses again.
        handle: u64,
        /// `weak`, `weak_track_resurrection`, `normal` or `pinned`.
        kind: Str,
        /// Object it holds; null where its making was not recorded.
        object_address: Opt<u64>,
        /// When it was made; null where that was not recorded.
        created_ns: Opt<i64>,
        /// When it was freed; null where it never was.
        destroyed_ns: Opt<i64>,
        /// Thread that made it.
        created_thread_id: Opt<u32>,
        /// Thread that freed it.
        destroyed_thread_id: Opt<u32>,
        /// Stack it was made by.
        created_stack_id: Opt<u32>,
        /// Stack it was freed by.
        destroyed_stack_id: Opt<u32>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its first record.
        record_offset: u64,
    }
}
