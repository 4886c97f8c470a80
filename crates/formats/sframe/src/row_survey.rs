//! One pass over all rows: how many there are, and where the later rows of long functions begin.

use std::ops::Range;
use std::panic::resume_unwind;
use std::thread;

use rustc_hash::FxHashMap;

use super::layout::{ATTRIBUTES, ENTRY, HEADER, INDEX, ROW};
use super::reader::UnitView;
use super::records::Fde;
use super::row::FreIter;

/// Rows between two whose place is kept.
const STRIDE: u32 = 64;

/// Functions that are worth a thread.
const MIN_FUNCTIONS_PER_THREAD: u32 = 1 << 14;

/// What the pass finds.
#[derive(Debug, Default)]
pub struct RowSurvey {
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

impl RowSurvey {
    /// Walks all there is.
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

    /// What was found of other functions.
    fn add(&mut self, other: Self) {
        self.attributes = self.attributes.saturating_add(other.attributes);
        self.rows = self.rows.saturating_add(other.rows);
        self.strides.extend(other.strides);
    }

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

    /// Rows of a function from one on, without walking all before it.
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

    /// Rows of a function, so many strides from its first.
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

    /// Where in the section every [`STRIDE`]th row of a function begins, but the first.
    #[must_use]
    pub fn strides(&self, unit_index: usize, function: &Fde) -> &[usize] {
        // Most functions are short, and need not be asked for.
        match function.num_rows > STRIDE {
            true => self.strides.get(&(unit_index, function.index)).map_or(&[], Vec::as_slice),
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
            ranges.map(|from| scope.spawn(move || process(from..from.saturating_add(size).min(num))));
        let ranges: Vec<_> = ranges.collect();
        ranges
            .into_iter()
            .map(|range| range.join().unwrap_or_else(|panicked| resume_unwind(panicked)))
            .collect()
    })
}
