//! Call traces written for timeline viewers, while Python waits without its lock.

use std::sync::Arc;

use perfuse_engine::calls::Selection;
use perfuse_writers::{Error, ShownProcess, Trace, TraceSurvey, Tracks, chrome, perfetto, speedscope};
use pyo3::prelude::*;
use rustc_hash::FxHashSet;

use crate::arrow::{ArrowStream, batches};
use crate::calls::selection;
use crate::errors::value_error;
use crate::inputs::{Inputs, ReadInputs};
use crate::output::{Output, Progress, Target, WaitingPython};
use crate::profile::PyProfile;
use crate::profile_output::{ClockOption, trace_clock};

/// The processes of table `processes` with the pids and names that viewers show: a row per process, in its order.
#[pyfunction]
pub fn shown_processes(processes: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
    let shown = perfuse_writers::shown_processes(&batches(processes)?).map_err(value_error)?;
    Ok(ArrowStream::of(ShownProcess::batch(&shown)))
}

/// The calls, slices, counters and instants of a profile, surveyed and ready to be written.
#[pyclass(frozen, module = "perfuse._core")]
pub struct CallTrace {
    profile: Arc<perfuse_profile::Profile>,
    inputs: Inputs,
    selection: Selection,
    within: Option<Arc<FxHashSet<u32>>>,
    survey: TraceSurvey,
    tracks: Tracks,
}

#[pymethods]
impl CallTrace {
    /// With `functions`, calls are those of these functions, by their keys, and those that were made within them.
    #[new]
    #[pyo3(signature = (profile, *, threads=None, time_ns=None, functions=None, progress=None))]
    fn new(
        py: Python<'_>,
        profile: &PyProfile,
        threads: Option<Vec<u32>>,
        time_ns: Option<(i64, i64)>,
        functions: Option<Vec<u32>>,
        progress: Progress,
    ) -> PyResult<Self> {
        let within = functions.map(|keys| Arc::new(keys.into_iter().collect::<FxHashSet<u32>>()));
        let selection = selection(threads, time_ns);
        let PyProfile { inner: profile, inputs } = profile.clone();
        let mut waiting = WaitingPython::new(progress, None);
        let surveyed = inputs.read(py, || -> Result<_, Error> {
            let survey = profile.with_trace_tables(&[], within.as_ref(), &selection, |tables| {
                TraceSurvey::of(tables, &selection, &mut |done| waiting.go_on(done))
            })?;
            Ok((survey, profile.tracks()?))
        })?;
        let (survey, tracks) = waiting.settle(surveyed)?;
        Ok(Self { profile, inputs, selection, within, survey, tracks })
    }

    /// Rows of `call_events`.
    #[getter]
    fn num_events(&self) -> u64 {
        self.survey.num_events
    }

    /// Rows of `instants`.
    #[getter]
    fn num_instants(&self) -> u64 {
        self.survey.num_instants
    }

    /// Selected slices that recordings contain.
    #[getter]
    fn num_slices(&self) -> usize {
        self.survey.spans.len()
    }

    /// Selected values of counters.
    #[getter]
    fn num_counts(&self) -> u64 {
        self.survey.num_counts
    }

    /// Time of the first event.
    #[getter]
    fn first_ns(&self) -> Option<i64> {
        self.survey.first_ns
    }

    /// Kind of the clock that times are on; None where recordings differ.
    #[getter]
    fn clock(&self) -> Option<&'static str> {
        self.profile.clock_kind()
    }

    /// Keys of the threads that have events.
    #[getter]
    fn thread_ids(&self) -> Vec<u32> {
        self.survey.thread_ids.clone()
    }

    /// Writes Chrome's trace events, with commas between them, but nothing around them. Times are relative to `zero_ns`.
    #[pyo3(signature = (out, *, zero_ns, progress=None))]
    fn write_chrome(&self, py: Python<'_>, out: Target, zero_ns: i64, progress: Progress) -> PyResult<()> {
        self.write(py, out, progress, |trace, out, go_on| chrome::write(trace, zero_ns, out, go_on))
    }

    /// Writes the members of a speedscope file that contain calls.
    #[pyo3(signature = (out, *, progress=None))]
    fn write_speedscope(&self, py: Python<'_>, out: Target, progress: Progress) -> PyResult<()> {
        self.write(py, out, progress, |trace, out, go_on| speedscope::write(trace, out, go_on))
    }

    /// Writes Perfetto's packets; for `clock` see [`ClockOption`].
    #[pyo3(signature = (out, *, clock=None, progress=None))]
    fn write_perfetto(
        &self,
        py: Python<'_>,
        out: Target,
        clock: Option<ClockOption>,
        progress: Progress,
    ) -> PyResult<()> {
        self.write(py, out, progress, |trace, out, go_on| {
            perfetto::write(trace, clock.map(trace_clock), out, go_on)
        })
    }
}

impl CallTrace {
    fn write(
        &self,
        py: Python<'_>,
        out: Target,
        progress: Progress,
        write: impl FnOnce(&Trace<'_>, Output, &mut dyn FnMut(u64) -> bool) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let out = out.open()?;
        let mut waiting = WaitingPython::new(progress, Some(self.survey.num_events));
        let written = self.inputs.read(py, || {
            let Self { profile, selection, within, survey, tracks, .. } = self;
            let functions = profile.recorded_functions()?;
            profile.with_trace_tables(&functions, within.as_ref(), selection, |tables| {
                let trace = Trace { tables, selection, survey, tracks };
                write(&trace, out, &mut |done| waiting.go_on(done))
            })
        })?;
        waiting.settle(written)
    }
}
