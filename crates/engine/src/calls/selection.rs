//! Which calls are selected, and which figures of them are requested.

use std::ops::Range;
use std::sync::Arc;

use super::durations::Rank;

/// Which calls are selected. Calls that extend over an end of the time range are cut there.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Keys of threads, sorted; `None` is all.
    pub threads: Option<Vec<u32>>,
    /// Time on the profile's clock.
    pub time_ns: Option<Range<i64>>,
}

impl Selection {
    /// Whether an event of a thread at a time is selected.
    #[must_use]
    #[inline]
    pub fn takes(&self, thread_id: u32, ts_ns: i64) -> bool {
        self.time_ns.as_ref().is_none_or(|range| range.contains(&ts_ns)) && self.has(thread_id)
    }

    /// Whether a thread is selected.
    #[must_use]
    pub fn has(&self, thread_id: u32) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.binary_search(&thread_id).is_ok())
    }
}

/// How the calls of a function are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallGrouping {
    /// By function alone.
    #[default]
    Function,
    /// Thread.
    Thread,
    /// Processor the call began on.
    Cpu,
}

impl CallGrouping {
    /// All groupings with their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("function", Self::Function), ("thread", Self::Thread), ("cpu", Self::Cpu)];
}

/// Which calls are selected, and which figures are requested.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Threads and time.
    pub selection: Selection,
    /// How calls are grouped.
    pub by: CallGrouping,
    /// How percentiles are taken.
    pub rank: Rank,
    /// Keys of the functions whose figures are requested, sorted; `None` is all.
    pub functions: Option<Vec<u32>>,
    /// Only durations of calls that were made while the function was already on the stack.
    pub recursive_only: bool,
    /// Whether figures by caller and callee are requested.
    pub edges: bool,
    /// For each function key, that of the function which stands for it: itself, or an equal function of an earlier recording.
    pub same_functions: Option<Arc<[u32]>>,
}

impl Options {
    /// Whether they are the usual ones: all calls, by function, without figures by caller.
    #[must_use]
    pub fn are_usual(&self) -> bool {
        let Self { selection, by, rank, functions, recursive_only, edges, same_functions: _ } = self;
        let is_whole = selection.threads.is_none() && selection.time_ns.is_none() && functions.is_none();
        is_whole && *by == CallGrouping::Function && *rank == Rank::Nearest && !recursive_only && !edges
    }

    /// Whether the figures of a function, or of one that is the same, are requested.
    pub(super) fn has(&self, function_id: u32) -> bool {
        let Some(functions) = &self.functions else { return true };
        let is_same = |same: &Arc<[u32]>| {
            let wanted = same_as(same, function_id);
            functions.iter().any(|&key| same_as(same, key) == wanted)
        };
        functions.binary_search(&function_id).is_ok() || self.same_functions.as_ref().is_some_and(is_same)
    }
}

/// The function that stands for a function: itself, unless `same` has another.
pub(super) fn same_as(same: &[u32], function_id: u32) -> u32 {
    same.get(function_id as usize).copied().unwrap_or(function_id)
}
