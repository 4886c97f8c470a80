//! Cuts a section into pieces, each with its header: one where a linker merged them, several where it did not.

use std::ops::Range;

use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError};

use super::consts::{Abi, SFRAME_F_FDE_FUNC_START_PCREL, SFRAME_F_FDE_SORTED, SFRAME_MAGIC};
use super::container::Section;
use super::layout::{FuncDescAttrV3, Header};
use super::records::{self, Function};
use super::recovery::Context;
use super::row::{Row, Rows};
use super::starts::{self, Starts};

/// A header with its functions and rows.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Zero-based index of its section among those of the file.
    pub section: usize,
    /// Offset of its header in the section.
    pub at: usize,
    /// The header.
    pub header: Header,
    /// Byte order, by the magic.
    pub endian: Endian,
    /// Offsets in the section of the function entries that are there: whole ones.
    pub entries: Range<usize>,
    /// Offsets in the section of rows; cut where the section ends.
    pub rows: Range<usize>,
    /// Offset in the section behind all of it, as the header says.
    pub end: usize,
    /// Functions that are there.
    pub num_functions: u32,
    /// Functions whose rows are read: all, unless rows overlap so often that walking them would not end.
    pub num_walked: u32,
    /// What start fields count from.
    pub starts: Starts,
}

impl Piece {
    /// Its version.
    #[must_use]
    pub fn version(&self) -> u8 {
        self.header.sfp_version
    }

    /// Its ABI.
    #[must_use]
    pub fn abi(&self) -> Abi {
        Abi(self.header.sfh_abi_arch)
    }

    /// Whether entries are said to be sorted.
    #[must_use]
    pub fn is_sorted(&self) -> bool {
        self.header.sfp_flags & SFRAME_F_FDE_SORTED != 0
    }

    /// Whether starts are said to count from their own fields, which version 1 cannot say.
    #[must_use]
    pub fn is_pcrel(&self) -> bool {
        self.version() >= 2 && self.header.sfp_flags & SFRAME_F_FDE_FUNC_START_PCREL != 0
    }

    /// Size in bytes of a function entry; `None` for an unknown version.
    #[must_use]
    pub fn entry_bytes(&self) -> Option<usize> {
        records::entry_bytes(self.version())
    }

    /// What the meaning of a function's rows depends on.
    #[must_use]
    pub fn context(&self, function: &Function) -> Context {
        Context {
            version: self.version(),
            abi: self.abi(),
            fixed_fp: self.header.sfh_cfa_fixed_fp_offset,
            fixed_ra: self.header.sfh_cfa_fixed_ra_offset,
            fde_type: function.fde_type,
        }
    }
}

/// A piece with the bytes it is in.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The piece.
    pub piece: &'a Piece,
    /// Bytes of its section.
    pub data: &'a [u8],
    /// Offset of the section in the file.
    pub file_offset: u64,
    /// Address of the section.
    pub address: u64,
}

impl<'a> View<'a> {
    /// A function of the table.
    #[must_use]
    #[inline]
    pub fn function(&self, index: u32) -> Option<Function> {
        let piece = self.piece;
        let entry_bytes = piece.entry_bytes()?;
        let at = piece.entries.start.checked_add((index as usize).checked_mul(entry_bytes)?)?;
        let end = at.checked_add(entry_bytes).filter(|end| *end <= piece.entries.end)?;
        let mut function = records::decode(piece.version(), self.data.get(at..end)?, piece.endian)?;
        function.index = index;
        function.at = at;
        function.start = self.start(at, function.start_field);
        let rows = piece.rows.start.checked_add(function.start_fre_off as usize)?;
        if piece.version() < 3 {
            function.rows_at = Some(rows).filter(|at| *at <= piece.rows.end);
            return Some(function);
        }
        let bytes = self.data.get(rows..piece.rows.end).unwrap_or_default();
        Some(match records::with_attributes(function, bytes, piece.endian) {
            Some(function) => {
                Function { rows_at: rows.checked_add(FuncDescAttrV3::SIZE as usize), ..function }
            }
            None => function,
        })
    }

