//! Stacks by key, as the functions of their frames.

use arrow_array::types::UInt32Type;
use arrow_array::{RecordBatch, UInt32Array};
use perfuse_tables::access::{ColumnError, nullable, numbers};

/// The rows of a batch, sorted by key.
struct KeyedRows<'a> {
    keys: &'a [u32],
    columns: (&'a UInt32Array, &'a UInt32Array),
}

fn keyed<'a>(
    batches: &'a [RecordBatch],
    key: &'static str,
    columns: (&'static str, &'static str),
) -> Result<Vec<KeyedRows<'a>>, ColumnError> {
    let of = |batch: &'a RecordBatch| {
        let keys = numbers::<UInt32Type>(batch, key)?.values();
        let columns = (numbers(batch, columns.0)?, numbers(batch, columns.1)?);
        if keys.is_sorted() { Ok(KeyedRows { keys, columns }) } else { Err(ColumnError { column: key }) }
    };
    batches.iter().map(of).collect()
}

fn find(batches: &[KeyedRows<'_>], key: u32) -> Option<(Option<u32>, Option<u32>)> {
    batches.iter().find_map(|batch| {
        let row = batch.keys.binary_search(&key).ok()?;
        Some((nullable(batch.columns.0, row), nullable(batch.columns.1, row)))
    })
}

/// Functions of some stacks, outermost first; `None` for unknown ones. A key that does not exist has no functions.
///
/// # Errors
/// [`ColumnError`]
pub fn backtraces(
    stacks: &[RecordBatch],
    frames: &[RecordBatch],
    stack_ids: &[u32],
) -> Result<Vec<Vec<Option<u32>>>, ColumnError> {
    let frames = keyed(frames, "frame_id", ("function_id", "function_id"))?;
    let stacks = keyed(stacks, "stack_id", ("parent_stack_id", "frame_id"))?;
    let backtrace = |key: &u32| {
        let mut functions = Vec::new();
        let mut at = Some(*key);
        while let Some((caller, frame)) = at.and_then(|key| find(&stacks, key)) {
            functions.push(frame.and_then(|frame| find(&frames, frame)?.0));
            // The key of a caller is less than those of its callees.
            at = caller.filter(|caller| at.is_none_or(|at| *caller < at));
        }
        functions.reverse();
        functions
    };
    Ok(stack_ids.iter().map(backtrace).collect())
}
