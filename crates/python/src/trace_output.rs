//! Call traces written for timeline viewers, while Python waits without its lock.

use std::ops::Range;

use perfuse_engine::calls::Selection;
use perfuse_engine::trace_output::{
    Batches, Error, Survey, Tables, Trace, Tracks, chrome, perfetto, speedscope,
};
use perfuse_tables::access::ColumnError;
use pyo3::prelude::*;

use crate::fusion::Fusion;
use crate::output::{Output, Target};
use crate::read_ahead::ReadAhead;
use crate::waiting::Waiting;

/// The calls and instants of a fusion, looked over and ready to be written.
#[pyclass(frozen, module = "perfuse._core")]
pub struct CallTrace {
    fusion: Py<Fusion>,
    selection: Selection,
    survey: Survey,
    tracks: Tracks,
}

#[pymethods]
impl CallTrace {
    #[new]
    #[pyo3(signature = (fusion, *, threads=None, time_ns=None, progress=None))]
    fn new(
        py: Python<'_>,
        fusion: Py<Fusion>,
        threads: Option<Vec<u32>>,
        time_ns: Option<(i64, i64)>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let threads = threads.map(|mut ids| {
            ids.sort_unstable();
            ids
        });
        let time_ns = time_ns.map(|(start, end)| Range { start, end });
        let selection = Selection { threads, time_ns };
        let mut waiting = Waiting::new(progress, None);
        let looked_over = py.detach(|| -> Result<_, Error> {
            let fusion = fusion.get();
            let (call_events, instants) = (stream(fusion, "call_events"), stream(fusion, "instants"));
            let tables = Tables { call_events: &call_events, instants: &instants, functions: &[] };
            let survey = Survey::of(tables, &selection, &mut |done| waiting.go_on(done))?;
            Ok((survey, fusion.tracks()?))
        });
        let (survey, tracks) = waiting.settle(looked_over)?;
        Ok(Self { fusion, selection, survey, tracks })
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

    /// Time of the first event.
    #[getter]
    fn first_ns(&self) -> Option<i64> {
        self.survey.first_ns
    }

    /// The kind of clock that times are of; None where recordings differ.
    #[getter]
    fn clock(&self) -> Option<String> {
        self.fusion.get().clock_kind().map(str::to_owned)
    }

    /// Keys of the threads that have events.
    #[getter]
    fn thread_ids(&self) -> Vec<u32> {
        self.survey.thread_ids.clone()
    }

    /// Writes Chrome's trace events, with commas between them, but nothing around them.
    #[pyo3(signature = (out, *, progress=None))]
    fn write_chrome(&self, py: Python<'_>, out: Target, progress: Option<Py<PyAny>>) -> PyResult<()> {
        self.write(py, out, progress, |trace, out, go_on| chrome::write(trace, out, go_on))
    }

    /// Writes the members of a speedscope file that are about calls.
    #[pyo3(signature = (out, *, progress=None))]
    fn write_speedscope(&self, py: Python<'_>, out: Target, progress: Option<Py<PyAny>>) -> PyResult<()> {
        self.write(py, out, progress, |trace, out, go_on| speedscope::write(trace, out, go_on))
    }

    /// Writes Perfetto's packets. `clock` is a number of its `BuiltinClock`.
    #[pyo3(signature = (out, *, clock=None, progress=None))]
    fn write_perfetto(
        &self,
        py: Python<'_>,
        out: Target,
        clock: Option<u32>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        self.write(py, out, progress, |trace, out, go_on| perfetto::write(trace, clock, out, go_on))
    }
}

impl CallTrace {
    fn write(
        &self,
        py: Python<'_>,
        out: Target,
        progress: Option<Py<PyAny>>,
        write: impl FnOnce(&Trace<'_>, Output, &mut dyn FnMut(u64) -> bool) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let out = out.open()?;
        let mut waiting = Waiting::new(progress, Some(self.survey.num_events));
        let written = py.detach(|| {
            let fusion = self.fusion.get();
            let (call_events, instants) = (stream(fusion, "call_events"), stream(fusion, "instants"));
            let functions = fusion.with_names("functions")?;
            let tables = Tables { call_events: &call_events, instants: &instants, functions: &functions };
            let Self { selection, survey, tracks, .. } = self;
            let trace = Trace { tables, selection, survey, tracks };
            write(&trace, out, &mut |done| waiting.go_on(done))
        });
        waiting.settle(written)
    }
}

fn stream(fusion: &Fusion, name: &'static str) -> impl Fn() -> Batches {
    move || Box::new(ReadAhead::new(fusion.stream(name, true)))
}

impl Fusion {
    /// The threads met so far.
    fn tracks(&self) -> Result<Tracks, ColumnError> {
        let (processes, threads) = self.known_threads();
        Tracks::of(&processes, &threads)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CallTrace>()
}
