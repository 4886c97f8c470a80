//! The code map of tables `code_objects` and `code_moves`.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_addresses::code_map::{Moves, PlacedInTime};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::FxHashMap;

pub use perfuse_addresses::code_map::{CodeHit, CodeMap};

/// All JIT code of a profile.
///
/// # Errors
/// When a batch is not of its table.
pub fn of_tables(code_objects: &[RecordBatch], code_moves: &[RecordBatch]) -> Result<CodeMap, ColumnError> {
    let moves = moves(code_moves)?;
    let mut placed = Vec::new();
    let mut dumps: FxHashMap<u32, u32> = FxHashMap::default();
    let mut have_one_dump = true;
    for batch in code_objects {
        let ids = numbers::<UInt32Type>(batch, "code_object_id")?;
        let processes = numbers::<UInt32Type>(batch, "process_id")?;
        let created = numbers::<Int64Type>(batch, "create_ns")?;
        let retired = numbers::<Int64Type>(batch, "retire_ns")?;
        let starts = numbers::<UInt64Type>(batch, "start_address")?;
        let sizes = numbers::<UInt64Type>(batch, "size_bytes")?;
        let sources = numbers::<UInt32Type>(batch, "source_id")?;
        let kinds = text(batch, "kind")?;
        let mut of_dumps = processes.values().iter().zip(sources.values());
        have_one_dump &= of_dumps.all(|(&process, &dump)| *dumps.entry(process).or_insert(dump) == dump);
        let named = (0..batch.num_rows()).filter(|&row| kinds.get(row) != Some("unnamed"));
        placed.extend(named.map(|row| PlacedInTime {
            code_object_id: ids.value(row),
            process_id: processes.value(row),
            start_address: starts.value(row),
            size_bytes: sizes.value(row),
            from_ns: created.value(row),
            until_ns: nullable(retired, row).unwrap_or(i64::MAX),
        }));
    }
    let mut map = CodeMap::default();
    if have_one_dump && moves.is_empty() {
        map.extend_apart(placed);
    } else {
        map.extend(placed, &moves);
    }
    Ok(map)
}

/// The same code, with the uncertainty of the times of each recording (`source_id`), in nanoseconds.
///
/// # Errors
/// When a batch is not of table `code_objects`.
pub fn with_uncertainty(
    mut map: CodeMap,
    code_objects: &[RecordBatch],
    uncertainty_ns: impl Fn(u32) -> i64,
) -> Result<CodeMap, ColumnError> {
    for batch in code_objects {
        let processes = numbers::<UInt32Type>(batch, "process_id")?.values();
        let sources = numbers::<UInt32Type>(batch, "source_id")?.values();
        for (&process, &source) in processes.iter().zip(sources) {
            map.allow_late(process, uncertainty_ns(source));
        }
    }
    Ok(map)
}

/// Moves by code object, in time order.
fn moves(batches: &[RecordBatch]) -> Result<Moves, ColumnError> {
    let mut moves = Moves::default();
    for batch in batches {
        let ids = numbers::<UInt32Type>(batch, "code_object_id")?;
        let times = numbers::<Int64Type>(batch, "ts_ns")?;
        let addresses = numbers::<UInt64Type>(batch, "new_address")?;
        for row in 0..batch.num_rows() {
            moves.entry(ids.value(row)).or_default().push((times.value(row), addresses.value(row)));
        }
    }
    moves.values_mut().for_each(|moves| moves.sort_by_key(|(at, _)| *at));
    Ok(moves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfuse_tables::{code_moves, code_objects};

    #[test]
    fn rows_become_code() {
        let mut code = code_objects::Builder::new();
        code.push(7, 0, 1, None, "jit", None, 100, Some(300), 0x1000, 0x100, None, 0, 5, 0);
        let mut moved = code_moves::Builder::new();
        moved.push(7, 200, 0x1000, 0x8000, 0, 0);
        let code = [code.finish()];
        let map = of_tables(&code, &[moved.finish()]).unwrap();
        let offset = |map: &CodeMap, address, at| map.find(1, address, at).map(|hit| hit.code_offset);
        assert_eq!([150, 250].map(|at| offset(&map, 0x1010, at)), [Some(0x10), None]);
        assert_eq!([250, 300].map(|at| offset(&map, 0x8010, at)), [Some(0x10), None]);
        let map = with_uncertainty(map, &code, |source| i64::from(source == 5) * 10).unwrap();
        assert_eq!([89, 90].map(|at| offset(&map, 0x1010, at)), [None, Some(0x10)]);
    }
}
