//! Calls out of hand-made events, and laws that hold for any.

mod accounts;
mod borders;
mod laws;
mod rows;
mod stacks;
mod sums;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use perfuse_tables::{CallEvent, call_events};

/// Events of thread 0, without processors.
fn batch(events: &[(i64, CallEvent, u32)]) -> RecordBatch {
    let mut table = call_events::Builder::new();
    for (row, &(ts_ns, kind, function)) in (0u64..).zip(events) {
        table.push(ts_ns, 0, None, kind, function, None, 0, row);
    }
    table.finish()
}

/// Columns of a batch as text, a row in each string; null is `-`.
fn formatted_rows(batch: &RecordBatch, columns: &[&str]) -> Vec<String> {
    let value = |column: &str, row: usize| {
        let array = batch.column_by_name(column).unwrap();
        if array.is_null(row) {
            "-".to_owned()
        } else if let Some(array) = array.as_primitive_opt::<UInt64Type>() {
            array.value(row).to_string()
        } else if let Some(array) = array.as_primitive_opt::<UInt32Type>() {
            array.value(row).to_string()
        } else if let Some(array) = array.as_primitive_opt::<Int64Type>() {
            array.value(row).to_string()
        } else {
            let array = array.as_dictionary::<Int32Type>();
            array.values().as_string::<i32>().value(array.key(row).unwrap()).to_owned()
        }
    };
    let row = |row| columns.iter().map(|column| value(column, row)).collect::<Vec<_>>().join(" ");
    (0..batch.num_rows()).map(row).collect()
}
