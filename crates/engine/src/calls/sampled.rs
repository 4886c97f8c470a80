//! Traces in the form of samples, for analyses of samples.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use perfuse_tables::{frames, samples, stacks};
use rustc_hash::FxHashMap;

use super::paths::{CallPaths, PathRow};
use super::selection::Selection;
use crate::NONE;

/// Whether a frame is that of a call: allocations of a trace have frames without code.
#[must_use]
pub fn is_call(kind: &str, unwound_by: &str, has_code: bool) -> bool {
    unwound_by == TRACE && (has_code || kind == TRACED)
}

/// How frames of a trace were found.
const TRACE: &str = "trace";
/// Kind of frames of calls of functions without known code.
const TRACED: &str = "traced";

/// First free keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstKeys {
    /// Next `frame_id`.
    pub frame: u32,
    /// Next `stack_id`.
    pub stack: u32,
    /// Next `sample_id`.
    pub sample: u64,
}

/// Rows of the tables that profiles of samples consist of.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// A row of `frames` for each function.
    pub frames: RecordBatch,
    /// A row of `stacks` for each path.
    pub stacks: RecordBatch,
}

impl Sampled {
    /// Frames and stacks of all paths. `code_of` returns the code object of a function, where a runtime compiled it.
    #[must_use]
    pub fn of(paths: &CallPaths, first: FirstKeys, code_of: impl Fn(u32) -> Option<u32>) -> Self {
        let mut frames = frames::Builder::new();
        let mut stacks = stacks::Builder::new();
        let mut frame_of = FxHashMap::default();
        for (path, stack_id) in paths.all().iter().zip(first.stack..) {
            let frame = *frame_of.entry(path.function_id).or_insert_with(|| {
                let id = first.frame.saturating_add(frames.len() as u32);
                let (function, code) = (Some(path.function_id), code_of(path.function_id));
                let kind = if code.is_some() { "jit" } else { TRACED };
                #[rustfmt::skip]
                frames.push(
                    id, function, code, None, None, None, None, None, None, 0, kind, TRACE, None,
                );
                id
            });
            let parent = (path.parent != NONE).then(|| first.stack.saturating_add(path.parent));
            stacks.push(stack_id, parent, frame, path.depth);
        }
        Self { frames: frames.finish(), stacks: stacks.finish() }
    }

    /// Two rows of `samples` per thread and path, by the time of the first call: event `wall-time` has the own time as its
    /// weight, in nanoseconds or, for recordings in `tick_sources`, in ticks of an unknown rate; event `calls` the number of
    /// calls.
    #[must_use]
    pub fn samples(rows: &[PathRow], first: FirstKeys, tick_sources: &[u32]) -> RecordBatch {
        let mut rows: Vec<&PathRow> = rows.iter().collect();
        rows.sort_by_key(|row| (row.first_ns, row.thread_id, row.path));
        let mut samples = samples::Builder::new();
        for row in rows {
            let time_unit = if tick_sources.contains(&row.source_id) { "ticks" } else { "ns" };
            let weights = [(row.self_ns, time_unit, "wall-time"), (row.num_calls, "calls", "calls")];
            for (weight, unit, event) in weights {
                let id = first.sample.saturating_add(samples.len() as u64);
                let PathRow { first_ns, thread_id, source_id, record_offset, .. } = *row;
                let stack = Some(first.stack.saturating_add(row.path));
                samples.push(
                    id,
                    first_ns,
                    thread_id,
                    None,
                    stack,
                    weight,
                    unit,
                    event,
                    source_id,
                    record_offset,
                );
            }
        }
        samples.finish()
    }
}

impl Selection {
    /// The rows of a batch of `samples` that were taken in the selected threads and time.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn samples(&self, batch: &RecordBatch) -> Result<RecordBatch, ColumnError> {
        let ids = numbers::<UInt64Type>(batch, "sample_id")?;
        let times = numbers::<Int64Type>(batch, "ts_ns")?;
        let threads = numbers::<UInt32Type>(batch, "thread_id")?;
        let cpus = numbers::<UInt32Type>(batch, "cpu")?;
        let stacks = numbers::<UInt32Type>(batch, "stack_id")?;
        let weights = numbers::<UInt64Type>(batch, "weight")?;
        let units = text(batch, "weight_unit")?;
        let events = text(batch, "event")?;
        let sources = numbers::<UInt32Type>(batch, "source_id")?;
        let offsets = numbers::<UInt64Type>(batch, "record_offset")?;
        let mut table = samples::Builder::new();
        for row in 0..batch.num_rows() {
            if self.takes(threads.value(row), times.value(row)) {
                table.push(
                    ids.value(row),
                    times.value(row),
                    threads.value(row),
                    nullable(cpus, row),
                    nullable(stacks, row),
                    weights.value(row),
                    units.get(row).unwrap_or_default(),
                    events.get(row).unwrap_or_default(),
                    sources.value(row),
                    offsets.value(row),
                );
            }
        }
        Ok(table.finish())
    }
}
