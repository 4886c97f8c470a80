//! Selected rows of any table: some of their columns, or their number by kind.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::FxHashMap;

use crate::batch::{add_row, take_runs};
use crate::calls::Selection;

/// Condition on rows of a table.
#[derive(Clone, Debug, Default)]
pub struct RowFilter {
    /// Threads and time.
    pub selection: Selection,
    /// Column of the time; rows where it is null are not selected.
    pub time: &'static str,
    /// Column of the thread key; rows where it is null are not selected.
    pub thread: &'static str,
    /// Values of column `kind` that are selected; all where `None`.
    pub kinds: Option<Vec<String>>,
}

/// The rows of a batch that satisfy a condition on their number in it.
#[must_use]
pub fn rows_where(batch: &RecordBatch, is_selected: impl Fn(usize) -> bool) -> RecordBatch {
    let mut runs = Vec::new();
    (0..batch.num_rows()).filter(|&row| is_selected(row)).for_each(|row| add_row(&mut runs, row));
    take_runs(batch, &runs).unwrap_or_else(|| batch.slice(0, 0))
}

impl RowFilter {
    /// The selected rows of a batch, of the columns with these indexes.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn take(&self, batch: &RecordBatch, columns: &[usize]) -> Result<RecordBatch, ColumnError> {
        let runs = self.runs(batch)?;
        let batch = batch.project(columns).map_err(|_| ColumnError { column: "of that number" })?;
        take_runs(&batch, &runs).ok_or(ColumnError { column: "of that number" })
    }

    /// Number of selected rows of a batch.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn count(&self, batch: &RecordBatch) -> Result<u64, ColumnError> {
        Ok(count(&self.runs(batch)?) as u64)
    }

    /// Ranges of consecutive selected rows.
    fn runs(&self, batch: &RecordBatch) -> Result<Vec<Range<usize>>, ColumnError> {
        let num_rows = batch.num_rows();
        let whole = 0..num_rows;
        let Selection { threads, time_ns } = &self.selection;
        let times = time_ns.as_ref().map(|range| Ok((range, numbers::<Int64Type>(batch, self.time)?)));
        let times = times.transpose()?;
        let threads = threads.as_ref().map(|_| numbers::<UInt32Type>(batch, self.thread)).transpose()?;
        let kinds = self.kinds.as_ref().map(|kinds| Ok((kinds, text(batch, "kind")?))).transpose()?;
        if times.is_none() && threads.is_none() && kinds.is_none() {
            return Ok(vec![whole]);
        }
        let kinds = kinds.map(|(kinds, text)| {
            let words = text.values().iter();
            let is_selected =
                words.map(|word| word.is_some_and(|word| kinds.iter().any(|kind| kind == word)));
            (text, is_selected.collect::<Vec<_>>())
        });
        let is_selected = |row: usize| {
            times
                .as_ref()
                .is_none_or(|(range, times)| nullable(times, row).is_some_and(|it| range.contains(&it)))
                && threads
                    .is_none_or(|threads| nullable(threads, row).is_some_and(|it| self.selection.has(it)))
                && kinds.as_ref().is_none_or(|(text, is_selected)| {
                    text.key(row).is_some_and(|key| is_selected.get(key) == Some(&true))
                })
        };
        let mut runs: Vec<Range<usize>> = Vec::new();
        for row in whole.filter(|row| is_selected(*row)) {
            match runs.last_mut() {
                Some(run) if run.end == row => run.end = row.wrapping_add(1),
                _ => runs.push(row..row.wrapping_add(1)),
            }
        }
        Ok(runs)
    }
}

fn count(runs: &[Range<usize>]) -> usize {
    runs.iter().map(ExactSizeIterator::len).sum()
}

/// Number of selected rows by the values of two columns, a word and a key, in order of their first occurrence.
///
/// # Errors
/// [`ColumnError`]
pub fn count_by_word_and_key(
    batches: impl Iterator<Item = RecordBatch>,
    filter: &RowFilter,
    word: &'static str,
    key: &'static str,
) -> Result<Vec<(String, Option<u32>, u64)>, ColumnError> {
    let mut indexes: FxHashMap<(String, Option<u32>), usize> = FxHashMap::default();
    let mut found: Vec<(String, Option<u32>, u64)> = Vec::new();
    for batch in batches {
        let (words, keys) = (text(&batch, word)?, numbers::<UInt32Type>(&batch, key)?);
        // Indexes into `found` by dictionary key of this batch, which saves hashing words.
        let mut by_key: FxHashMap<(Option<usize>, Option<u32>), usize> = FxHashMap::default();
        for row in filter.runs(&batch)?.into_iter().flatten() {
            let key = nullable(keys, row);
            let index = *by_key.entry((words.key(row), key)).or_insert_with(|| {
                let word = words.get(row).unwrap_or_default().to_owned();
                *indexes.entry((word.clone(), key)).or_insert_with(|| {
                    found.push((word, key, 0));
                    found.len().wrapping_sub(1)
                })
            });
            if let Some((.., count)) = found.get_mut(index) {
                *count = count.wrapping_add(1);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use arrow_array::{Array, UInt64Array};
    use perfuse_tables::{ExceptionEvent, exceptions};

    use super::*;

    fn table() -> RecordBatch {
        let mut table = exceptions::Builder::new();
        for (time, thread, kind, function) in [
            (1, 7, ExceptionEvent::Throw, None),
            (2, 7, ExceptionEvent::Finally, Some(3)),
            (3, 8, ExceptionEvent::Finally, Some(3)),
            (4, 7, ExceptionEvent::Catch, Some(3)),
            (5, 7, ExceptionEvent::Finally, None),
        ] {
            table.push(time, thread, kind, Some(time as u64 * 8), function, None, None, 0, 0);
        }
        table.finish()
    }

    fn filter(threads: Option<Vec<u32>>, time_ns: Option<Range<i64>>, kinds: &[&str]) -> RowFilter {
        let kinds = Some(kinds).filter(|all| !all.is_empty());
        RowFilter {
            selection: Selection { threads, time_ns },
            time: "ts_ns",
            thread: "thread_id",
            kinds: kinds.map(|all| all.iter().map(|&kind| kind.to_owned()).collect()),
        }
    }

    #[test]
    fn rows_are_taken_by_thread_time_and_kind() {
        let objects = |filter: RowFilter| {
            let taken = filter.take(&table(), &[3]).unwrap();
            assert_eq!(filter.count(&table()), Ok(taken.num_rows() as u64));
            let column: &UInt64Array = taken.column(0).as_any().downcast_ref().unwrap();
            column.values().iter().map(|object| object / 8).collect::<Vec<_>>()
        };
        assert_eq!(objects(filter(None, None, &[])), [1, 2, 3, 4, 5]);
        assert_eq!(objects(filter(Some(vec![7]), None, &[])), [1, 2, 4, 5]);
        assert_eq!(objects(filter(Some(vec![7]), Some(2..5), &[])), [2, 4]);
        assert_eq!(objects(filter(None, None, &["finally", "none"])), [2, 3, 5]);
        assert_eq!(objects(filter(None, Some(9..10), &[])), [0u64; 0]);
    }

    #[test]
    fn rows_are_counted_by_word_and_key() {
        let both = [table(), table()].into_iter();
        let counted =
            count_by_word_and_key(both, &filter(None, None, &["finally", "catch"]), "kind", "function_id")
                .unwrap();
        let row = |kind: &str, key, count| (kind.to_owned(), key, count);
        assert_eq!(counted, [row("finally", Some(3), 4), row("catch", Some(3), 2), row("finally", None, 2)]);
    }
}
