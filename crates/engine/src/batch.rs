//! Record batches that are not rows of a common table.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
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