    /// Every function of the table, in its order.
    pub fn functions(self) -> impl ExactSizeIterator<Item = Function> + 'a {
        self.functions_in(0..self.piece.num_functions)
    }

    /// Those of some indexes.
    pub fn functions_in(self, indexes: Range<u32>) -> impl ExactSizeIterator<Item = Function> + 'a {
        let blank = Function { index: u32::MAX, ..records::BLANK };
        (indexes.start as usize..indexes.end as usize)
            .map(move |index| self.function(index as u32).unwrap_or(blank))
    }

    /// Its rows; none for a function behind those that are walked.
    #[must_use]
    #[inline]
    pub fn rows(&self, function: &Function) -> Rows<'a> {
        let data = self.data.get(..self.piece.rows.end).unwrap_or_default();
        let walked = function.index < self.piece.num_walked;
        let (at, num_rows) = match function.rows_at {
            Some(at) if walked => (at, function.num_rows),
            _ => (0, 0),
        };
        Rows::new(data, at, function.info.row_start_bytes(), num_rows, self.piece.endian, self.file_offset)
    }

    /// The row of a function that begins at an offset of the section.
    #[must_use]
    pub(super) fn row_behind(&self, function: &Function, at: usize) -> Option<Row<'a>> {
        let mut rows = self.rows(function);
        rows.skip_to(at, 0);
        rows.next()?.ok()
    }

    /// The address a start field at an offset of the section means.
    #[must_use]
    pub fn start(&self, at: usize, field: i64) -> u64 {
        self.base(at).wrapping_add_signed(field)
    }

    /// The address a start field at an offset of the section counts from.
    #[must_use]
    pub fn base(&self, at: usize) -> u64 {
        match self.piece.starts {
            Starts::FromSection(_) => self.address,
            Starts::FromField(_) => self.address.wrapping_add(at as u64),
        }
    }

    /// Offset in the file of an offset in the section.
    #[must_use]
    pub fn offset(&self, at: usize) -> u64 {
        self.file_offset.saturating_add(at as u64)
    }
}

/// The pieces of a section, and how many bytes behind them are none of theirs.
///
/// # Errors
/// When it does not begin with a header.
pub fn pieces(section: &Section, index: usize, data: &[u8]) -> Result<(Vec<Piece>, usize), ParseError> {
    let file_offset = section.place.start as u64;
    let mut pieces = vec![piece(data, 0, index, file_offset)?];
    let mut end = pieces.first().map_or(0, |piece| piece.end);
    while let Some(at) = next_header(data, end) {
        let Ok(piece) = piece(data, at, index, file_offset) else { break };
        end = piece.end;
        pieces.push(piece);
    }
    starts::decide(section, data, &mut pieces);
    budget(section, data, &mut pieces);
    Ok((pieces, data.len().saturating_sub(end)))
}

/// Where the function entries of a section are, and how large each of them is.
pub(super) fn entries(data: &[u8]) -> Vec<(Range<usize>, usize)> {
    let mut found = Vec::new();
    let mut next = Some(0);
    while let Some(piece) = next.and_then(|at| piece(data, at, 0, 0).ok()) {
        if let Some(stride) = piece.entry_bytes() {
            found.push((piece.entries.clone(), stride));
        }
        next = next_header(data, piece.end);
    }
    found
}

/// The next header: right behind, or at the next multiple of 8, where linkers align.
fn next_header(data: &[u8], end: usize) -> Option<usize> {
    let aligned = end.checked_next_multiple_of(8)?;
    let is_header = |at: &usize| {
        let magic = data.get(*at..).and_then(|rest| rest.first_chunk::<2>());
        magic.is_some_and(|magic| magic_endian(*magic).is_some())
    };
    [end, aligned].into_iter().find(is_header)
}

fn magic_endian(magic: [u8; 2]) -> Option<Endian> {
    if u16::from_le_bytes(magic) == SFRAME_MAGIC {
        Some(Endian::Little)
    } else if u16::from_be_bytes(magic) == SFRAME_MAGIC {
        Some(Endian::Big)
    } else {
        None
    }
}

