//! A unit: one header with its function entries (FDEs) and rows (FREs). A section that a linker did not merge has several.

use std::ops::Range;

use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError};

use super::consts::{Abi, SFRAME_F_FDE_FUNC_START_PCREL, SFRAME_F_FDE_SORTED, SFRAME_MAGIC};
use super::layout::Header;
use super::records::{self, Fde};
use super::recovery::RowContext;

/// What function start addresses are relative to, and the evidence for it. The format has a flag for it since version
/// 2 errata 1. Before that, GNU ld counts from the section, and relocations applied as assemblers write them count
/// from the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartBase {
    /// Relative to the start of the section.
    FromSection(&'static str),
    /// Each relative to its own field.
    FromField(&'static str),
}

impl StartBase {
    /// `section` or `field`, as reports show it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FromSection(_) => "section",
            Self::FromField(_) => "field",
        }
    }

    /// The evidence, as a phrase.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::FromSection(reason) | Self::FromField(reason) => reason,
        }
    }
}

/// One header with its function entries and rows.
#[derive(Clone, Debug)]
pub struct SFrameUnit {
    /// Zero-based index of its section in the file.
    pub section: usize,
    /// Offset of its header in the section, in bytes.
    pub at: usize,
    /// The header.
    pub header: Header,
    /// Byte order, from the magic.
    pub endian: Endian,
    /// Range in the section of the complete function entries that are present.
    pub entries: Range<usize>,
    /// Range in the section of the rows, clipped to the section.
    pub rows: Range<usize>,
    /// Offset in the section where the unit ends according to its header.
    pub end: usize,
    /// Number of complete function entries that are present.
    pub num_functions: u32,
    /// Number of functions whose rows are read: all, unless rows overlap so often that reading them would take too
    /// long.
    pub num_readable: u32,
    /// What function start addresses are relative to.
    pub starts: StartBase,
}

impl SFrameUnit {
    /// Version of the format.
    #[must_use]
    pub fn version(&self) -> u8 {
        self.header.sfp_version
    }

    /// ABI and byte order of the machine.
    #[must_use]
    pub fn abi(&self) -> Abi {
        Abi(self.header.sfh_abi_arch)
    }

    /// Whether the header states that function entries are sorted.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        self.header.sfp_flags & SFRAME_F_FDE_SORTED != 0
    }

    /// Whether the header states that start addresses are relative to their own fields. Version 1 has no such flag.
    #[must_use]
    pub fn is_pcrel(&self) -> bool {
        self.version() >= 2 && self.header.sfp_flags & SFRAME_F_FDE_FUNC_START_PCREL != 0
    }

    /// Size in bytes of a function entry; `None` for an unknown version.
    #[must_use]
    pub fn entry_bytes(&self) -> Option<usize> {
        records::entry_bytes(self.version())
    }

    /// The unit as readers find its parts that ignore their offsets: entries directly after the header, and rows
    /// directly after entries. The section has `len` bytes.
    #[must_use]
    pub(super) fn with_adjacent_parts(&self, len: usize) -> Self {
        let base = self.at.saturating_add(Header::SIZE as usize);
        let start = base.saturating_add(self.header.sfh_auxhdr_len.into());
        let entries = entries_in(&self.header, start, len);
        let num_functions = entries.len().checked_div(entry_bytes(&self.header)).unwrap_or(0);
        let rows_end = entries.end.saturating_add(self.header.sfh_fre_len as usize);
        Self {
            rows: entries.end..rows_end.min(len),
            entries,
            num_functions: u32::try_from(num_functions).unwrap_or(u32::MAX),
            ..self.clone()
        }
    }

    /// The properties of this unit and function that the interpretation of rows depends on.
    #[must_use]
    pub fn context(&self, function: &Fde) -> RowContext {
        RowContext {
            version: self.version(),
            abi: self.abi(),
            fixed_fp: self.header.sfh_cfa_fixed_fp_offset,
            fixed_ra: self.header.sfh_cfa_fixed_ra_offset,
            fde_type: function.fde_type,
        }
    }
}

/// Range of the function entries of each unit of a section, and the size in bytes of one entry.
pub(super) fn entry_tables(data: &[u8]) -> Vec<(Range<usize>, usize)> {
    let mut found = Vec::new();
    let mut next = Some(0);
    while let Some(unit) = next.and_then(|at| parse_unit(data, at, 0, 0).ok()) {
        if let Some(stride) = unit.entry_bytes() {
            found.push((unit.entries.clone(), stride));
        }
        next = next_header(data, unit.end);
    }
    found
}

/// Offset of the next header after a unit: directly after it, or at the next multiple of 8, where linkers align.
pub(super) fn next_header(data: &[u8], end: usize) -> Option<usize> {
    let aligned = end.checked_next_multiple_of(8)?;
    let is_header = |at: &usize| {
        let magic = data.get(*at..).and_then(|rest| rest.first_chunk::<2>());
        magic.is_some_and(|magic| magic_endian(*magic).is_some())
    };
    [end, aligned].into_iter().find(is_header)
}

