//! Samples written in formats of Protocol Buffers.

use arrow_array::RecordBatch;
use perfuse_writers::stacks::Stacks;
use perfuse_writers::{Error, Tracks, perfetto, pprof};
use pyo3::prelude::*;

use crate::arrow::batches;
use crate::output::{Target, WaitingPython};

/// Writes rows of samples as Perfetto's packets. `threads` are the rows of threads that have samples, `clock` is a number of
/// Perfetto's `BuiltinClock`.
#[pyfunction]
#[pyo3(signature = (out, *, samples, stacks, frames, threads, clock=None, progress=None))]
#[allow(clippy::too_many_arguments, reason = "one argument per table or option")]
pub fn write_perf_samples(
    py: Python<'_>,
    out: Target,
    samples: &Bound<'_, PyAny>,
    stacks: &Bound<'_, PyAny>,
    frames: &Bound<'_, PyAny>,
    threads: &Bound<'_, PyAny>,
    clock: Option<u32>,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let (rows, frames, stacks) = (batches(samples)?, batches(frames)?, batches(stacks)?);
    let threads = batches(threads)?;
    let out = out.open()?;
    let mut waiting = WaitingPython::new(progress, Some(num_rows(&rows)));
    let written = py.detach(|| {
        let stacks = Stacks::of(&frames, &stacks)?;
        let tracks = Tracks::of_rows(&threads)?;
        let samples = perfetto::Samples { rows: &rows, stacks: &stacks, tracks: &tracks, clock };
        perfetto::write_samples(&samples, out, &mut |done| waiting.go_on(done))
    });
    waiting.settle(written)
}

/// `(name, unit, counted, period)`; see [`pprof::SampleEvent`].
type EventFields = (String, String, bool, Option<i64>);

/// Writes sums of samples as pprof's `profile.proto`, uncompressed.
#[pyfunction]
#[pyo3(signature = (out, *, samples, stacks, frames, events, title, duration_ns, progress=None))]
#[allow(clippy::too_many_arguments, reason = "one argument per table or option")]
pub fn write_pprof(
    py: Python<'_>,
    out: Target,
    samples: &Bound<'_, PyAny>,
    stacks: &Bound<'_, PyAny>,
    frames: &Bound<'_, PyAny>,
    events: Vec<EventFields>,
    title: &str,
    duration_ns: i64,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let (rows, frames, stacks) = (batches(samples)?, batches(frames)?, batches(stacks)?);
    let event = |(name, unit, counted, period)| pprof::SampleEvent { name, unit, counted, period };
    let events: Vec<_> = events.into_iter().map(event).collect();
    let out = out.open()?;
    let mut waiting = WaitingPython::new(progress, Some(num_rows(&rows)));
    let written = py.detach(|| -> Result<(), Error> {
        let stacks = Stacks::of(&frames, &stacks)?;
        let profile =
            pprof::SampledProfile { rows: &rows, stacks: &stacks, events: &events, title, duration_ns };
        pprof::write(&profile, out, &mut |done| waiting.go_on(done))
    });
    waiting.settle(written)
}

fn num_rows(batches: &[RecordBatch]) -> u64 {
    batches.iter().map(|batch| batch.num_rows() as u64).sum()
}
