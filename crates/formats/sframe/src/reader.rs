//! Cuts a section into pieces, each with its header: one where a linker merged them, several where it did not.

use std::ops::Range;

use perfuse_wire::ParseError;

use super::container::{Holder, Section};
use super::layout::FuncDescAttrV3;
use super::records::{self, Function};
use super::row::{Row, Rows};
use super::unit::{Piece, Starts, next_header, piece};

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
    decide(section, data, &mut pieces);
    budget(section, data, &mut pieces);
    Ok((pieces, data.len().saturating_sub(end)))
}

/// Functions looked at where only the code's place can tell.
const LOOKED_AT: usize = 4096;

/// Decides for each piece of a section.
fn decide(section: &Section, data: &[u8], pieces: &mut [Piece]) {
    let several = pieces.len() > 1;
    for piece in pieces {
        piece.starts = of(section, data, piece, several);
    }
}

fn of(section: &Section, data: &[u8], piece: &Piece, several: bool) -> Starts {
    if piece.is_pcrel() {
        return Starts::FromField("the flag SFRAME_F_FDE_FUNC_START_PCREL is set");
    }
    if section.holder == Holder::Object {
        return Starts::FromField("relocations of object files count from where they are applied");
    }
    if piece.version() >= 3 {
        return Starts::FromSection("version 3 without the flag SFRAME_F_FDE_FUNC_START_PCREL");
    }
    let inside = |starts| {
        let piece = Piece { starts, ..piece.clone() };
        let view = View { piece: &piece, data, file_offset: 0, address: section.address };
        let functions = view.functions().take(LOOKED_AT);
        functions.filter(|function| in_code(section, function.start)).count()
    };
    let from_section = inside(Starts::FromSection(""));
    let from_field = inside(Starts::FromField(""));
    match from_section.cmp(&from_field) {
        _ if several => Starts::FromField("the linker put sections together without merging them"),
        std::cmp::Ordering::Less => Starts::FromField("only so do functions lie in code"),
        std::cmp::Ordering::Greater => Starts::FromSection("only so do functions lie in code"),
        std::cmp::Ordering::Equal if piece.is_sorted() => {
            Starts::FromSection("sorted entries are GNU ld's, which counts from the section")
        }
        std::cmp::Ordering::Equal => {
            Starts::FromField("unsorted entries are the assembler's, relocated as they stood")
        }
    }
}

fn in_code(section: &Section, address: u64) -> bool {
    let code = &section.code;
    let before = code.partition_point(|range| range.start <= address);
    before.checked_sub(1).and_then(|at| code.get(at)).is_some_and(|range| address < range.end)
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
