//! Pages of a file during a pass over it.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use perfuse_workers::{in_background, num_threads};

use super::Source;

/// Reads the start of the record at an offset, as the pass will; returns the offset of the next record.
type ReadAhead = dyn Fn(&Source, u64) -> Option<u64> + Send + Sync;

/// Pages of a mapped file during a pass from its start to its end. Those before the pass are returned to the operating system, so
/// that a file may be larger than memory; those after it are mapped in advance, where the pass reads all.
#[derive(Debug, Default)]
pub struct PassPages {
    released: usize,
    prepared: usize,
    ahead: Arc<Ahead>,
}

/// What the thread that maps pages in advance knows of the pass.
#[derive(Default)]
struct Ahead {
    /// Where the pass is.
    at: AtomicUsize,
    /// The first record that was not read in advance.
    next_record: AtomicU64,
    read: Option<Box<ReadAhead>>,
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ahead")
            .field("at", &self.at)
            .field("next_record", &self.next_record)
            .finish_non_exhaustive()
    }
}

impl Ahead {
    /// Maps the pages of a range and reads the records that begin in it.
    fn prepare(&self, source: &Source, range: Range<usize>) {
        source.prepare(range.clone());
        let Some(read) = &self.read else { return };
        // The pass is at a record, too.
        let first = self.next_record.load(Ordering::Relaxed).max(self.at.load(Ordering::Relaxed) as u64);
        let is_in_range = |at: &u64| (range.start as u64..range.end as u64).contains(at);
        let records = std::iter::successors(Some(first).filter(is_in_range), |&at| {
            let next = read(source, at);
            self.next_record.store(next.unwrap_or(at), Ordering::Relaxed);
            next.filter(is_in_range)
        });
        records.for_each(drop);
    }
}

impl PassPages {
    /// Number of bytes that are mapped or returned at once.
    const STEP_BYTES: usize = 16 << 20;
    /// Number of bytes that another thread maps at once.
    const PART_BYTES: usize = 2 << 20;

    /// For a pass over records that are far apart: the thread that maps pages reads the start of each record, too, which is in
    /// the processors' shared cache when the pass comes to it.
    #[must_use]
    pub fn reading_ahead(read: impl Fn(&Source, u64) -> Option<u64> + Send + Sync + 'static) -> Self {
        let ahead = Ahead { read: Some(Box::new(read)), ..Ahead::default() };
        Self { ahead: Arc::new(ahead), ..Self::default() }
    }

    /// Maps the pages that a pass at an offset comes to next. They would be a page fault every few pages otherwise, which take a pass
    /// over large records most of its time; another thread maps them meanwhile.
    #[inline]
    pub fn prepare_after(&mut self, source: &Arc<Source>, offset: u64) {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.ahead.at.store(offset, Ordering::Relaxed);
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
            let (source, ahead) = (Arc::clone(source), Arc::clone(&self.ahead));
            let prepare = move || {
                for start in range.clone().step_by(Self::PART_BYTES) {
                    // Pages that the pass has left would stay.
                    if start >= ahead.at.load(Ordering::Relaxed) {
                        ahead.prepare(&source, start..start.saturating_add(Self::PART_BYTES).min(range.end));
                    }
                }
            };
            drop(in_background(prepare));
        }
    }

    /// Returns pages before an offset, which the pass does not need again.
    #[inline]
    pub fn release_before(&mut self, source: &Source, offset: u64) {
        self.release_with(offset, |range| source.release(range));
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
