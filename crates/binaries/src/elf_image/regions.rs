//! The ranges of an image's addresses that code is placed in.

use super::section::Encoding;

/// First byte of `.text`: a page for the headers and the build id.
pub(super) const TEXT_START: u64 = 0x1000;

/// Longer code is truncated: no compiler emits it, and one wrong size must not use up the address space.
const MAX_CODE: u64 = 1 << 32;
const MAX_CODE_32: u64 = 1 << 28;

/// A range of the image's addresses that code is placed in, piece after piece.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressRegion {
    pub start: u64,
    /// First byte after the last piece.
    pub end: u64,
    limit: u64,
    max_code: u64,
}

impl AddressRegion {
    /// Code whose bytes are in the file; its address is its file offset.
    pub fn text(encoding: Encoding) -> Self {
        Self::new(encoding, TEXT_START, absent_start(encoding))
    }

    /// Code whose bytes were not recorded: addresses beyond any byte of the file.
    pub fn absent(encoding: Encoding) -> Self {
        Self::new(encoding, absent_start(encoding), if encoding.is_64 { 1 << 62 } else { 0xffff_f000 })
    }

    fn new(encoding: Encoding, start: u64, limit: u64) -> Self {
        Self { start, end: start, limit, max_code: if encoding.is_64 { MAX_CODE } else { MAX_CODE_32 } }
    }

    /// Address and size of the next piece; `None` where the region is full.
    ///
    /// Pieces start at multiples of 16, and not even empty ones share an address, which identifies their symbols.
    pub fn place(&mut self, size: u64) -> Option<(u64, u64)> {
        let size = size.min(self.max_code);
        let start = if self.is_empty() { self.start } else { self.end.checked_add(16)? & !15 };
        let end = start.checked_add(size)?;
        if end > self.limit {
            return None;
        }
        self.end = end;
        Some((start, size))
    }

    pub fn is_empty(&self) -> bool {
        self.end == self.start
    }

    pub fn size(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }
}

fn absent_start(encoding: Encoding) -> u64 {
    if encoding.is_64 { 1 << 40 } else { 1 << 31 }
}
