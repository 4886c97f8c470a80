//! User parts of call chains that were recorded after their samples: `perf record --call-graph fp,defer`.
//!
//! A sample ends with a marker and a cookie; when its task returns to user mode, a CALLCHAIN_DEFERRED record with that cookie
//! contains the addresses. As in perf, the next such record of the thread answers all of its waiting samples: those with its
//! cookie get their user part, the others never do.

use rustc_hash::FxHashMap;

use super::consts::context::CONTEXT_USER_DEFERRED;
use super::layout::CallchainDeferred;
use super::reader::RecordFile;
use super::record::{RawEvent, RecordLocation};
use super::sample::{EventWords, SampleHead};

/// A CALLCHAIN_DEFERRED record.
#[derive(Clone, Copy, Debug)]
struct DeferredPart {
    time: u64,
    location: RecordLocation,
    cookie: u64,
}

/// The CALLCHAIN_DEFERRED records of a file, by thread.
#[derive(Debug, Default)]
pub struct DeferredParts {
    by_thread: FxHashMap<i32, Vec<DeferredPart>>,
    /// Number of samples that end with a cookie.
    pub num_samples: u64,
}

/// A call chain whose user part is deferred.
#[derive(Clone, Copy, Debug)]
pub struct DeferredChain<'a> {
    /// Number of words before the marker.
    pub num_before: usize,
    /// Addresses of the user part, innermost first; `None` where they were not recorded.
    pub user_part: Option<EventWords<'a>>,
}

impl DeferredParts {
    /// Adds a record of that type.
    pub fn add(&mut self, file: &RecordFile, record: &RawEvent<'_>, time: u64) {
        let Ok(CallchainDeferred { cookie, .. }) = CallchainDeferred::read(&mut record.cursor(file.endian))
        else {
            return;
        };
        let layout = file.event_layout(record);
        let tid = layout.and_then(|layout| layout.trailer_tid(record.body, file.endian)).unwrap_or(-1);
        self.by_thread.entry(tid).or_default().push(DeferredPart { time, location: record.location, cookie });
    }

    /// Sorts the records by time, once all were added.
    pub fn finish(&mut self) {
        for parts in self.by_thread.values_mut() {
            parts.sort_by_key(|part| (part.time, part.location.number()));
        }
    }

    /// The deferred chain of a sample; `None` where its chain is complete.
    pub fn chain<'a>(
        &self,
        file: &'a RecordFile,
        head: &SampleHead<'_>,
        location: RecordLocation,
    ) -> Option<DeferredChain<'a>> {
        let (num_before, cookie) = cookie(head)?;
        Some(DeferredChain { num_before, user_part: self.user_part(file, head, location, cookie) })
    }

    fn user_part<'a>(
        &self,
        file: &'a RecordFile,
        head: &SampleHead<'_>,
        location: RecordLocation,
        cookie: u64,
    ) -> Option<EventWords<'a>> {
        let parts = self.by_thread.get(&head.tid.unwrap_or(-1))?;
        let after = (head.time.unwrap_or(0), location.number());
        let next = parts.partition_point(|part| (part.time, part.location.number()) < after);
        let part = parts.get(next).filter(|part| part.cookie == cookie)?;
        let record = file.at(part.location)?;
        let mut cursor = record.cursor(file.endian);
        let CallchainDeferred { nr, .. } = CallchainDeferred::read(&mut cursor).ok()?;
        EventWords::read(&mut cursor, nr, "ips").ok()
    }
}

/// Number of words before the marker of a chain that ends with one and a cookie, and the cookie.
#[inline]
pub fn cookie(head: &SampleHead<'_>) -> Option<(usize, u64)> {
    let chain = head.callchain?;
    let last = chain.len().checked_sub(1)?;
    let marker = last.checked_sub(1)?;
    (chain.get(marker)? == CONTEXT_USER_DEFERRED).then_some((marker, chain.get(last)?))
}
