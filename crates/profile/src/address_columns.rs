//! Tables with addresses outside call chains, whose frames the join finds.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use perfuse_engine::join::NO_FRAME;

/// Tables with addresses outside call chains, and their columns: each has a column of frames, in the same order.
pub(crate) const POINTS: [(&str, &[&str]); 2] =
    [("branches", &["from_address", "to_address"]), ("memory_accesses", &["address"])];

/// Columns of frames of those tables.
pub(crate) fn frame_columns(table: &str) -> &'static [&'static str] {
    match table {
        "branches" => &["from_frame_id", "to_frame_id"],
        _ => &["data_frame_id"],
    }
}

/// Whether the join finds frames for addresses of a table.
pub(crate) fn has_points(table: &str) -> bool {
    POINTS.iter().any(|(name, _)| *name == table)
}

/// The batch with other keys of frames in a column.
pub(crate) fn with_column(batch: RecordBatch, column: &str, frames: &[u32]) -> RecordBatch {
    let schema = batch.schema();
    let Ok(at) = schema.index_of(column) else { return batch };
    let frame_ids = frames.iter().map(|&frame| (frame != NO_FRAME).then_some(frame));
    let frame_ids: ArrayRef = Arc::new(frame_ids.collect::<UInt32Array>());
    let columns = batch.columns().iter().enumerate();
    let columns = columns.map(|(index, array)| Arc::clone(if index == at { &frame_ids } else { array }));
    RecordBatch::try_new(schema, columns.collect()).unwrap_or(batch)
}
