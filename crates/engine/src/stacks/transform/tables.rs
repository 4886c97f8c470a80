//! The tables of transformed stacks.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, UInt32Array};
use perfuse_tables::{frames, functions, stacks};

use super::{StackIds, StackTransform};
use crate::NONE;
use crate::batch::{add_row, take_runs};
use crate::stacks::StackError;
use crate::stacks::columns::{Keys, column, numbers};
use crate::stacks::events::rows_of_calls;

impl StackTransform {
    /// Table `stacks`: only those with samples, with keys of the original. With `appended` it begins with all rows of the
    /// original, to which rows of other tables refer, and the keys of the new ones are greater.
    ///
    /// # Errors
    /// When a key of the original cannot be read.
    pub fn stacks(&self, appended: bool) -> Result<Vec<RecordBatch>, StackError> {
        let ids = self.new_ids(appended)?;
        let frame_ids = numbers(&self.tables.frames, "frames", "frame_id")?;
        let mut rows = stacks::Builder::new();
        let mut depths = vec![0u32; self.nodes.len()];
        for (number, node) in self.nodes.iter().enumerate() {
            let depth = depths.get(node.parent as usize).map_or(0, |depth| depth.saturating_add(1));
            if let Some(own) = depths.get_mut(number) {
                *own = depth;
            }
            let id = |node: u32| ids.get(node as usize).copied().filter(|id| *id != NONE);
            if let Some(stack) = id(number as u32) {
                let frame = frame_ids.get(node.frame as usize).copied();
                let frame = frame.unwrap_or_else(|| self.added_frame_id(&frame_ids, node.frame));
                rows.push(stack, id(node.parent), frame, depth);
            }
        }
        let mut out = if appended { self.tables.stacks.clone() } else { Vec::new() };
        out.push(rows.finish());
        Ok(out)
    }

    /// Table `frames`, with those that steps added. With `appended` it has all rows of the original, else only those of the
    /// stacks that are left.
    ///
    /// # Errors
    /// When a column of the original cannot be read.
    pub fn frames(&self, appended: bool) -> Result<Vec<RecordBatch>, StackError> {
        let mut out = if appended { self.tables.frames.clone() } else { self.used_frames()? };
        if self.added.is_empty() {
            return Ok(out);
        }
        let frame_ids = numbers(&self.tables.frames, "frames", "frame_id")?;
        let mappings = numbers(&self.tables.frames, "frames", "mapping_id")?;
        let first_function = self.first_added_function()?;
        let mut rows = frames::Builder::new();
        for (index, added) in (0u32..).zip(&self.added) {
            let number = self.num_frames().saturating_add(index);
            let symbol = self.symbols.of_frame.get(added.like as usize);
            let kind = symbol.and_then(|symbol| self.symbols.symbols.get(*symbol as usize)).map(|it| it.kind);
            let kind = kind.and_then(|kind| self.symbols.texts.get(kind)).unwrap_or("unknown");
            let mapping = mappings.get(added.like as usize).copied().filter(|id| *id != NONE);
            let id = self.added_frame_id(&frame_ids, number);
            let function = first_function.saturating_add(index);
            rows.push(
                id,
                Some(function),
                None,
                mapping,
                None,
                None,
                None,
                None,
                None,
                0,
                kind,
                "sampled",
                None,
            );
        }
        out.push(rows.finish());
        Ok(out)
    }

    /// The rows of `frames` of the stacks that are left.
    fn used_frames(&self) -> Result<Vec<RecordBatch>, StackError> {
        let mut used = vec![false; self.num_frames() as usize];
        for (node, id) in self.nodes.iter().zip(self.new_ids(false)?) {
            if let Some(used) = used.get_mut(node.frame as usize).filter(|_| id != NONE) {
                *used = true;
            }
        }
        let damaged = || StackError::Column { table: "frames", column: "frame_id", found: None };
        let mut rows = used.iter();
        let take = |batch: &RecordBatch| {
            let mut runs: Vec<Range<usize>> = Vec::new();
            for (row, _) in rows.by_ref().take(batch.num_rows()).enumerate().filter(|(_, used)| **used) {
                add_row(&mut runs, row);
            }
            take_runs(batch, &runs).ok_or_else(damaged)
        };
        self.tables.frames.iter().map(take).collect()
    }

    /// Table `functions`, with those of the added frames.
    ///
    /// # Errors
    /// When a column of the original cannot be read.
    pub fn functions(&self) -> Result<Vec<RecordBatch>, StackError> {
        let mut out = self.tables.functions.clone();
        if self.added.is_empty() {
            return Ok(out);
        }
        let frame_functions = numbers(&self.tables.frames, "frames", "function_id")?;
        let function_keys = Keys::of(&numbers(&self.tables.functions, "functions", "function_id")?);
        let modules = numbers(&self.tables.functions, "functions", "module_id")?;
        let mut rows = functions::Builder::new();
        for (id, added) in (self.first_added_function()?..).zip(&self.added) {
            let like = frame_functions.get(added.like as usize).copied().unwrap_or(NONE);
            let module = modules.get(function_keys.row(like) as usize).copied().filter(|id| *id != NONE);
            rows.push(id, None, &added.name, &added.name, module, None, None, None);
        }
        out.push(rows.finish());
        Ok(out)
    }

    /// The samples of a batch that are not dropped, with their new stacks.
    ///
    /// The calls of a function that was taken out are dropped: its time is its caller's, but nobody called that.
    ///
    /// # Errors
    /// When the batch has no stacks, or refers to one that does not exist.
    pub fn samples(&self, batch: &RecordBatch, ids: &StackIds) -> Result<RecordBatch, StackError> {
        let stacks: &UInt32Array = column(batch, "samples", "stack_id")?;
        let mut runs: Vec<Range<usize>> = Vec::new();
        let mut kept: Vec<Option<u32>> = Vec::with_capacity(batch.num_rows());
        let are_calls = rows_of_calls(batch)?;
        for row in 0..batch.num_rows() {
            let id = if stacks.is_null(row) {
                if !self.keeps_no_stack {
                    continue;
                }
                None
            } else {
                let key = stacks.value(row);
                let of = self.stack_keys.row(key) as usize;
                let Some(&id) = ids.of_row.get(of) else {
                    return Err(StackError::Reference { table: "samples", column: "stack_id", key });
                };
                let is_merged = self.merged.get(of).copied().unwrap_or_default();
                if id == NONE || (is_merged && are_calls.get(row).copied().unwrap_or_default()) {
                    continue;
                }
                Some(id)
            };
            kept.push(id);
            add_row(&mut runs, row);
        }
        let damaged = || StackError::Column { table: "samples", column: "stack_id", found: None };
        let taken = take_runs(batch, &runs).ok_or_else(damaged)?;
        let schema = taken.schema();
        let Some((at, _)) = schema.column_with_name("stack_id") else { return Err(damaged()) };
        let mut columns = taken.columns().to_vec();
        if let Some(column) = columns.get_mut(at) {
            *column = Arc::new(UInt32Array::from(kept));
        }
        RecordBatch::try_new(schema, columns).map_err(|_| damaged())
    }
}
