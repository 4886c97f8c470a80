//! Record batches that are not rows of a common table.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{Field, Schema};

/// A batch of named columns, which all have the same length.
pub fn of(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields = columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    match RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect()) {
        Ok(batch) => batch,
        Err(error) => unreachable!("columns of one length, typed by themselves: {error}"),
    }
}

/// Adds the number of a row to ranges of rows; rows are added in their order.
pub fn add_row(runs: &mut Vec<Range<usize>>, row: usize) {
    match runs.last_mut() {
        Some(run) if run.end == row => run.end = row.saturating_add(1),
        _ => runs.push(row..row.saturating_add(1)),
    }
}

/// Some ranges of the rows of a batch; `None` where a column cannot be copied.
pub fn take_runs(batch: &RecordBatch, runs: &[Range<usize>]) -> Option<RecordBatch> {
    let num_rows = runs.iter().map(ExactSizeIterator::len).sum();
    if num_rows == batch.num_rows() {
        return Some(batch.clone());
    }
    let picked = batch.columns().iter().map(|column| {
        let data = column.to_data();
        let mut rows = MutableArrayData::new(vec![&data], false, num_rows);
        for run in runs {
            rows.try_extend(0, run.start, run.end).ok()?;
        }
        Some(make_array(rows.freeze()))
    });
    RecordBatch::try_new(batch.schema(), picked.collect::<Option<Vec<_>>>()?).ok()
}
