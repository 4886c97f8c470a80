//! One pass over all rows: how many there are, and where the later rows of long functions begin.

use rustc_hash::FxHashMap;

use super::SFrame;
use super::reader::View;
use super::records::Function;
use super::row::Rows;

/// Rows between two whose place is kept.
const STRIDE: u32 = 64;

/// What the pass finds.
#[derive(Debug, Default)]
pub struct Survey {
    /// Headers.
    pub headers: u64,
    /// Entries of versions 1 and 2.
    pub entries: u64,
    /// Entries of version 3.
    pub indexes: u64,
    /// Attributes that can be read.
    pub attributes: u64,
    /// Rows that can be read.
    pub rows: u64,
    /// By piece and function: where in the section every [`STRIDE`]th row begins, but the first.
    strides: FxHashMap<(usize, u32), Vec<usize>>,
}

impl Survey {
    /// Walks all there is.
    #[must_use]
    pub fn of(file: &SFrame) -> Self {
        let mut found = Self::default();
        file.views().enumerate().for_each(|(number, view)| found.add(number, view));
        found
    }

    fn add(&mut self, number: usize, view: View<'_>) {
        self.headers = self.headers.saturating_add(1);
        let num = u64::from(view.piece.num_functions);
        if view.piece.version() < 3 {
            self.entries = self.entries.saturating_add(num);
        } else {
            self.indexes = self.indexes.saturating_add(num);
        }
        for function in view.functions() {
            let mut num_rows = 0u32;
            for row in view.rows(&function).flatten() {
                if num_rows != 0 && num_rows.is_multiple_of(STRIDE) {
                    self.strides.entry((number, function.index)).or_default().push(row.at);
                }
                num_rows = num_rows.saturating_add(1);
            }
            self.rows = self.rows.saturating_add(num_rows.into());
            let attributes = view.piece.version() >= 3 && function.rows_at.is_some();
            self.attributes = self.attributes.saturating_add(attributes.into());
        }
    }

    /// Rows of a function from one on, without walking all before it.
    #[must_use]
    pub fn rows_from<'a>(&self, number: usize, view: View<'a>, function: &Function, row: u32) -> Rows<'a> {
        let mut rows = self.rows_from_stride(number, view, function, (row / STRIDE) as usize);
        (0..row % STRIDE).map_while(|_| rows.next()).for_each(drop);
        rows
    }

    /// Rows of a function, so many strides from its first.
    #[must_use]
    pub fn rows_from_stride<'a>(
        &self,
        number: usize,
        view: View<'a>,
        function: &Function,
        stride: usize,
    ) -> Rows<'a> {
        let mut rows = view.rows(function);
        let at = stride.checked_sub(1).and_then(|last| self.strides(number, function).get(last));
        match at {
            Some(at) => rows.skip_to(*at, (stride as u32).saturating_mul(STRIDE)),
            None if stride > 0 => rows.skip_to(0, u32::MAX),
            None => {}
        }
        rows
    }

    /// Where in the section every [`STRIDE`]th row of a function begins, but the first.
    #[must_use]
    pub fn strides(&self, number: usize, function: &Function) -> &[usize] {
        // Most functions are short, and need not be asked for.
        match function.num_rows > STRIDE {
            true => self.strides.get(&(number, function.index)).map_or(&[], Vec::as_slice),
            false => &[],
        }
    }

    /// Records by the specification's names; those there are none of are left out.
    #[must_use]
    pub fn counts(&self) -> Vec<(String, u64)> {
        use super::describe::{ATTRIBUTES, ENTRY, HEADER, INDEX, ROW};
        let all = [
            (HEADER, self.headers),
            (ENTRY, self.entries),
            (INDEX, self.indexes),
            (ATTRIBUTES, self.attributes),
            (ROW, self.rows),
        ];
        all.into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.to_owned(), count))
            .collect()
    }
}
