//! Reads the units of a section: one where the linker merged its input, several where it did not.

use std::ops::Range;

use perfuse_wire::{ErrorKind, ParseError};

use super::container::{Section, SectionOrigin};
use super::layout::FuncDescAttrV3;
use super::records::{self, Fde};
use super::row::{Fre, FreIter};
use super::unit::{SFrameUnit, StartBase, next_header, parse_unit};

/// A unit with the bytes of its section.
#[derive(Clone, Copy, Debug)]
pub struct UnitView<'a> {
    /// The piece.
    pub unit: &'a SFrameUnit,
    /// Bytes of the section.
    pub data: &'a [u8],
    /// Offset of the section in the file.
    pub file_offset: u64,
    /// Load address of the section.
    pub address: u64,
}

impl<'a> UnitView<'a> {
    /// The function with this index.
    #[must_use]
    #[inline]
    pub fn function(&self, index: u32) -> Option<Fde> {
        let unit = self.unit;
        let entry_bytes = unit.entry_bytes()?;
        let at = unit.entries.start.checked_add((index as usize).checked_mul(entry_bytes)?)?;
        let end = at.checked_add(entry_bytes).filter(|end| *end <= unit.entries.end)?;
        let mut function = records::decode(unit.version(), self.data.get(at..end)?, unit.endian)?;
        function.index = index;
        function.at = at;
        function.start = self.start(at, function.start_field);
        let rows = unit.rows.start.checked_add(function.start_fre_off as usize)?;
        if unit.version() < 3 {
            function.rows_at = Some(rows).filter(|at| *at <= unit.rows.end);
            return Some(function);
        }
        let bytes = self.data.get(rows..unit.rows.end).unwrap_or_default();
        Some(match records::with_attributes(function, bytes, unit.endian) {
            Some(function) => Fde { rows_at: rows.checked_add(FuncDescAttrV3::SIZE as usize), ..function },
            None => function,
        })
    }

    /// All functions, in the order of the table.
    pub fn functions(self) -> impl ExactSizeIterator<Item = Fde> + 'a {
        self.functions_in(0..self.unit.num_functions)
    }

    /// The functions with these indexes.
    pub fn functions_in(self, indexes: Range<u32>) -> impl ExactSizeIterator<Item = Fde> + 'a {
        let empty = Fde { index: u32::MAX, ..records::BLANK };
        (indexes.start as usize..indexes.end as usize)
            .map(move |index| self.function(index as u32).unwrap_or(empty))
    }

    /// The rows of a function; none for functions past [`SFrameUnit::num_readable`].
    #[must_use]
    #[inline]
    pub fn rows(&self, function: &Fde) -> FreIter<'a> {
        let data = self.data.get(..self.unit.rows.end).unwrap_or_default();
        let num_readable = function.index < self.unit.num_readable;
        let (at, num_rows) = match function.rows_at {
            Some(at) if num_readable => (at, function.num_rows),
            _ => (0, 0),
        };
        FreIter::new(data, at, function.info.row_start_bytes(), num_rows, self.unit.endian, self.file_offset)
    }

    /// The row of a function that begins at this offset of the section.
    #[must_use]
    pub(super) fn row_at_offset(&self, function: &Fde, at: usize) -> Option<Fre<'a>> {
        let mut rows = self.rows(function);
        rows.skip_to(at, 0);
        rows.next()?.ok()
    }

    /// The address that the start field at this offset of the section states.
    #[must_use]
    pub fn start(&self, at: usize, field: i64) -> u64 {
        self.base(at).wrapping_add_signed(field)
    }

    /// The address that the start field at this offset of the section is relative to.
    #[must_use]
    pub fn base(&self, at: usize) -> u64 {
        match self.unit.starts {
            StartBase::FromSection(_) => self.address,
            StartBase::FromField(_) => self.address.wrapping_add(at as u64),
        }
    }

    /// Converts an offset in the section to an offset in the file.
    #[must_use]
    pub fn offset(&self, at: usize) -> u64 {
        self.file_offset.saturating_add(at as u64)
    }
}

/// The units of a section, and the number of bytes after the last of them.
///
/// # Errors
/// When the section does not begin with a header.
pub fn read_units(
    section: &Section,
    index: usize,
    data: &[u8],
) -> Result<(Vec<SFrameUnit>, usize), ParseError> {
    let file_offset = section.range.start as u64;
    if data.is_empty() {
        let what = "find unwind tables: the section .sframe is empty";
        return Err(ParseError::new(ErrorKind::Unreadable { what }, file_offset, ""));
    }
    let mut units = vec![parse_unit(data, 0, index, file_offset)?];
    let mut end = units.first().map_or(0, |unit| unit.end);
    while let Some(at) = next_header(data, end) {
        let Ok(unit) = parse_unit(data, at, index, file_offset) else { break };
        end = unit.end;
        units.push(unit);
    }
    set_start_bases(section, data, &mut units);
    limit_readable_rows(data, &mut units);
    Ok((units, data.len().saturating_sub(end)))
}

