//! Functions that have only a number, in profiles of several logs: a number is of its log alone, and so is the name made of it.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use perfuse_tables::functions;
use rustc_hash::FxHashSet;

/// A recording that has numbers for functions.
pub(crate) struct NumberingLog<'a> {
    /// Its path.
    pub(crate) path: &'a str,
    /// Keys of its functions.
    pub(crate) keys: Range<u32>,
}

/// Whether a function's name is only its number, in the way that logs without an instrumentation map name it.
fn is_number(name: &str, native_id: Option<u64>) -> bool {
    let Some(digits) = name.strip_prefix("function ") else { return false };
    // Basic mode has negative numbers for functions of some objects.
    let signed = |id| u32::try_from(id).is_ok_and(|id| digits == id.cast_signed().to_string());
    native_id.is_some_and(|id| digits == id.to_string() || signed(id))
}

/// Table `functions`; where functions of several logs have only a number, their names state the log.
pub(crate) fn numbers_of_logs(
    batches: Vec<RecordBatch>,
    logs: &[NumberingLog<'_>],
) -> Result<Vec<RecordBatch>, ColumnError> {
    if logs.len() < 2 {
        return Ok(batches);
    }
    let mut are_numbers: Vec<Vec<Option<usize>>> = Vec::with_capacity(batches.len());
    let mut has_numbers = vec![false; logs.len()];
    for batch in &batches {
        let (keys, ids) =
            (numbers::<UInt32Type>(batch, "function_id")?, numbers::<UInt64Type>(batch, "native_id")?);
        let names = text(batch, "name")?;
        let log_of = |row: usize, key: u32| {
            let of = is_number(names.get(row).unwrap_or_default(), nullable(ids, row));
            // Keys of one recording follow those of the one before it.
            let log = logs.partition_point(|log| log.keys.end <= key);
            logs.get(log).filter(|log| of && log.keys.contains(&key)).map(|_| log)
        };
        let of_batch: Vec<Option<usize>> =
            keys.values().iter().enumerate().map(|(row, &key)| log_of(row, key)).collect();
        for &log in of_batch.iter().flatten() {
            has_numbers.get_mut(log).into_iter().for_each(|has| *has = true);
        }
        are_numbers.push(of_batch);
    }
    if has_numbers.iter().filter(|&&has| has).count() < 2 {
        return Ok(batches);
    }
    let labels = distinct_names(&logs.iter().map(|log| log.path).collect::<Vec<_>>());
    let renamed = batches.iter().zip(are_numbers);
    renamed.map(|(batch, logs)| with_labels(batch, &logs, &labels)).collect()
}

/// The batch with the names of logs added to those of functions, where a row has a log.
fn with_labels(
    batch: &RecordBatch,
    logs: &[Option<usize>],
    labels: &[String],
) -> Result<RecordBatch, ColumnError> {
    let (keys, ids) =
        (numbers::<UInt32Type>(batch, "function_id")?, numbers::<UInt64Type>(batch, "native_id")?);
    let (names, linkage_names, paths) =
        (text(batch, "name")?, text(batch, "linkage_name")?, text(batch, "path")?);
    let modules = numbers::<UInt32Type>(batch, "module_id")?;
    let (lines, columns) = (numbers::<UInt32Type>(batch, "line")?, numbers::<UInt32Type>(batch, "column")?);
    let mut table = functions::Builder::new();
    for (row, (&key, log)) in keys.values().iter().zip(logs).enumerate() {
        let name = names.get(row).unwrap_or_default();
        let labelled = log.and_then(|log| labels.get(log)).map(|label| format!("{name} of {label}"));
        table.push(
            key,
            nullable(ids, row),
            labelled.as_deref().unwrap_or(name),
            linkage_names.get(row).unwrap_or_default(),
            nullable(modules, row),
            paths.get(row),
            nullable(lines, row),
            nullable(columns, row),
        );
    }
    Ok(table.finish())
}

/// The file name of each path, with as many of the folders around it as distinguish all of them; where nothing does, also a
/// number.
fn distinct_names(paths: &[&str]) -> Vec<String> {
    let most = paths.iter().map(|path| path.matches('/').count()).max().unwrap_or_default();
    let ends = |num_folders: usize| -> Vec<String> {
        let end = |path: &&str| {
            let start = path.rmatch_indices('/').nth(num_folders).map_or(0, |(at, _)| at.saturating_add(1));
            path.get(start..).unwrap_or(path).to_owned()
        };
        paths.iter().map(end).collect()
    };
    let are_distinct = |names: &Vec<String>| names.iter().collect::<FxHashSet<_>>().len() == names.len();
    (0..=most).map(ends).find(are_distinct).unwrap_or_else(|| {
        (1..).zip(ends(0)).map(|(number, name): (u32, String)| format!("{name} ({number})")).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::{distinct_names, is_number};

    #[test]
    fn names_of_files_are_distinct() {
        assert_eq!(distinct_names(&["run/a.xray", "run/b.xray"]), ["a.xray", "b.xray"]);
        assert_eq!(distinct_names(&["a/log", "b/log", "xlog"]), ["a/log", "b/log", "xlog"]);
        assert_eq!(distinct_names(&["log", "b/log"]), ["log", "b/log"]);
        assert_eq!(distinct_names(&["log", "log"]), ["log (1)", "log (2)"]);
    }

    #[test]
    fn a_number_is_that_of_the_function() {
        assert!(is_number("function 7", Some(7)));
        assert!(is_number("function -1", Some(u64::from(u32::MAX))));
        assert!(!is_number("function 7", Some(8)));
        assert!(!is_number("function 7", None));
        assert!(!is_number("seven", Some(7)));
    }
}
