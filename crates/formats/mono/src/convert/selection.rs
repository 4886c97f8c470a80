//! The part of a log to write.

use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::MonoLog;
use crate::consts::{EventByte, KindSet};

/// The part of a log to write; the default is all of it. Events that define names are always written: methods and
/// their code, classes, threads, registered roots, counters.
#[derive(Clone, Debug, Default)]
pub struct LogSelection {
    /// A range of time, in nanoseconds on the clock of the events.
    pub time: Option<Range<u64>>,
    /// Selected threads.
    pub threads: Option<Vec<ThreadChoice>>,
    /// Selected kinds of events.
    pub kinds: Option<FxHashSet<EventByte>>,
}

/// How a thread is selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadChoice {
    /// By id: every thread that had it.
    Id(u64),
    /// By one of its names.
    Name(String),
}

impl LogSelection {
    /// Whether everything is selected.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.time.is_none() && self.threads.is_none() && self.kinds.is_none()
    }

    /// Indices of the selected threads of a log; `None` for all.
    pub(super) fn thread_indices(&self, log: &MonoLog) -> Option<FxHashSet<u32>> {
        let choices = self.threads.as_ref()?;
        let shared = log.shared_data();
        let all = shared.names().threads.list.iter().zip(0u32..);
        let selected = all.filter(|(thread, _)| {
            choices.iter().any(|choice| match choice {
                ThreadChoice::Id(id) => *id == thread.id,
                ThreadChoice::Name(name) => thread.names.iter().any(|own| **own == **name),
            })
        });
        Some(selected.map(|(_, number)| number).collect())
    }
}

const DEFINITIONS: KindSet = KindSet::of(&[
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

/// Whether an event defines a name that other events refer to.
pub fn is_definition(byte: EventByte) -> bool {
    DEFINITIONS.meets(KindSet::of(&[byte]))
}
