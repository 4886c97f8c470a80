//! Which calls are looked at.

use std::ops::Range;

/// Which calls are looked at. Those that reach over an end of the time range are cut there.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Keys of threads, sorted; all where none.
    pub threads: Option<Vec<u32>>,
    /// Time on the profile's clock.
    pub time_ns: Option<Range<i64>>,
}

impl Selection {
    /// Whether what a thread did at a time is selected.
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
