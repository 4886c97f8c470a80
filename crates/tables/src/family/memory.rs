//! Managed memory: types, allocations, moves of objects, and garbage collector handles.

use crate::schema::table;

table! {
    /// One row for each type of objects.
    types {
        /// Surrogate key.
        type_id: u32,
        /// The file's own id or address of the type.
        native_id: Opt<u64>,
        /// Fully qualified name.
        name: Str,
        /// Module that defines the type.
        module_id: Opt<u32>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each allocation, in time order for each thread.
    allocations {
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Thread.
        thread_id: u32,
        /// Type; null where the file does not describe it.
        type_id: Opt<u32>,
        /// Address of the object when it is allocated; `object_moves` contains its later addresses.
        object_address: u64,
        /// Size of the object.
        size_bytes: u64,
        /// Call stack; null where none was recorded.
        stack_id: Opt<u32>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each move of an object by the garbage collector.
    object_moves {
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Address before the move.
        old_address: u64,
        /// Address after the move.
        new_address: u64,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}

table! {
    /// One row for each object of an exception that was thrown, a lock event or a finalizer, by the time of the event: where it was
    /// allocated, found over the moves of the collector. Not a common table: saved profiles have it.
    event_objects {
        /// Time of the event, in nanoseconds; of a finalizer, its start.
        ts_ns: i64,
        /// Address of the object at that time.
        object_address: u64,
        /// Its type; null where not recorded, as are all columns that follow where its allocation was not.
        type_id: Opt<u32>,
        /// Time of its allocation, in nanoseconds.
        allocated_ns: Opt<i64>,
        /// Address of its allocation.
        allocated_address: Opt<u64>,
        /// Its size.
        size_bytes: Opt<u64>,
    }
}

table! {
    /// One row for each garbage collector handle of an object.
    gc_handles {
        /// The runtime's number for the handle. The runtime reuses numbers of freed handles.
        handle: u64,
        /// `weak`, `weak_track_resurrection`, `normal` or `pinned`.
        kind: Str,
        /// Address of the object of the handle; null where the creation of the handle was not recorded.
        object_address: Opt<u64>,
        /// Time of creation on the profile's clock, in nanoseconds; null where not recorded.
        created_ns: Opt<i64>,
        /// Time when it was freed, in nanoseconds; null where it was not freed.
        destroyed_ns: Opt<i64>,
        /// Thread that created it.
        created_thread_id: Opt<u32>,
        /// Thread that freed it.
        destroyed_thread_id: Opt<u32>,
        /// Call stack of the creation; null where none was recorded.
        created_stack_id: Opt<u32>,
        /// Call stack of the freeing; null where none was recorded.
        destroyed_stack_id: Opt<u32>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of its first record in its file.
        record_offset: u64,
    }
}
