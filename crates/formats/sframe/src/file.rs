//! An open file: its sections and their units, and lookups by address.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use perfuse_wire::ParseError;

use super::address_index::FunctionAddressIndex;
use super::container::{self, Section};
use super::reader::{self, UnitView};
use super::records::Fde;
use super::recovery::{InvalidRow, Recovery};
use super::row::Fre;
use super::row_survey::RowSurvey;
use super::unit::SFrameUnit;

/// Number of addresses that are looked up together.
const LOOKUP_BATCH: usize = 32;

/// The function and row that apply at an address.
#[derive(Clone, Copy, Debug)]
pub struct AddressMatch<'a> {
    /// Index of the unit.
    pub unit: usize,
    /// The function.
    pub function: Fde,
    /// The row; `None` where no row of the function applies.
    pub row: Option<Fre<'a>>,
    /// Its interpretation.
    pub recovery: Option<Result<Recovery, InvalidRow>>,
}

/// An open file with SFrame sections, whose bytes are in a `B`.
#[derive(Debug)]
pub struct SFrameFile<B> {
    shared: Arc<SharedFile<B>>,
}

/// A file that perfuse opened.
#[cfg(feature = "tables")]
pub type SFrame = SFrameFile<perfuse_recording::Source>;

impl<B> Clone for SFrameFile<B> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

#[derive(Debug)]
struct SharedFile<B> {
    source: Arc<B>,
    sections: Vec<Section>,
    units: Vec<SFrameUnit>,
    unreadable: Vec<(usize, ParseError)>,
    trailing: Vec<usize>,
    row_survey: OnceLock<RowSurvey>,
    address_index: OnceLock<FunctionAddressIndex>,
}

impl<B: Deref<Target = [u8]>> SFrameFile<B> {
    /// Finds the sections of a file and reads their headers.
    ///
    /// # Errors
    /// When there is no section, or none that begins with a header.
    pub fn open(source: Arc<B>) -> Result<Self, ParseError> {
        Self::open_at(source, None)
    }

    /// The same for a section without an ELF file, which is loaded at `address`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_at(source: Arc<B>, address: Option<u64>) -> Result<Self, ParseError> {
        let mut sections = container::sections(&source)?;
        let mut shared = SharedFile {
            sections: Vec::new(),
            units: Vec::new(),
            unreadable: Vec::new(),
            trailing: Vec::new(),
            row_survey: OnceLock::new(),
            address_index: OnceLock::new(),
            source,
        };
        for (index, section) in sections.iter_mut().enumerate() {
            section.address = address.unwrap_or(section.address);
            let data = section.data(&shared.source);
            match reader::read_units(section, index, data) {
                Ok((units, trailing)) => {
                    shared.units.extend(units);
                    shared.trailing.push(trailing);
                }
                Err(error) => {
                    shared.unreadable.push((index, error));
                    shared.trailing.push(0);
                }
            }
        }
        if let (true, Some((_, error))) = (shared.units.is_empty(), shared.unreadable.first()) {
            return Err(*error);
        }
        shared.sections = sections;
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The bytes of the file.
    pub(super) fn file_source(&self) -> &Arc<B> {
        &self.shared.source
    }

    /// All sections.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.shared.sections
    }

    /// The units of all sections, in file order.
    #[must_use]
    pub fn units(&self) -> &[SFrameUnit] {
        &self.shared.units
    }

    /// Sections that do not begin with a header, with the error.
    #[must_use]
    pub fn unreadable(&self) -> &[(usize, ParseError)] {
        &self.shared.unreadable
    }

    /// Number of bytes of a section after its last unit.
    #[must_use]
    pub fn trailing(&self, section: usize) -> usize {
        self.shared.trailing.get(section).copied().unwrap_or(0)
    }

    /// A unit with its bytes.
    #[must_use]
    pub fn view<'a>(&'a self, unit: &'a SFrameUnit) -> UnitView<'a> {
        self.view_of(unit, Section::data)
    }

    /// A unit with its bytes as stored in the file, before relocation.
    #[must_use]
    pub fn raw_view<'a>(&'a self, unit: &'a SFrameUnit) -> UnitView<'a> {
        self.view_of(unit, Section::raw)
    }

    /// The bytes of a section with every relocation applied, also those that do not refer to a start field; `None`
    /// where there are none of those.
    #[must_use]
    pub fn fully_relocated(&self, section: usize) -> Option<Vec<u8>> {
        let section = self.shared.sections.get(section)?;
        section.relocations.as_ref().filter(|relocations| !relocations.refused.is_empty())?;
        container::fully_relocated(&self.shared.source, section)
    }

    /// The unit with the bytes that `data` selects.
    fn view_of<'a>(
        &'a self,
        unit: &'a SFrameUnit,
        data: fn(&'a Section, &'a [u8]) -> &'a [u8],
    ) -> UnitView<'a> {
        match self.shared.sections.get(unit.section) {
            Some(section) => UnitView {
                unit,
                data: data(section, &self.shared.source),
                file_offset: section.range.start as u64,
                address: section.address,
            },
            None => UnitView { unit, data: &[], file_offset: 0, address: 0 },
        }
    }

    /// All units with their bytes.
    pub fn views(&self) -> impl Iterator<Item = UnitView<'_>> {
        self.units().iter().map(|unit| self.view(unit))
    }

    /// The result of one pass over all rows; computed once.
    pub(super) fn row_survey(&self) -> &RowSurvey {
        self.shared.row_survey.get_or_init(|| RowSurvey::of(self.views()))
    }

    /// Functions by address; computed once.
    #[must_use]
    pub fn address_index(&self) -> &FunctionAddressIndex {
        self.shared.address_index.get_or_init(|| FunctionAddressIndex::of(self.views()))
    }
}

