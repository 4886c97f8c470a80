//! Builds the columns of `call_events`, many rows at a time.

use std::sync::Arc;

use arrow_array::builder::{BooleanBufferBuilder, UInt64Builder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_buffer::NullBuffer;
use perfuse_tables::{CallEvent, Choices, call_events};

use crate::block::TscState;
use crate::consts::{Action, FUNCTION_BYTES};
use crate::ids::FunctionKeys;
use crate::record_iter::FunctionRun;
use perfuse_recording::Scale;

/// Columns of a batch being built.
#[derive(Debug, Default)]
pub struct CallEventColumns {
    ts_ns: Vec<i64>,
    kinds: Vec<i32>,
    functions: Vec<u32>,
    offsets: Vec<u64>,
    /// Runs of equal `thread_id` and `cpu`: first row and values; each ends at the first row of the next.
    runs: Vec<(usize, u32, Option<u32>)>,
    /// Rows with a `value`.
    values: Vec<(usize, u64)>,
}

/// The key in column `kind` of each action; an entry with arguments is an entry.
const CALL_EVENT_KEYS: [i32; 4] = {
    const ENTER: i32 = CallEvent::Enter as i32;
    [ENTER, CallEvent::Exit as i32, CallEvent::TailExit as i32, ENTER]
};

/// The key in column `kind` of an action; `None` for an undefined action.
pub fn call_event_key(action: Action) -> Option<i32> {
    CALL_EVENT_KEYS.get(usize::from(action.0)).copied()
}

impl CallEventColumns {
    /// Columns with capacity for this many rows.
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            ts_ns: Vec::with_capacity(rows),
            kinds: Vec::with_capacity(rows),
            functions: Vec::with_capacity(rows),
            offsets: Vec::with_capacity(rows),
            ..Self::default()
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.ts_ns.len()
    }

    /// Sets the thread and processor of the rows that follow.
    pub fn start_run(&mut self, thread_id: u32, cpu: Option<u32>) {
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
        clock: &mut TscState,
        scale: &Scale,
        keys: &FunctionKeys,
    ) {
        let begin = run.offset as u64;
        if run.has_unknown_action() {
            let mut offset = begin;
            run.for_each(|action, id, delta| {
                clock.step(delta);
                if let Some(kind) = call_event_key(action) {
                    self.push(scale.ns(clock.tsc), kind, keys.get(id), offset);
                }
                offset = offset.wrapping_add(FUNCTION_BYTES as u64);
            });
            return;
        }
        match scale.from(clock.tsc, run.len()) {
            Some(mut steps) => {
                run.extend(&mut self.ts_ns, |_, _, delta| steps.step(delta));
                run.for_each(|_, _, delta| clock.step(delta));
            }
            None => run.extend(&mut self.ts_ns, |_, _, delta| {
                clock.step(delta);
                scale.ns(clock.tsc)
            }),
        }
        run.extend(&mut self.kinds, |Action(action), _, _| {
            CALL_EVENT_KEYS.get(usize::from(action & 3)).copied().unwrap_or_default()
        });
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

    /// The columns `thread_id` and `cpu`.
    fn run_columns(&self) -> (ArrayRef, ArrayRef) {
        let rows = self.len();
        let ends = self.runs.iter().skip(1).map(|&(row, ..)| row).chain([rows]);
        let runs = || self.runs.iter().zip(ends.clone());
        let mut threads = Vec::with_capacity(rows);
        runs().for_each(|(&(_, thread_id, _), end)| threads.resize(end, thread_id));
        let mut cpus = Vec::with_capacity(rows);
        runs().for_each(|(&(.., cpu), end)| cpus.resize(end, cpu.unwrap_or_default()));
        let unknown = self.runs.iter().any(|(.., cpu)| cpu.is_none()).then(|| {
            let mut known = BooleanBufferBuilder::new(rows);
            runs().for_each(|(&(row, _, cpu), end)| known.append_n(end.saturating_sub(row), cpu.is_some()));
            NullBuffer::new(known.finish())
        });
        (Arc::new(UInt32Array::from(threads)), Arc::new(UInt32Array::new(cpus.into(), unknown)))
    }

    /// The column `value`.
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