/// Number of functions tested per unit when only the location of the code shows what start addresses are relative to.
const SAMPLED_FUNCTIONS: usize = 4096;

/// Sets the start base of each unit of a section.
fn set_start_bases(section: &Section, data: &[u8], units: &mut [SFrameUnit]) {
    let is_unmerged = units.len() > 1;
    for unit in units {
        unit.starts = start_base(section, data, unit, is_unmerged);
    }
}

/// Determines what start addresses of a unit are relative to.
fn start_base(section: &Section, data: &[u8], unit: &SFrameUnit, is_unmerged: bool) -> StartBase {
    if unit.is_pcrel() {
        return StartBase::FromField("the flag SFRAME_F_FDE_FUNC_START_PCREL is set");
    }
    if section.origin == SectionOrigin::Object {
        return StartBase::FromField("relocations of object files are relative to the relocated field");
    }
    if unit.version() >= 3 {
        return StartBase::FromSection("version 3 without the flag SFRAME_F_FDE_FUNC_START_PCREL");
    }
    let count_in_code = |starts| {
        let unit = SFrameUnit { starts, ..unit.clone() };
        let view = UnitView { unit: &unit, data, file_offset: 0, address: section.address };
        let functions = view.functions().take(SAMPLED_FUNCTIONS);
        functions.filter(|function| in_code(section, function.start)).count()
    };
    let from_section = count_in_code(StartBase::FromSection(""));
    let from_field = count_in_code(StartBase::FromField(""));
    match from_section.cmp(&from_field) {
        _ if is_unmerged => StartBase::FromField("the linker concatenated sections without merging them"),
        std::cmp::Ordering::Less => StartBase::FromField("only then are functions inside code"),
        std::cmp::Ordering::Greater => StartBase::FromSection("only then are functions inside code"),
        std::cmp::Ordering::Equal if unit.is_sorted() => {
            StartBase::FromSection("entries are sorted, as GNU ld writes them, relative to the section")
        }
        std::cmp::Ordering::Equal => {
            StartBase::FromField("entries are unsorted, as an assembler writes them, relative to the field")
        }
    }
}

/// Whether an address is inside code.
fn in_code(section: &Section, address: u64) -> bool {
    let code = &section.code;
    let before = code.partition_point(|range| range.start <= address);
    before.checked_sub(1).and_then(|at| code.get(at)).is_some_and(|range| address < range.end)
}

/// Limits how many rows are read. Functions may share rows, so a damaged table can have each function claim all of
/// them. In total as many rows are read as the section has bytes, which is five times what sections with shared rows
/// need; the functions after that get no rows.
pub(super) fn limit_readable_rows(data: &[u8], units: &mut [SFrameUnit]) {
    let mut rows_left = (data.len() as u64).max(1 << 16);
    let claimed = units.iter().try_fold(0u64, |sum, unit| sum.checked_add(count_claimed_rows(unit, data)?));
    if claimed.is_some_and(|claimed| claimed <= rows_left) {
        units.iter_mut().for_each(|unit| unit.num_readable = unit.num_functions);
        return;
    }
    for unit in units {
        let view = UnitView { unit, data, file_offset: 0, address: 0 };
        let mut num_readable = 0u32;
        for function in view.functions() {
            let row_bytes = function.info.row_start_bytes().unwrap_or(4).saturating_add(1);
            let room = unit.rows.end.saturating_sub(function.rows_at.unwrap_or(usize::MAX));
            let rows = u64::from(function.num_rows).min(room.checked_div(row_bytes).unwrap_or(0) as u64);
            let Some(rest) = rows_left.checked_sub(rows) else { break };
            rows_left = rest;
            num_readable = num_readable.saturating_add(1);
        }
        unit.num_readable = num_readable;
    }
}

/// Number of rows that the functions of a unit claim; `None` in version 3, where function entries do not contain it.
fn count_claimed_rows(unit: &SFrameUnit, data: &[u8]) -> Option<u64> {
    let entries = data.get(unit.entries.clone())?.chunks_exact(unit.entry_bytes()?);
    let mut rows = entries.map(|entry| records::num_rows(unit.version(), entry, unit.endian));
    rows.try_fold(0u64, |sum, rows| sum.checked_add(rows?.into()))
}
