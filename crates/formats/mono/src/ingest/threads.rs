//! Tables `processes`, `threads` and `thread_names`, and the keys of threads.

use std::sync::{Arc, PoisonError};

use perfuse_recording::{BatchStream, Placement, one_batch};
use perfuse_tables::ProcessIdentity;

use crate::log::LogData;

/// Keys of the threads of a log, by index.
#[derive(Clone, Debug)]
pub struct ThreadKeys(Vec<u32>);

impl ThreadKeys {
    /// Registers the threads of the log with the profile's identities. Repeated calls have no further effect.
    pub fn new(log: &LogData, placement: &Placement) -> Self {
        let process = process(log, placement);
        let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
        let threads = log.names().threads.list.iter().map(|thread| {
            let key = identities.native_thread(process, thread.id, thread.incarnation);
            let ns = |time: Option<u64>| time.map(|time| placement.clock.ns(time));
            identities.describe(
                key,
                thread.names.last().map(AsRef::as_ref),
                ns(thread.start),
                ns(thread.end),
            );
            key
        });
        Self(threads.collect())
    }

    /// Key of the thread of an index.
    #[inline]
    pub fn get(&self, number: u32) -> u32 {
        self.0.get(number as usize).copied().unwrap_or(0)
    }

    /// Key of the thread of a buffer.
    #[inline]
    pub fn of_buffer(&self, log: &LogData, buffer: usize) -> u32 {
        self.get(log.names().threads.of_buffer(buffer))
    }
}

/// Process of the log; with pid 0 from profiler 0.1, which did not write it.
pub fn process(log: &LogData, placement: &Placement) -> ProcessIdentity {
    placement.own_process(log.header.pid as i32)
}

/// Table `processes`, `threads` or `thread_names`.
pub fn table(log: &Arc<LogData>, name: &str, placement: &Placement) -> Option<BatchStream> {
    ThreadKeys::new(log, placement);
    let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
    identities.process(process(log, placement));
    identities.table(name).map(one_batch)
}
