//! Pages of a file during a pass over it.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use perfuse_workers::{in_background, num_threads};

use super::Source;

/// Pages of a mapped file during a pass from its start to its end. Those before the pass are returned to the operating system, so
/// that a file may be larger than memory; those after it are mapped in advance, where the pass reads all.
#[derive(Debug, Default)]
pub struct PassPages {
    released: usize,
    prepared: usize,
    /// Where the pass is, for the thread that maps pages.
    at: Arc<AtomicUsize>,
}

impl PassPages {
    /// Number of bytes that are mapped or returned at once.
    const STEP_BYTES: usize = 16 << 20;
    /// Number of bytes that another thread maps at once.
    const PART_BYTES: usize = 2 << 20;

    /// Maps the pages that a pass at an offset comes to next. They would be a page fault every few pages otherwise, which take a pass
    /// over large records most of its time; another thread maps them meanwhile.
    #[inline]
    pub fn prepare_after(&mut self, source: &Arc<Source>, offset: u64) {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.at.store(offset, Ordering::Relaxed);
        if offset.saturating_add(Self::STEP_BYTES) > self.prepared && self.prepared < source.len() {
            self.prepare_step(source);
        }
    }

    #[cold]
    fn prepare_step(&mut self, source: &Arc<Source>) {
        let range = self.prepared..self.prepared.saturating_add(Self::STEP_BYTES);
        self.prepared = range.end;
        if range.start == 0 || num_threads() < 2 {
            source.prepare(range);
        } else {
            let (source, at) = (Arc::clone(source), Arc::clone(&self.at));
            // Pages that the pass has left would stay.
            let is_ahead = move |start: &usize| *start >= at.load(Ordering::Relaxed);
            let prepare = move |start: usize| {
                source.prepare(start..start.saturating_add(Self::PART_BYTES).min(range.end));
            };
            let parts = range.clone().step_by(Self::PART_BYTES);
            drop(in_background(move || parts.filter(is_ahead).for_each(prepare)));
        }
    }

    /// Returns pages before an offset, which the pass does not need again; in another thread, as this takes time.
    #[inline]
    pub fn release_before(&mut self, source: &Arc<Source>, offset: u64) {
        self.release_with(offset, |range| {
            if num_threads() < 2 {
                source.release(range);
            } else {
                let source = Arc::clone(source);
                drop(in_background(move || source.release(range)));
            }
        });
    }

    /// Returns all pages after the pass.
    pub fn release_rest(&self, source: &Source) {
        source.release(block(self.released)..source.len());
    }

    /// The same of other memory than that of a source.
    #[inline]
    pub fn release_with(&mut self, offset: u64, release: impl FnOnce(Range<usize>)) {
        let offset = usize::try_from(offset).unwrap_or(0);
        if offset.saturating_sub(self.released) >= Self::STEP_BYTES {
            release(block(self.released)..block(offset));
            self.released = offset;
        }
    }
}

/// Start of the 64 KiB block that contains an offset.
fn block(offset: usize) -> usize {
    offset & !0xffff
}
