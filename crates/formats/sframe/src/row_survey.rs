//! One pass over all rows: how many there are, and where the later rows of long functions begin.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use rustc_hash::FxHashMap;

use super::layout::{ATTRIBUTES, ENTRY, HEADER, INDEX, ROW};
use super::reader::View;
use super::records::Function;
use super::row::Rows;

/// Rows between two whose place is kept.
const STRIDE: u32 = 64;

/// Functions that are worth a thread.
const WORTH_A_THREAD: u32 = 1 << 14;

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
    pub fn of<'a>(views: impl Iterator<Item = View<'a>>) -> Self {
        let mut found = Self::default();
        for (number, view) in views.enumerate() {
            found.headers = found.headers.saturating_add(1);
            let num = view.piece.num_functions;
            if view.piece.version() < 3 {
                found.entries = found.entries.saturating_add(num.into());
            } else {
                found.indexes = found.indexes.saturating_add(num.into());
            }
            for part in in_parts(num, |functions| Self::of_functions(number, view, functions)) {
                found.join(part);
            }
        }
        found
    }

    /// What was found of other functions.
    fn join(&mut self, other: Self) {
        self.attributes = self.attributes.saturating_add(other.attributes);
        self.rows = self.rows.saturating_add(other.rows);
        self.strides.extend(other.strides);
    }

    fn of_functions(number: usize, view: View<'_>, functions: Range<u32>) -> Self {
        let mut found = Self::default();
        for function in view.functions_in(functions) {
            let mut num_rows = 0u32;
            for row in view.rows(&function).flatten() {
                if num_rows != 0 && num_rows.is_multiple_of(STRIDE) {
                    found.strides.entry((number, function.index)).or_default().push(row.at);
                }
                num_rows = num_rows.saturating_add(1);
            }
            found.rows = found.rows.saturating_add(num_rows.into());
            let attributes = view.piece.version() >= 3 && function.rows_at.is_some();
            found.attributes = found.attributes.saturating_add(attributes.into());
        }
        found
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

/// Looks at so many functions in parts, on all processors. Not in the pool, whose threads may be those that wait for this: one of
/// them would take up another's look-up meanwhile, and wait for itself.
fn in_parts<T: Send>(num: u32, look: impl Fn(Range<u32>) -> T + Sync) -> Vec<T> {
    let processors = thread::available_parallelism().map_or(1, |num| u32::try_from(num.get()).unwrap_or(1));
    let parts = processors.min(num / WORTH_A_THREAD);
    if parts <= 1 {
        return vec![look(0..num)];
    }
    let size = num.div_ceil(parts);
    thread::scope(|scope| {
        let parts = (0..num).step_by(size as usize);
        let look = &look;
        let parts = parts.map(|from| scope.spawn(move || look(from..from.saturating_add(size).min(num))));
        let parts: Vec<_> = parts.collect();
        parts.into_iter().map(|part| part.join().unwrap_or_else(|panicked| resume_unwind(panicked))).collect()
    })
}
