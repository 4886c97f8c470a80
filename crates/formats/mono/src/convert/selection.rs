//! What of a log is written.

use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::MonoLog;
use crate::consts::{EventByte, KindSet};

/// What of a log is written; all of it where nothing is chosen.
///
/// Whatever names something is always written: methods and their code, classes, threads, registered roots, counters.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// A range of time, in ns of the events' clock.
    pub time: Option<Range<u64>>,
    /// Threads.
    pub threads: Option<Vec<ThreadChoice>>,
    /// Kinds of events.
    pub kinds: Option<FxHashSet<EventByte>>,
}

/// Threads by what they are called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadChoice {
    /// By id: all that had it.
    Id(u64),
    /// By one of their names.
    Name(String),
}

impl Selection {
    /// Whether everything is written.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.time.is_none() && self.threads.is_none() && self.kinds.is_none()
    }

    /// Numbers of the chosen threads of a log; `None` for all.
    pub(super) fn threads_of(&self, log: &MonoLog) -> Option<FxHashSet<u32>> {
        let chosen = self.threads.as_ref()?;
        let shared = log.share();
        let all = shared.names().threads.list.iter().zip(0u32..);
        let wanted = all.filter(|(thread, _)| {
            chosen.iter().any(|choice| match choice {
                ThreadChoice::Id(id) => *id == thread.id,
                ThreadChoice::Name(name) => thread.names.iter().any(|own| **own == **name),
            })
        });
        Some(wanted.map(|(_, number)| number).collect())
    }
}

const NAMING: KindSet = KindSet::of(&[
    EventByte::METADATA_NAME,
    EventByte::METADATA_END_LOAD,
    EventByte::METADATA_END_UNLOAD,
    EventByte::METHOD_JIT,
    EventByte::JITHELPER,
    EventByte::SAMPLE_USYM,
    EventByte::SAMPLE_UBIN,
    EventByte::COUNTERS_DESC,
    EventByte::HEAP_ROOT_REGISTER,
    EventByte::HEAP_ROOT_UNREGISTER,
    EventByte::AOT_ID,
]);

/// Whether an event names something that others refer to.
pub fn names(byte: EventByte) -> bool {
    NAMING.meets(KindSet::of(&[byte]))
}
