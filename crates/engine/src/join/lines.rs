//! Lines and inlined calls of JIT code.

use std::ops::Range;

use arrow_array::RecordBatch;
use arrow_array::types::{UInt32Type, UInt64Type};
use perfuse_addresses::inlined::{CallExtent, calls_at};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::FxHashMap;

/// Lines and inlined calls of JIT code, from tables `line_rows` and `inline_calls`.
#[derive(Debug, Default)]
pub struct CodeLines {
    lines: Vec<RecordBatch>,
    inlines: Vec<RecordBatch>,
    line_ranges: FxHashMap<u32, (usize, Range<usize>)>,
    inline_ranges: FxHashMap<u32, (usize, Range<usize>)>,
}

/// A position in a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourcePosition {
    /// File.
    pub path: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column, from 1.
    pub column: Option<u32>,
}

impl CodeLines {
    /// Takes both tables, whose rows are grouped by code object.
    ///
    /// # Errors
    /// When a batch is not of its table.
    pub fn new(lines: Vec<RecordBatch>, inlines: Vec<RecordBatch>) -> Result<Self, ColumnError> {
        let line_ranges = ranges(&lines)?;
        let inline_ranges = ranges(&inlines)?;
        Ok(Self { lines, inlines, line_ranges, inline_ranges })
    }

    /// Source position of an offset in the code.
    ///
    /// # Errors
    /// When a batch is not of its table.
    pub fn line(&self, code_object_id: u32, code_offset: u64) -> Result<SourcePosition, ColumnError> {
        let Some((batch, range)) = self.line_ranges.get(&code_object_id) else {
            return Ok(SourcePosition::default());
        };
        let Some(batch) = self.lines.get(*batch) else { return Ok(SourcePosition::default()) };
        let offsets = numbers::<UInt64Type>(batch, "code_offset")?.values();
        let offsets = offsets.get(range.clone()).unwrap_or_default();
        let Some(at) = offsets.partition_point(|&o| o <= code_offset).checked_sub(1) else {
            return Ok(SourcePosition::default());
        };
        let row = range.start.saturating_add(at);
        let line = numbers::<UInt32Type>(batch, "line")?.value(row);
        if line == 0 {
            return Ok(SourcePosition::default());
        }
        Ok(SourcePosition {
            path: text(batch, "path")?.get(row).filter(|path| !path.is_empty()).map(str::to_owned),
            line: Some(line),
            column: nullable(numbers::<UInt32Type>(batch, "column")?, row),
        })
    }

    /// Calls inlined at an offset, outermost first: key of the function, and where it is called.
    ///
    /// # Errors
    /// When a batch is not of its table.
    pub fn inlined(
        &self,
        code_object_id: u32,
        code_offset: u64,
    ) -> Result<Vec<(u32, SourcePosition)>, ColumnError> {
        let Some((batch, range)) = self.inline_ranges.get(&code_object_id) else { return Ok(Vec::new()) };
        let Some(batch) = self.inlines.get(*batch) else { return Ok(Vec::new()) };
        let starts = numbers::<UInt64Type>(batch, "start_offset")?;
        let sizes = numbers::<UInt64Type>(batch, "size_bytes")?;
        let depths = numbers::<UInt32Type>(batch, "depth")?;
        let functions = numbers::<UInt32Type>(batch, "function_id")?;
        let paths = text(batch, "call_path")?;
        let lines = numbers::<UInt32Type>(batch, "call_line")?;
        let columns = numbers::<UInt32Type>(batch, "call_column")?;
        let range_of =
            |row| CallExtent { start: starts.value(row), size: sizes.value(row), depth: depths.value(row) };
        let call = |row: usize| {
            let position = SourcePosition {
                path: paths.get(row).map(str::to_owned),
                line: nullable(lines, row),
                column: nullable(columns, row),
            };
            (functions.value(row), position)
        };
        Ok(calls_at(range.clone(), code_offset, range_of).into_iter().map(call).collect())
    }
}

/// Batch and rows of each code object.
fn ranges(batches: &[RecordBatch]) -> Result<FxHashMap<u32, (usize, Range<usize>)>, ColumnError> {
    let mut ranges = FxHashMap::default();
    for (at, batch) in batches.iter().enumerate() {
        let ids = numbers::<UInt32Type>(batch, "code_object_id")?;
        let mut start = 0;
        for row in 1..=batch.num_rows() {
            if row == batch.num_rows() || ids.value(row) != ids.value(start) {
                ranges.insert(ids.value(start), (at, start..row));
                start = row;
            }
        }
    }
    Ok(ranges)
}
