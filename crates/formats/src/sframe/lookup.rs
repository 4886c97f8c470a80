//! From an address to its function and row.

use super::SFrame;
use super::records::Function;
use super::recovery::{Meaningless, Recovery};
use super::row::Row;

/// Functions of all pieces, by address. Those of no size are left out; of those with one start the longest is found.
#[derive(Debug, Default)]
pub struct Lookup {
    starts: Vec<u64>,
    places: Vec<(u32, u32)>,
}

/// What is known of an address.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Number of the piece.
    pub piece: usize,
    /// The function.
    pub function: Function,
    /// Its row; `None` where it has none that holds there.
    pub row: Option<Row<'a>>,
    /// What the row says.
    pub recovery: Option<Result<Recovery, Meaningless>>,
}

impl Lookup {
    /// Sorts the functions of a file.
    #[must_use]
    pub fn of(file: &SFrame) -> Self {
        let mut all = Vec::new();
        for (piece, view) in (0u32..).zip(file.views()) {
            let functions = view.functions().filter(|function| function.size != 0);
            all.extend(functions.map(|function| (function.start, function.size, (piece, function.index))));
        }
        // Sections are sorted as a rule, and then this is one look at each.
        all.sort_by_key(|(start, size, _)| (*start, *size));
        Self {
            starts: all.iter().map(|(start, ..)| *start).collect(),
            places: all.iter().map(|(.., place)| *place).collect(),
        }
    }

    /// The last function that starts at or before an address: number of its piece, and its index there.
    #[must_use]
    #[inline]
    fn at_or_before(&self, pc: u64) -> Option<(u32, u32)> {
        let before = self.starts.partition_point(|start| *start <= pc);
        self.places.get(before.checked_sub(1)?).copied()
    }
}

impl SFrame {
    /// The function an address is in, and its row there.
    #[must_use]
    pub fn find(&self, pc: u64) -> Option<Found<'_>> {
        let (number, index) = self.lookup().at_or_before(pc)?;
        let number = number as usize;
        let piece = self.pieces().get(number)?;
        let view = self.view(piece);
        let function = view.function(index).filter(|function| pc < function.end())?;
        let row = function.row_offset(pc.wrapping_sub(function.start));
        let row = row.and_then(|offset| self.row_at(number, &function, offset));
        let recovery = row.map(|row| piece.context(&function).meaning(&row));
        Some(Found { piece: number, function, row, recovery })
    }

    /// The last row of a function that starts at or before an offset.
    fn row_at(&self, number: usize, function: &Function, offset: u64) -> Option<Row<'_>> {
        let view = self.view(self.pieces().get(number)?);
        let begins_before = |at: &usize| {
            let row = view.row_behind(function, *at);
            row.is_some_and(|row| u64::from(row.start) <= offset)
        };
        let strides = self.survey().strides(number, function);
        let skipped = strides.partition_point(begins_before);
        let rows = self.survey().rows_from_stride(number, view, function, skipped);
        rows.map_while(Result::ok).take_while(|row| u64::from(row.start) <= offset).last()
    }
}
