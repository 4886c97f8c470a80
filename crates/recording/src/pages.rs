//! Pages of a file during a pass over it.

use std::ops::Range;

use super::Source;

/// Pages of a mapped file during a pass from its start to its end: those before the pass are returned to the operating system,
/// so that a file may be larger than memory.
#[derive(Debug, Default)]
pub struct PassPages {
    released: usize,
}

impl PassPages {
    /// Number of bytes that are returned at once.
    const STEP_BYTES: usize = 16 << 20;

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
