//! Call traces written for timeline viewers, while Python waits without its lock.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::Int32Type;
use perfuse_engine::calls::Selection;
use perfuse_formats::{Placement, TableRequest};
use perfuse_tables::access::{ColumnError, numbers};
use perfuse_writers::{Batches, Error, Survey, Tables, Trace, Tracks, chrome, perfetto, speedscope};
use pyo3::prelude::*;

use crate::fusion::Fusion;
use crate::output::{Output, Target};
use crate::read_ahead::ReadAhead;
use crate::waiting::Waiting;

/// The calls, slices, counters and instants of a fusion, looked over and ready to be written.
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
            let survey = fusion
                .with_tables(&[], |tables| Survey::of(tables, &selection, &mut |done| waiting.go_on(done)))?;
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

    /// Slices that recordings have themselves and are selected.
    #[getter]
    fn num_slices(&self) -> usize {
        self.survey.spans.len()
    }

    /// Values of counters that are selected.
    #[getter]
    fn num_counts(&self) -> u64 {
        self.survey.num_counts
    }

    /// Whether there is nothing to be written.
    #[getter]
    fn is_empty(&self) -> bool {
        self.survey.is_empty()
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
            let functions = fusion.with_names("functions")?;
            let Self { selection, survey, tracks, .. } = self;
            fusion.with_tables(&functions, |tables| {
                let trace = Trace { tables, selection, survey, tracks };
                write(&trace, out, &mut |done| waiting.go_on(done))
            })
        });
        waiting.settle(written)
    }
}

fn stream(fusion: &Fusion, name: &'static str) -> impl Fn() -> Batches {
    move || Box::new(ReadAhead::new(fusion.stream(name, true)))
}

impl Fusion {
    /// Does something with the tables of which traces are written.
    fn with_tables<T>(
        &self,
        functions: &[RecordBatch],
        then: impl FnOnce(Tables<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (call_events, instants) = (stream(self, "call_events"), stream(self, "instants"));
        let (slices, counter_samples) = (stream(self, "slices"), stream(self, "counter_samples"));
        let counters = self.collect("counters", &TableRequest::default());
        let pids = self.counted_pids()?;
        then(Tables {
            call_events: &call_events,
            instants: &instants,
            slices: &slices,
            counter_samples: &counter_samples,
            counters: &counters,
            pids: &pids,
            functions,
        })
    }

    /// The process of each recording that has counters, by its key: the one it tells of by itself.
    fn counted_pids(&self) -> Result<BTreeMap<u32, i32>, ColumnError> {
        let mut pids = BTreeMap::new();
        for placed in &self.placed {
            if !placed.recording().fills("counters") {
                continue;
            }
            let alone = Placement { identities: Arc::default(), ..placed.placement.clone() };
            let batches = placed.recording().table("processes", &alone, &TableRequest::default());
            for batch in batches.into_iter().flatten() {
                if let Some(&pid) = numbers::<Int32Type>(&batch, "pid")?.values().first() {
                    pids.insert(placed.placement.source_id, pid);
                }
            }
        }
        Ok(pids)
    }

    /// The threads met so far.
    fn tracks(&self) -> Result<Tracks, ColumnError> {
        let (processes, threads) = self.known_threads();
        Tracks::of(&processes, &threads)
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CallTrace>()
}
