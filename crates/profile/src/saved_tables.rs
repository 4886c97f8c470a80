//! Tables of a profile as they were saved.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::UInt32Type;
use perfuse_formats::Recording;
use perfuse_formats::saved::SavedProfile;
use perfuse_formats::saved::parquet_file::TableError;
use perfuse_tables::BATCH_ROWS;
use perfuse_tables::access::{nullable, numbers};

use crate::inputs::Unreadable;
use crate::table_stream::{StreamError, TableStream};

/// Rows of a table as it was saved.
type SavedRows = Box<dyn Iterator<Item = Result<RecordBatch, TableError>> + Send>;

/// Whether each row of `stacks` follows that of its caller, so that no stack contains itself.
pub(crate) fn callers_first(batch: &RecordBatch) -> bool {
    let (Ok(parents), Ok(keys)) =
        (numbers::<UInt32Type>(batch, "parent_stack_id"), numbers::<UInt32Type>(batch, "stack_id"))
    else {
        return false;
    };
    (0..keys.len()).all(|row| nullable(parents, row).is_none_or(|parent| parent < keys.value(row)))
}

/// Numbers of the rows that keys refer to: memory is used by the greatest key.
#[derive(Clone, Copy)]
pub(crate) struct KeyLimits {
    pub(crate) threads: u32,
    pub(crate) functions: u32,
}

impl KeyLimits {
    /// Those of a file.
    pub(crate) fn of(file: &SavedProfile) -> Result<Self, TableError> {
        let num_rows = |table| -> Result<u32, TableError> {
            let rows = file.parquet(table)?.map_or(0, |table| table.num_rows);
            Ok(u32::try_from(rows).unwrap_or(u32::MAX))
        };
        Ok(Self { threads: num_rows("threads")?, functions: num_rows("functions")? })
    }
}

/// The tables of a profile that was saved.
pub(crate) struct SavedTables {
    file: Arc<dyn Recording>,
    /// The times of which samples are requested; all where `None`.
    sampled_ns: Option<RangeInclusive<i64>>,
}

impl SavedTables {
    /// Those of an open file.
    pub(crate) fn of(file: &Arc<dyn Recording>) -> Self {
        Self { file: Arc::clone(file), sampled_ns: None }
    }

    /// The same with the samples that are stored with those of some times.
    pub(crate) fn of_times(file: &Arc<dyn Recording>, sampled_ns: Option<RangeInclusive<i64>>) -> Self {
        Self { sampled_ns, ..Self::of(file) }
    }

    /// The file; `None` where it is not a saved profile.
    pub(crate) fn profile(&self) -> Option<&SavedProfile> {
        self.file.as_any().downcast_ref()
    }

    /// A table as it was saved; `None` where it has no rows. With `near`, a column of integers and a range, row groups without a
    /// value in the range are left out.
    pub(crate) fn table(
        &self,
        name: &str,
        near: Option<(&str, &RangeInclusive<i64>)>,
    ) -> Option<TableStream> {
        let opened = self.profile()?.parquet(name).transpose()?;
        let of_times = self.sampled_ns.as_ref().filter(|_| name == "samples").map(|times| ("ts_ns", times));
        let near = near.or(of_times);
        let path = self.file.source().path.clone();
        let damaged = move |error: TableError| StreamError::Saved(Unreadable::noted(&path, error));
        let is_of_stacks = name == "stacks";
        let checked = move |batch: RecordBatch| match is_of_stacks && !callers_first(&batch) {
            true => Err(TableError::Table("stacks", "a stack does not follow its caller's".to_owned())),
            false => Ok(batch),
        };
        let rows = opened.and_then(|opened| -> Result<SavedRows, TableError> {
            Ok(match near {
                None => Box::new(opened.rows(None, BATCH_ROWS)?),
                Some((column, values)) => Box::new(opened.rows_near(column, values, BATCH_ROWS)?),
            })
        });
        Some(match rows {
            Ok(rows) => Box::new(rows.map(move |batch| batch.and_then(checked).map_err(&damaged))),
            Err(error) => Box::new(std::iter::once(Err(damaged(error)))),
        })
    }
}