impl<B: Deref<Target = [u8]>> SFrameFile<B> {
    /// The function that contains an address, and the row that applies there.
    #[must_use]
    pub fn find(&self, pc: u64) -> Option<AddressMatch<'_>> {
        let entry = self.address_index().at_or_before(pc)?;
        self.match_at(pc, self.function_at(pc, entry)?)
    }

    /// Looks up many addresses, in their order. Each step is done for a batch of addresses, so that their cache
    /// misses overlap.
    pub fn find_all<'a>(&'a self, addresses: &[u64], mut each: impl FnMut(u64, Option<AddressMatch<'a>>)) {
        for some in addresses.chunks(LOOKUP_BATCH) {
            let mut entries = [None; LOOKUP_BATCH];
            for (entry, pc) in entries.iter_mut().zip(some) {
                *entry = self.address_index().at_or_before(*pc);
            }
            let mut functions = [None; LOOKUP_BATCH];
            for ((function, entry), pc) in functions.iter_mut().zip(entries).zip(some) {
                *function = entry.and_then(|entry| self.function_at(*pc, entry));
                // Read early, so that the row is in the cache when it is searched.
                let row = function.and_then(|(unit, function)| self.first_row_byte(unit, &function));
                std::hint::black_box(row);
            }
            for (function, pc) in functions.into_iter().zip(some) {
                each(*pc, function.and_then(|function| self.match_at(*pc, function)));
            }
        }
    }

    /// The function of an index entry, with the index of its unit, if it contains the address.
    #[inline]
    fn function_at(&self, pc: u64, (unit_index, index): (u32, u32)) -> Option<(usize, Fde)> {
        let unit = self.units().get(unit_index as usize)?;
        let function = self.view(unit).function(index).filter(|function| pc < function.end())?;
        Some((unit_index as usize, function))
    }

    /// The first byte of the rows of a function.
    fn first_row_byte(&self, unit_index: usize, function: &Fde) -> Option<u8> {
        self.view(self.units().get(unit_index)?).data.get(function.rows_at?).copied()
    }

    /// The row of a function that applies at an address.
    #[inline]
    fn match_at(&self, pc: u64, (unit_index, function): (usize, Fde)) -> Option<AddressMatch<'_>> {
        let unit = self.units().get(unit_index)?;
        let row = function.row_offset(pc.wrapping_sub(function.start));
        let row = row.and_then(|offset| self.row_at(unit_index, &function, offset));
        let recovery = row.map(|row| unit.context(&function).interpret(&row));
        Some(AddressMatch { unit: unit_index, function, row, recovery })
    }

    /// The last row of a function that starts at or before an offset.
    fn row_at(&self, unit_index: usize, function: &Fde, offset: u64) -> Option<Fre<'_>> {
        let view = self.view(self.units().get(unit_index)?);
        let begins_before = |at: &usize| {
            let row = view.row_at_offset(function, *at);
            row.is_some_and(|row| u64::from(row.start) <= offset)
        };
        let strides = self.row_survey().strides(unit_index, function);
        let skipped = strides.partition_point(begins_before);
        let rows = self.row_survey().rows_from_stride(unit_index, view, function, skipped);
        rows.map_while(Result::ok).take_while(|row| u64::from(row.start) <= offset).last()
    }
}