fn piece(data: &[u8], at: usize, section: usize, file_offset: u64) -> Result<Piece, ParseError> {
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
    let (endian, header) = in_its_order(rest, offset, endian)?;
    let base = at.saturating_add(Header::SIZE as usize).saturating_add(header.sfh_auxhdr_len.into());
    let entry_bytes = records::entry_bytes(header.sfp_version);
    let entries_at = base.saturating_add(header.sfh_fdeoff as usize).min(data.len());
    let claimed = (header.sfh_num_fdes as usize).saturating_mul(entry_bytes.unwrap_or(0));
    let there = data.len().saturating_sub(entries_at).min(claimed);
    let num_functions = there.checked_div(entry_bytes.unwrap_or(0)).unwrap_or(0);
    let entries_end = entries_at.saturating_add(num_functions.saturating_mul(entry_bytes.unwrap_or(0)));
    let rows_at = base.saturating_add(header.sfh_freoff as usize);
    let rows_end = rows_at.saturating_add(header.sfh_fre_len as usize);
    let entries_claimed = base.saturating_add(header.sfh_fdeoff as usize).saturating_add(claimed);
    Ok(Piece {
        section,
        at,
        header,
        endian,
        entries: entries_at..entries_end,
        rows: rows_at.min(data.len())..rows_end.min(data.len()),
        end: rows_end.max(entries_claimed),
        num_functions: u32::try_from(num_functions).unwrap_or(u32::MAX),
        num_walked: u32::MAX,
        starts: Starts::FromSection("not decided yet"),
    })
}

/// The header in the byte order of the magic, unless the ABI has the other one and only in that does the header fit.
fn in_its_order(rest: &[u8], offset: u64, endian: Endian) -> Result<(Endian, Header), ParseError> {
    let header = Header::read(&mut Cursor::new(rest, offset, endian))?;
    let of_abi = Abi(header.sfh_abi_arch).endian().filter(|of_abi| *of_abi != endian);
    if let Some(other) = of_abi
        && !fits(&header, rest.len())
    {
        let swapped = Header::read(&mut Cursor::new(rest, offset, other))?;
        if fits(&swapped, rest.len()) {
            return Ok((other, swapped));
        }
    }
    Ok((endian, header))
}

fn fits(header: &Header, len: usize) -> bool {
    let entry_bytes = records::entry_bytes(header.sfp_version).unwrap_or(0) as u64;
    let base = Header::SIZE.saturating_add(header.sfh_auxhdr_len.into());
    let entries = u64::from(header.sfh_num_fdes).saturating_mul(entry_bytes);
    let entries_end = base.saturating_add(header.sfh_fdeoff.into()).saturating_add(entries);
    let rows_end = base.saturating_add(header.sfh_freoff.into()).saturating_add(header.sfh_fre_len.into());
    entries_end.max(rows_end) <= len as u64
}

/// Rows may be shared by functions, and a damaged table can have each function claim all of them. As many are
/// walked in all as the section has bytes, which is five times what sections have whose rows are shared; functions behind
/// that have none.
fn budget(section: &Section, data: &[u8], pieces: &mut [Piece]) {
    let mut left = (data.len() as u64).max(1 << 16);
    let claimed = pieces.iter().try_fold(0u64, |sum, piece| sum.checked_add(claimed(piece, data)?));
    if claimed.is_some_and(|claimed| claimed <= left) {
        pieces.iter_mut().for_each(|piece| piece.num_walked = piece.num_functions);
        return;
    }
    let (file_offset, address) = (section.place.start as u64, section.address);
    for piece in pieces {
        let view = View { piece, data, file_offset, address };
        let mut walked = 0u32;
        for function in view.functions() {
            let row_bytes = function.info.row_start_bytes().unwrap_or(4).saturating_add(1);
            let room = piece.rows.end.saturating_sub(function.rows_at.unwrap_or(usize::MAX));
            let rows = u64::from(function.num_rows).min(room.checked_div(row_bytes).unwrap_or(0) as u64);
            let Some(rest) = left.checked_sub(rows) else { break };
            left = rest;
            walked = walked.saturating_add(1);
        }
        piece.num_walked = walked;
    }
}

/// Rows that the functions of a piece say they have, where their entries alone tell.
fn claimed(piece: &Piece, data: &[u8]) -> Option<u64> {
    let entries = data.get(piece.entries.clone())?.chunks_exact(piece.entry_bytes()?);
    let mut rows = entries.map(|entry| records::num_rows(piece.version(), entry, piece.endian));
    rows.try_fold(0u64, |sum, rows| sum.checked_add(rows?.into()))
}
