//! Results of analyses of heap snapshots: dominators, retained sizes and allocation sites. They are computed, not recorded.

use crate::schema::table;

table! {
    /// One row for each object of a heap snapshot: its dominator and its retained size.
    heap_dominators {
        /// Heap snapshot.
        snapshot_id: u32,
        /// Address of the object.
        object_address: u64,
        /// Type of the object; null where the file does not describe it.
        type_id: Opt<u32>,
        /// Size of the object itself.
        size_bytes: u64,
        /// Address of the immediate dominator: the nearest object on every path from a root to this object; null where there is none.
        dominator_address: Opt<u64>,
        /// Retained size: sizes of the object and of all objects that only it keeps alive.
        retained_bytes: u64,
        /// Number of retained objects, itself included.
        num_retained: u32,
        /// Whether a root keeps the object alive; null where the file contains no roots.
        is_reachable: Opt<bool>,
        /// Number of references on a shortest path from a root to the object; 0 for an object that a root references directly. Null where
        /// no root keeps it alive, or the file contains no roots.
        root_distance: Opt<u32>,
        /// Address of the previous object on that path; null for an object that a root references directly, or without a path.
        nearer_address: Opt<u64>,
    }
}

table! {
    /// One row for each type of objects in a heap snapshot.
    heap_classes {
        /// Heap snapshot.
        snapshot_id: u32,
        /// Type; null for all objects whose type the file does not describe.
        type_id: Opt<u32>,
        /// Number of objects of the type.
        num_objects: u64,
        /// Sum of the sizes of these objects.
        size_bytes: u64,
        /// Retained size of all objects of the type together: an object that several of them retain counts once.
        retained_bytes: u64,
        /// Number of retained objects.
        num_retained: u64,
        /// Number of objects of the type that no root keeps alive; null where the file contains no roots.
        num_unreachable: Opt<u64>,
        /// Sum of the sizes of these objects; null where the file contains no roots.
        unreachable_bytes: Opt<u64>,
        /// Address of the object of the type with the largest retained size.
        largest_address: u64,
        /// Retained size of that object.
        largest_retained_bytes: u64,
    }
}

table! {
    /// One row for each object of a heap snapshot whose allocation was recorded. The object is followed through its moves.
    heap_sites {
        /// Heap snapshot.
        snapshot_id: u32,
        /// Address of the object in the snapshot.
        object_address: u64,
        /// Type of the object; null where the file does not describe it.
        type_id: Opt<u32>,
        /// Size of the object itself.
        size_bytes: u64,
        /// Time of the allocation on the profile's clock, in nanoseconds.
        allocated_ns: i64,
        /// Thread that allocated the object.
        thread_id: u32,
        /// Call stack of the allocation; null where none was recorded.
        stack_id: Opt<u32>,
        /// Address of the object when it was allocated.
        allocated_address: u64,
        /// Number of moves between allocation and snapshot.
        num_moves: u32,
    }
}
