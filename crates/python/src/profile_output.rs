//! Samples written in formats of Protocol Buffers.

use arrow_array::RecordBatch;
use perfuse_writers::perfetto::{Count, SampleForm, TraceClock};
use perfuse_writers::stacks::Stacks;
use perfuse_writers::{Error, Tracks, perfetto, pprof};
use pyo3::prelude::*;

use crate::arrow::batches;
use crate::call::call;
use crate::output::{Progress, Target, WaitingPython};

/// A number of Perfetto's `BuiltinClock`, and what its times lack to nanoseconds since 1970.
pub type ClockOption = (u32, Option<i64>);

/// The clock of a trace.
pub fn trace_clock((number, realtime_offset_ns): ClockOption) -> TraceClock {
    TraceClock { number, realtime_offset_ns }
}

/// `(pid, ts_ns, name, is_bytes, value)`; see [`Count`].
type CountFields = (i32, i64, String, bool, i64);

/// Writes rows of samples, sums of allocations by stack, and counters of heaps as
/// Perfetto's packets. `threads` are the rows of threads that have samples, `perf_samples` are
/// the packets of older releases; for `clock` see [`ClockOption`].
#[pyfunction]
#[pyo3(signature = (out, *, samples, allocations, counts, end_ns, stacks, frames, threads, perf_samples=false, clock=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "one argument per table or option")]
pub fn write_perfetto_stacks(
    py: Python<'_>,
    out: Target,
    samples: &Bound<'_, PyAny>,
    allocations: &Bound<'_, PyAny>,
    counts: Vec<CountFields>,
    end_ns: i64,
    stacks: &Bound<'_, PyAny>,
    frames: &Bound<'_, PyAny>,
    threads: &Bound<'_, PyAny>,
    perf_samples: bool,
    clock: Option<ClockOption>,
    progress: Progress,
) -> PyResult<()> {
    let (rows, frames, stacks) = (batches(samples)?, batches(frames)?, batches(stacks)?);
    let (threads, allocations) = (batches(threads)?, batches(allocations)?);
    let count = |(pid, ts_ns, name, is_bytes, value)| Count { pid, ts_ns, name, is_bytes, value };
    let counts: Vec<_> = counts.into_iter().map(count).collect();
    let out = out.open()?;
    let mut waiting = WaitingPython::new(progress, Some(num_rows(&rows)));
    let written = call(py, || {
        let stacks = Stacks::of(&frames, &stacks)?;
        let tracks = Tracks::of_rows(&threads)?;
        let form = if perf_samples { SampleForm::Perf } else { SampleForm::Stack };
        let clock = clock.map(trace_clock);
        let samples = perfetto::Samples { rows: &rows, stacks: &stacks, tracks: &tracks, clock, form };
        let heap = perfetto::Heap { allocations: &allocations, counts: &counts, end_ns };
        perfetto::write_samples(&samples, &heap, out, &mut |done| waiting.go_on(done))
    })?;
    waiting.settle(written)
}

/// `(name, unit, counted, period)`; see [`pprof::SampleEvent`].
type EventFields = (String, String, bool, Option<i64>);

/// Writes sums of samples as pprof's `profile.proto`, uncompressed.
#[pyfunction]
#[pyo3(signature = (out, *, samples, stacks, frames, mappings, main_mapping, events, title, time_ns, duration_ns, progress=None))]
#[allow(clippy::too_many_arguments, reason = "one argument per table or option")]
pub fn write_pprof(
    py: Python<'_>,
    out: Target,
    samples: &Bound<'_, PyAny>,
    stacks: &Bound<'_, PyAny>,
    frames: &Bound<'_, PyAny>,
    mappings: &Bound<'_, PyAny>,
    main_mapping: Option<u32>,
    events: Vec<EventFields>,
    title: &str,
    time_ns: Option<i64>,
    duration_ns: i64,
    progress: Progress,
) -> PyResult<()> {
    let (rows, frames, stacks) = (batches(samples)?, batches(frames)?, batches(stacks)?);
    let mappings = batches(mappings)?;
    let event = |(name, unit, counted, period)| pprof::SampleEvent { name, unit, counted, period };
    let events: Vec<_> = events.into_iter().map(event).collect();
    let out = out.open()?;
    let mut waiting = WaitingPython::new(progress, Some(num_rows(&rows)));
    let written = call(py, || -> Result<(), Error> {
        let stacks = Stacks::of(&frames, &stacks)?;
        let mappings = pprof::Mappings::of(&mappings, main_mapping)?;
        let profile = pprof::SampledProfile {
            rows: &rows,
            stacks: &stacks,
            events: &events,
            title,
            mappings: &mappings,
            time_ns,
            duration_ns,
        };
        pprof::write(&profile, out, &mut |done| waiting.go_on(done))
    })?;
    waiting.settle(written)
}

fn num_rows(batches: &[RecordBatch]) -> u64 {
    batches.iter().map(|batch| batch.num_rows() as u64).sum()
}
