//! Events of contended locks.

use crate::column::choices;
use crate::schema::table;

choices! {
    /// Kind of a row of `lock_events`.
    LockEvent {
        /// A thread begins to wait for a lock.
        Contention = "contention",
        /// The thread acquires the lock.
        Acquired = "acquired",
        /// The thread stops waiting without the lock.
        Failed = "failed",
    }
}

table! {
    /// One row for each event of a lock for which a thread waits.
    lock_events {
        /// Time on the profile's clock, in nanoseconds.
        ts_ns: i64,
        /// Waiting thread.
        thread_id: u32,
        /// Address of the locked object.
        object_address: u64,
        /// `contention`, `acquired` or `failed`.
        kind: Choice<super::LockEvent>,
        /// Call stack; null where none was recorded.
        stack_id: Opt<u32>,
        /// Recording that contains the record of this row.
        source_id: u32,
        /// Offset of that record in its file.
        record_offset: u64,
    }
}
