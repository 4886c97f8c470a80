//! What the objects of a heap shot keep alive, and where they were allocated: worked out, not recorded.

use crate::schema::table;

table! {
    /// One row an object of a heap shot: who alone keeps it alive, and how much would go with it.
    heap_dominators {
        /// Heap shot.
        snapshot_id: u32,
        /// Object.
        object_address: u64,
        /// Its type; null where the file never describes it.
        type_id: Opt<u32>,
        /// Its own size.
        size_bytes: u64,
        /// Object that every path to it from a root leads over, the nearest; null where there is none.
        dominator_address: Opt<u64>,
        /// Its size and that of all objects that only it keeps alive.
        retained_bytes: u64,
        /// How many objects those are, with itself.
        num_retained: u32,
        /// Whether a root keeps it alive; null where the file has no roots.
        is_reachable: Opt<bool>,
        /// References from a root to it on a shortest path, 0 where a root refers to it; null where no root keeps it alive, or
        /// the file has none.
        root_distance: Opt<u32>,
        /// Object before it on that path; null where a root refers to it, or there is no path.
        nearer_address: Opt<u64>,
    }
}

table! {
    /// One row a type in a heap shot.
    heap_classes {
        /// Heap shot.
        snapshot_id: u32,
        /// Type; null for all objects whose type the file never describes.
        type_id: Opt<u32>,
        /// Objects of it.
        num_objects: u64,
        /// Their own sizes.
        size_bytes: u64,
        /// What would go if all of them went: their sizes and those of all that only they keep alive; what one of them
        /// retains by another counts once.
        retained_bytes: u64,
        /// How many objects those are.
        num_retained: u64,
        /// Objects of it that no root keeps alive; null where the file has no roots.
        num_unreachable: Opt<u64>,
        /// Their own sizes.
        unreachable_bytes: Opt<u64>,
        /// Object of it that retains most.
        largest_address: u64,
        /// What that one retains.
        largest_retained_bytes: u64,
    }
}

table! {
    /// One row an object of a heap shot whose allocation was recorded, followed to where it lies in the shot.
    heap_sites {
        /// Heap shot.
        snapshot_id: u32,
        /// Its address in the shot.
        object_address: u64,
        /// Its type; null where the file never describes it.
        type_id: Opt<u32>,
        /// Its own size.
        size_bytes: u64,
        /// When it was allocated, on the profile's clock.
        allocated_ns: i64,
        /// Thread that allocated it.
        thread_id: u32,
        /// Stack it was allocated by; null where none was taken.
        stack_id: Opt<u32>,
        /// Its address when it was allocated.
        allocated_address: u64,
        /// How often it was moved since.
        num_moves: u32,
    }
}
