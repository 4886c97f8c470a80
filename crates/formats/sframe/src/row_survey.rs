//! One pass over all rows: counts them, and records where every 64th row of a long function begins.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use perfuse_stopping::part;
use rustc_hash::FxHashMap;

use super::layout::{ATTRIBUTES, ENTRY, HEADER, INDEX, ROW};
use super::reader::UnitView;
use super::records::Fde;
use super::row::FreIter;

/// Number of rows between two recorded offsets.
const STRIDE: u32 = 64;

/// Smallest number of functions for which a thread is started.
const MIN_FUNCTIONS_PER_THREAD: u32 = 1 << 14;

/// The result of the pass.
#[derive(Debug, Default)]
pub struct RowSurvey {
    /// Number of headers.
    pub headers: u64,
    /// Number of function entries of versions 1 and 2.
    pub entries: u64,
    /// Number of function entries of version 3.
    pub indexes: u64,
    /// Number of function attributes that can be read.
    pub attributes: u64,
    /// Number of rows that can be read.
    pub rows: u64,
    /// By unit and function: offset in the section of every [`STRIDE`]th row except the first.
    strides: FxHashMap<(usize, u32), Vec<usize>>,
}

impl RowSurvey {
    /// Reads all rows.
    #[must_use]
    pub fn of<'a>(views: impl Iterator<Item = UnitView<'a>>) -> Self {
        let mut survey = Self::default();
        for (unit_index, view) in views.enumerate() {
            survey.headers = survey.headers.saturating_add(1);
            let num = view.unit.num_functions;
            if view.unit.version() < 3 {
                survey.entries = survey.entries.saturating_add(num.into());
            } else {
                survey.indexes = survey.indexes.saturating_add(num.into());
            }
            for range in map_in_threads(num, |functions| Self::survey_functions(unit_index, view, functions))
            {
                survey.add(range);
            }
        }
        survey
    }

    /// Adds the result for other functions.
    fn add(&mut self, other: Self) {
        self.attributes = self.attributes.saturating_add(other.attributes);
        self.rows = self.rows.saturating_add(other.rows);
        self.strides.extend(other.strides);
    }

    /// Reads the rows of some functions of a unit.
    fn survey_functions(unit_index: usize, view: UnitView<'_>, functions: Range<u32>) -> Self {
        let mut survey = Self::default();
        for function in view.functions_in(functions) {
            let mut num_rows = 0u32;
            for row in view.rows(&function).flatten() {
                if num_rows != 0 && num_rows.is_multiple_of(STRIDE) {
                    survey.strides.entry((unit_index, function.index)).or_default().push(row.at);
                }
                num_rows = num_rows.saturating_add(1);
            }
            survey.rows = survey.rows.saturating_add(num_rows.into());
            let attributes = view.unit.version() >= 3 && function.rows_at.is_some();
            survey.attributes = survey.attributes.saturating_add(attributes.into());
        }
        survey
    }

    /// Rows of a function from the row with this index on, without reading all rows before it.
    #[must_use]
    pub fn rows_from<'a>(
        &self,
        unit_index: usize,
        view: UnitView<'a>,
        function: &Fde,
        row: u32,
    ) -> FreIter<'a> {
        let mut rows = self.rows_from_stride(unit_index, view, function, (row / STRIDE) as usize);
        (0..row % STRIDE).map_while(|_| rows.next()).for_each(drop);
        rows
    }

    /// Rows of a function from this multiple of [`STRIDE`] on.
    #[must_use]
    pub fn rows_from_stride<'a>(
        &self,
        unit_index: usize,
        view: UnitView<'a>,
        function: &Fde,
        stride: usize,
    ) -> FreIter<'a> {
        let mut rows = view.rows(function);
        let at = stride.checked_sub(1).and_then(|last| self.strides(unit_index, function).get(last));
        match at {
            Some(at) => rows.skip_to(*at, (stride as u32).saturating_mul(STRIDE)),
            None if stride > 0 => rows.skip_to(0, u32::MAX),
            None => {}
        }
        rows
    }

    /// Offset in the section of every [`STRIDE`]th row of a function, except the first.
    #[must_use]
    pub fn strides(&self, unit_index: usize, function: &Fde) -> &[usize] {
        // Most functions have fewer rows and need no lookup.
        match function.num_rows > STRIDE {
            true => self.strides.get(&(unit_index, function.index)).map_or(&[], Vec::as_slice),
            false => &[],
        }
    }

    /// Number of records by the specification's name, without those that do not occur.
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

/// Processes functions in ranges on all processors, in threads of its own: threads of the pool may be waiting for
/// this result, and one of them could take up a job that waits for the same result.
fn map_in_threads<T: Send>(num: u32, process: impl Fn(Range<u32>) -> T + Sync) -> Vec<T> {
    let processors = thread::available_parallelism().map_or(1, |num| u32::try_from(num.get()).unwrap_or(1));
    let ranges = processors.min(num / MIN_FUNCTIONS_PER_THREAD);
    if ranges <= 1 {
        return vec![process(0..num)];
    }
    let size = num.div_ceil(ranges);
    thread::scope(|scope| {
        let ranges = (0..num).step_by(size as usize);
        let process = &process;
        let ranges =
            ranges.map(|from| scope.spawn(part(move || process(from..from.saturating_add(size).min(num)))));
        let ranges: Vec<_> = ranges.collect();
        ranges
            .into_iter()
            .map(|range| range.join().unwrap_or_else(|panicked| resume_unwind(panicked)))
            .collect()
    })
}
