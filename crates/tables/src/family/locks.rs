//! Locks.

use crate::column::choices;
use crate::schema::table;

choices! {
    /// What a row of `lock_events` tells.
    LockEvent {
        /// A thread begins to wait.
        Contention = "contention",
        /// It has the lock.
        Acquired = "acquired",
        /// It gave up.
        Failed = "failed",
    }
}

table! {
    /// One row a thing that happened to a lock somebody had to wait for.
    lock_events {
        /// Time on the profile's clock.
        ts_ns: i64,
        /// Thread that waits.
        thread_id: u32,
        /// Address of the object that is locked.
        object_address: u64,
        /// `contention`, `acquired` or `failed`.
        kind: Choice<super::LockEvent>,
        /// Stack; null where none was taken.
        stack_id: Opt<u32>,
        /// File the row is from.
        source_id: u32,
        /// Offset of its record.
        record_offset: u64,
    }
}
