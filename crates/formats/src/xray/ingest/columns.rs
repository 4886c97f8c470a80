//! Columns of `call_events`, filled many rows at a time.

use std::sync::Arc;

use arrow_array::builder::{UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::{CallEvent, Choices, call_events};

use super::super::block::Clock;
use super::super::consts::{Action, FUNCTION_BYTES};
use super::super::ids::FunctionKeys;
use super::super::walk::FunctionRun;
use crate::Scale;

/// Rows on their way into a batch.
#[derive(Debug, Default)]
pub struct Columns {
    ts_ns: Vec<i64>,
    kinds: Vec<i32>,
    functions: Vec<u32>,
    offsets: Vec<u64>,
    /// Runs of `thread_id` and `cpu`: each holds up to the next one's first row.
    runs: Vec<(usize, u32, Option<u32>)>,
    /// Rows that have a `value`.
    values: Vec<(usize, u64)>,
}

/// The key in `kind` of an action.
#[inline]
pub fn key(action: Action) -> Option<i32> {
    const ENTER: i32 = CallEvent::Enter as i32;
    const KEYS: [i32; 4] = [ENTER, CallEvent::Exit as i32, CallEvent::TailExit as i32, ENTER];
    KEYS.get(usize::from(action.0)).copied()
}

impl Columns {
    /// Room for so many rows.
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            ts_ns: Vec::with_capacity(rows),
            kinds: Vec::with_capacity(rows),
            functions: Vec::with_capacity(rows),
            offsets: Vec::with_capacity(rows),
            ..Self::default()
        }
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.ts_ns.len()
    }

    /// The rows from here on are of that thread and processor.
    pub fn run(&mut self, thread_id: u32, cpu: Option<u32>) {
        if self.runs.last().is_none_or(|&(_, thread, on)| (thread, on) != (thread_id, cpu)) {
            self.runs.push((self.len(), thread_id, cpu));
        }
    }

    /// Adds a row.
    #[inline]
    pub fn push(&mut self, ts_ns: i64, kind: i32, function_id: u32, record_offset: u64) {
        self.ts_ns.push(ts_ns);
        self.kinds.push(kind);
        self.functions.push(function_id);
        self.offsets.push(record_offset);
    }

    /// Adds a row for each record of a run, column by column.
    pub fn functions(
        &mut self,
        run: &FunctionRun<'_>,
        clock: &mut Clock,
        scale: &Scale,
        keys: &FunctionKeys,
    ) {
        let begin = run.offset as u64;
        let mut odd = false;
        run.for_each(|action, _, _| odd |= key(action).is_none());
        if odd {
            let mut offset = begin;
            run.for_each(|action, id, delta| {
                clock.step(delta);
                if let Some(kind) = key(action) {
                    self.push(scale.ns(clock.tsc), kind, keys.get(id), offset);
                }
                offset = offset.wrapping_add(FUNCTION_BYTES as u64);
            });
            return;
        }
        run.extend(&mut self.ts_ns, |_, _, delta| {
            clock.step(delta);
            scale.ns(clock.tsc)
        });
        run.extend(&mut self.kinds, |action, _, _| key(action).unwrap_or_default());
        run.extend(&mut self.functions, |_, id, _| keys.get(id));
        let end = begin.saturating_add((run.len() as u64).saturating_mul(FUNCTION_BYTES as u64));
        self.offsets.extend((begin..end).step_by(FUNCTION_BYTES));
    }

    /// Adds the row of an argument.
    pub fn argument(&mut self, ts_ns: i64, function_id: u32, value: u64, record_offset: u64) {
        self.values.push((self.len(), value));
        self.push(ts_ns, CallEvent::Argument.key(), function_id, record_offset);
    }

    /// The rows as Arrow.
    pub fn finish(self, source_id: u32) -> RecordBatch {
        let rows = self.len();
        let (threads, cpus) = self.run_columns();
        let values = self.value_column();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(self.ts_ns)),
            threads,
            cpus,
            CallEvent::array(self.kinds),
            Arc::new(UInt32Array::from(self.functions)),
            values,
            Arc::new(UInt32Array::from(vec![source_id; rows])),
            Arc::new(UInt64Array::from(self.offsets)),
        ];
        call_events::batch(columns)
    }

    fn run_columns(&self) -> (ArrayRef, ArrayRef) {
        let mut threads = Vec::with_capacity(self.len());
        let mut cpus = UInt32Builder::with_capacity(self.len());
        let ends = self.runs.iter().skip(1).map(|&(row, ..)| row).chain([self.len()]);
        for (&(row, thread_id, cpu), end) in self.runs.iter().zip(ends) {
            let rows = end.saturating_sub(row);
            threads.resize(end, thread_id);
            match cpu {
                Some(cpu) => cpus.append_value_n(cpu, rows),
                None => cpus.append_nulls(rows),
            }
        }
        (Arc::new(UInt32Array::from(threads)), Arc::new(cpus.finish()))
    }

    fn value_column(&self) -> ArrayRef {
        if self.values.is_empty() {
            return Arc::new(UInt64Array::new_null(self.len()));
        }
        let mut column = UInt64Builder::with_capacity(self.len());
        let mut filled = 0usize;
        for &(row, value) in &self.values {
            column.append_nulls(row.saturating_sub(filled));
            column.append_value(value);
            filled = row.saturating_add(1);
        }
        column.append_nulls(self.len().saturating_sub(filled));
        Arc::new(column.finish())
    }
}
