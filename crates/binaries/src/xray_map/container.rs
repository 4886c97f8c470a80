use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::map::Place;
use super::words::Words;

/// What an object file, of whatever kind, has for a map.
pub(super) struct Container<'data> {
    pub(super) architecture: &'static str,
    pub(super) is_mach_o: bool,
    pub(super) words: Words,
    /// Whether addresses are only known by relocations.
    pub(super) is_relocatable: bool,
    /// The sections of the map: one in a linked file, one for each function in others.
    pub(super) maps: Vec<Section<'data>>,
    /// `xray_fn_idx` of a linked file.
    pub(super) index: Option<Section<'data>>,
    pub(super) code: Code,
    /// By section number; empty where places have whole addresses.
    pub(super) section_names: Vec<Arc<str>>,
    /// Where it lies in the file.
    pub(super) slice: Range<usize>,
}

/// A section whose fields hold addresses.
pub(super) struct Section<'data> {
    pub(super) address: u64,
    /// In the file, not in its slice.
    pub(super) file_offset: u64,
    pub(super) bytes: &'data [u8],
    /// What relocations say of its fields, by their offset; `None` where one cannot be resolved.
    pub(super) relocated: FxHashMap<u64, Option<Place>>,
}

impl<'data> Section<'data> {
    pub(super) fn new(address: u64, file_offset: u64, bytes: &'data [u8]) -> Self {
        Self { address, file_offset, bytes, relocated: FxHashMap::default() }
    }

    /// First address after it.
    pub(super) fn end(&self) -> u64 {
        self.address.saturating_add(self.bytes.len() as u64)
    }
}

/// Where the file has code.
#[derive(Debug, Default)]
pub(super) struct Code {
    /// By section, where that matters, and address; sorted.
    ranges: Vec<(Place, u64)>,
}

impl Code {
    /// Of sections' starts and sizes.
    pub(super) fn new(sections: impl IntoIterator<Item = (Place, u64)>) -> Self {
        let with_end = |(start, size): (Place, u64)| (start, start.address.saturating_add(size));
        let mut ranges: Vec<_> = sections.into_iter().map(with_end).collect();
        ranges.sort_unstable();
        Self { ranges }
    }

    pub(super) fn contains(&self, place: Place) -> bool {
        let after = self.ranges.partition_point(|(start, _)| *start <= place);
        let before = after.checked_sub(1).and_then(|at| self.ranges.get(at));
        before.is_some_and(|(start, end)| start.section == place.section && place.address < *end)
    }
}

impl Container<'_> {
    /// Bytes of an entry of the map.
    pub(super) fn entry_bytes(&self) -> usize {
        self.words.bytes() * 4
    }
}