/// The byte order of a magic; `None` where it is not one.
fn magic_endian(magic: [u8; 2]) -> Option<Endian> {
    if u16::from_le_bytes(magic) == SFRAME_MAGIC {
        Some(Endian::Little)
    } else if u16::from_be_bytes(magic) == SFRAME_MAGIC {
        Some(Endian::Big)
    } else {
        None
    }
}

/// Reads the header at an offset of the section, and locates its entries and rows.
///
/// # Errors
/// When there is no complete header.
pub(super) fn parse_unit(
    data: &[u8],
    at: usize,
    section: usize,
    file_offset: u64,
) -> Result<SFrameUnit, ParseError> {
    let offset = file_offset.saturating_add(at as u64);
    let rest = data.get(at..).unwrap_or_default();
    let Some(magic) = rest.first_chunk::<2>() else {
        let kind = ErrorKind::Short { need: Header::SIZE, have: rest.len() as u64 };
        return Err(ParseError::new(kind, offset, "sfp_magic"));
    };
    let Some(endian) = magic_endian(*magic) else {
        let found = rest.first_chunk::<4>().map_or(0, |four| u32::from_be_bytes(*four));
        return Err(ParseError::new(ErrorKind::BadMagic { found }, offset, "sfp_magic"));
    };
    let (endian, header) = read_header(rest, offset, endian)?;
    let base = at.saturating_add(Header::SIZE as usize).saturating_add(header.sfh_auxhdr_len.into());
    let entries = entries_in(&header, base.saturating_add(header.sfh_fdeoff as usize), data.len());
    let num_functions = entries.len().checked_div(entry_bytes(&header)).unwrap_or(0);
    let rows_start = base.saturating_add(header.sfh_freoff as usize);
    let rows_end = rows_start.saturating_add(header.sfh_fre_len as usize);
    let claimed_bytes = (header.sfh_num_fdes as usize).saturating_mul(entry_bytes(&header));
    let claimed_end = base.saturating_add(header.sfh_fdeoff as usize).saturating_add(claimed_bytes);
    Ok(SFrameUnit {
        section,
        at,
        header,
        endian,
        entries,
        rows: rows_start.min(data.len())..rows_end.min(data.len()),
        end: rows_end.max(claimed_end),
        num_functions: u32::try_from(num_functions).unwrap_or(u32::MAX),
        num_readable: u32::MAX,
        starts: StartBase::FromSection("not decided yet"),
    })
}

/// Size in bytes of a function entry; 0 for an unknown version.
fn entry_bytes(header: &Header) -> usize {
    records::entry_bytes(header.sfp_version).unwrap_or(0)
}

/// The complete function entries that are present from an offset of a section with `len` bytes.
fn entries_in(header: &Header, start: usize, len: usize) -> Range<usize> {
    let (start, stride) = (start.min(len), entry_bytes(header));
    let claimed_bytes = (header.sfh_num_fdes as usize).saturating_mul(stride);
    let available_bytes = len.saturating_sub(start).min(claimed_bytes);
    let partial_bytes = available_bytes.checked_rem(stride).unwrap_or(0);
    start..start.saturating_add(available_bytes.saturating_sub(partial_bytes))
}

/// Reads the header in the byte order of the magic. The ABI's byte order is used instead where the header fits into
/// the section only in that one.
fn read_header(rest: &[u8], offset: u64, endian: Endian) -> Result<(Endian, Header), ParseError> {
    let header = Header::read(&mut Cursor::new(rest, offset, endian))?;
    let abi_endian = Abi(header.sfh_abi_arch).endian().filter(|abi_endian| *abi_endian != endian);
    if let Some(other) = abi_endian
        && !fits_in(&header, rest.len())
    {
        let swapped = Header::read(&mut Cursor::new(rest, offset, other))?;
        if fits_in(&swapped, rest.len()) {
            return Ok((other, swapped));
        }
    }
    Ok((endian, header))
}

/// Whether entries and rows end within this many bytes.
fn fits_in(header: &Header, len: usize) -> bool {
    let entry_bytes = records::entry_bytes(header.sfp_version).unwrap_or(0) as u64;
    let base = Header::SIZE.saturating_add(header.sfh_auxhdr_len.into());
    let entries = u64::from(header.sfh_num_fdes).saturating_mul(entry_bytes);
    let entries_end = base.saturating_add(header.sfh_fdeoff.into()).saturating_add(entries);
    let rows_end = base.saturating_add(header.sfh_freoff.into()).saturating_add(header.sfh_fre_len.into());
    entries_end.max(rows_end) <= len as u64
}
