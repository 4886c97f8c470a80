//! The parts of an object file that a map is decoded from.

use std::ops::Range;
use std::sync::Arc;

use object::{Endian, Endianness};
use rustc_hash::FxHashMap;

use super::map::CodeLocation;

/// The parts of an object file, of ELF or Mach-O, that a map is decoded from.
pub(super) struct Container<'data> {
    pub(super) architecture: &'static str,
    pub(super) is_mach_o: bool,
    pub(super) words: WordFormat,
    /// Whether addresses are only defined by relocations.
    pub(super) is_relocatable: bool,
    /// The sections of the map: one in a linked file, one for each function in others.
    pub(super) maps: Vec<MapSection<'data>>,
    /// `xray_fn_idx` of a linked file.
    pub(super) index: Option<MapSection<'data>>,
    pub(super) code: CodeRanges,
    /// By section number; empty where locations have whole addresses.
    pub(super) section_names: Vec<Arc<str>>,
    /// Its range in a universal file.
    pub(super) slice: Range<usize>,
}

/// A section whose fields hold addresses.
pub(super) struct MapSection<'data> {
    pub(super) address: u64,
    /// Offset in the file, also where the section is in a slice of a universal file.
    pub(super) file_offset: u64,
    pub(super) bytes: &'data [u8],
    /// Targets of the relocations of its fields, by offset of the field; `None` where one cannot be resolved.
    pub(super) relocated: FxHashMap<u64, Option<CodeLocation>>,
}

impl<'data> MapSection<'data> {
    pub(super) fn new(address: u64, file_offset: u64, bytes: &'data [u8]) -> Self {
        Self { address, file_offset, bytes, relocated: FxHashMap::default() }
    }

    /// Number of whole entries of `entry_bytes` bytes.
    pub(super) fn num_entries(&self, entry_bytes: usize) -> usize {
        self.bytes.len().checked_div(entry_bytes).unwrap_or(0)
    }

    /// First address after it.
    pub(super) fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes.len() as u64)
    }
}

/// The ranges of code of a file.
#[derive(Debug, Default)]
pub(super) struct CodeRanges {
    /// Start and end address, sorted by section, where there are several address spaces, and address.
    ranges: Vec<(CodeLocation, u64)>,
}

impl CodeRanges {
    /// The ranges of sections with these starts and sizes.
    pub(super) fn new(sections: impl IntoIterator<Item = (CodeLocation, u64)>) -> Self {
        let with_end = |(start, size): (CodeLocation, u64)| (start, start.address.saturating_add(size));
        let mut ranges: Vec<_> = sections.into_iter().map(with_end).collect();
        ranges.sort_unstable();
        Self { ranges }
    }

    pub(super) fn contains(&self, location: CodeLocation) -> bool {
        let after = self.ranges.partition_point(|(start, _)| *start <= location);
        let before = after.checked_sub(1).and_then(|at| self.ranges.get(at));
        before.is_some_and(|(start, end)| start.section == location.section && location.address < *end)
    }
}

impl Container<'_> {
    /// Size in bytes of an entry of the map: four words.
    pub(super) fn entry_bytes(&self) -> usize {
        self.words.bytes().saturating_mul(4)
    }
}

/// Size and byte order of addresses in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordFormat {
    pub(super) endian: Endianness,
    /// 4 or 8.
    pub(super) size: u8,
}

impl WordFormat {
    /// Size of an address in bytes.
    pub(super) fn bytes(self) -> usize {
        usize::from(self.size)
    }

    /// Reads the field at an offset as an unsigned number.
    pub(super) fn read(self, bytes: &[u8], offset: usize) -> Option<u64> {
        let field = bytes.get(offset..)?;
        Some(match self.size {
            4 => self.endian.read_u32(*field.first_chunk()?).into(),
            _ => self.endian.read_u64(*field.first_chunk()?),
        })
    }

    /// A sum of addresses, truncated to the size of an address.
    pub(super) fn wrap(self, sum: u64) -> u64 {
        if self.size == 4 { sum & u64::from(u32::MAX) } else { sum }
    }
}
