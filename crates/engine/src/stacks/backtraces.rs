//! Stacks by key, as the functions of their frames.

use arrow_array::types::UInt32Type;
use arrow_array::{RecordBatch, UInt32Array};
use perfuse_tables::access::{ColumnError, nullable, numbers};

/// Where rows with some keys are: batches number them one by one.
struct Keyed<'a> {
    keys: &'a [u32],
    columns: (&'a UInt32Array, &'a UInt32Array),
}

fn keyed<'a>(
    batches: &'a [RecordBatch],
    key: &'static str,
    columns: (&'static str, &'static str),
) -> Result<Vec<Keyed<'a>>, ColumnError> {
    let of = |batch: &'a RecordBatch| {
        let keys = numbers::<UInt32Type>(batch, key)?.values();
        let columns = (numbers(batch, columns.0)?, numbers(batch, columns.1)?);
        if keys.is_sorted() { Ok(Keyed { keys, columns }) } else { Err(ColumnError { column: key }) }
    };
    batches.iter().map(of).collect()
}

fn find(batches: &[Keyed<'_>], key: u32) -> Option<(Option<u32>, Option<u32>)> {
    batches.iter().find_map(|batch| {
        let row = batch.keys.binary_search(&key).ok()?;
        Some((nullable(batch.columns.0, row), nullable(batch.columns.1, row)))
    })
}

/// Functions of some stacks, outermost first; `None` for those that are not known. A key that is none has no functions.
///
/// # Errors
/// [`ColumnError`]
pub fn backtraces(
    stacks: &[RecordBatch],
    frames: &[RecordBatch],
    wanted: &[u32],
) -> Result<Vec<Vec<Option<u32>>>, ColumnError> {
    let frames = keyed(frames, "frame_id", ("function_id", "function_id"))?;
    let stacks = keyed(stacks, "stack_id", ("parent_stack_id", "frame_id"))?;
    let backtrace = |key: &u32| {
        let mut functions = Vec::new();
        let mut at = Some(*key);
        while let Some((caller, frame)) = at.and_then(|key| find(&stacks, key)) {
            functions.push(frame.and_then(|frame| find(&frames, frame)?.0));
            // A caller is numbered before whom it calls.
            at = caller.filter(|caller| at.is_none_or(|at| *caller < at));
        }
        functions.reverse();
        functions
    };
    Ok(wanted.iter().map(backtrace).collect())
}
