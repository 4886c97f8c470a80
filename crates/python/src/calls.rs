//! Call traces: costs of calls, and traces as rows of table `samples`.

use arrow_array::RecordBatch;
use perfuse_engine::calls::{CallGrouping, Options, Rank, Selection};
use perfuse_profile::CallCosts;
use perfuse_tables::samples;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrow::ArrowStream;
use crate::choice::choice;
use crate::errors::table_error;
use crate::inputs::ReadInputs;
use crate::profile::PyProfile;

/// Table `samples` of some threads (`thread_id`) and a time range. Rows of call traces are the time that threads spent in each
/// call path within the range; rows of allocations are what was allocated in it.
#[pyfunction]
#[pyo3(signature = (profile, *, threads=None, time_ns=None))]
pub fn selected_samples(
    py: Python<'_>,
    profile: &PyProfile,
    threads: Option<Vec<u32>>,
    time_ns: Option<(i64, i64)>,
) -> PyResult<ArrowStream> {
    let selection = selection(threads, time_ns);
    let batches = profile.inputs.read(py, || profile.inner.selected_samples(&selection))?;
    Ok(ArrowStream::new(samples::SPEC.schema(), batches.map_err(table_error)?.into_iter()))
}

/// Threads and time of a request; the engine needs sorted keys.
pub fn selection(threads: Option<Vec<u32>>, time_ns: Option<(i64, i64)>) -> Selection {
    let threads = threads.map(|mut threads| {
        threads.sort_unstable();
        threads
    });
    Selection { threads, time_ns: time_ns.map(|(start, end)| start..end) }
}

/// Costs of the calls of a profile.
#[pyclass(frozen, name = "CallStatistics", module = "perfuse._core")]
pub struct PyCallStatistics(CallCosts);

#[pymethods]
impl PyCallStatistics {
    /// A row per function, and per thread or processor where costs are split by these.
    fn functions(&self) -> ArrowStream {
        ArrowStream::of(self.0.functions.clone())
    }

    /// A row per caller and callee.
    fn edges(&self) -> PyResult<ArrowStream> {
        requested(self.0.edges.as_ref(), "edges")
    }

    /// A row per call path and thread.
    fn paths(&self) -> PyResult<ArrowStream> {
        requested(self.0.paths.as_ref(), "paths")
    }

    /// A row per thread.
    fn threads(&self) -> ArrowStream {
        ArrowStream::of(self.0.threads.clone())
    }

    /// A row per thread and pair of processors it moved between.
    fn migrations(&self) -> ArrowStream {
        ArrowStream::of(self.0.migrations.clone())
    }

    /// A row: numbers of all calls, time of the first and the last event, and the unit of times.
    fn totals(&self) -> ArrowStream {
        ArrowStream::of(self.0.totals.clone())
    }
}

fn requested(rows: Option<&RecordBatch>, what: &str) -> PyResult<ArrowStream> {
    match rows {
        Some(rows) => Ok(ArrowStream::of(rows.clone())),
        None => Err(PyValueError::new_err(format!("{what} were not asked for: {what}=True"))),
    }
}

/// Costs of the calls of a profile, of some threads (`thread_id`), functions (`function_id`) and a time range.
#[pyfunction]
#[pyo3(signature = (
    profile, *, by="function", rank="nearest", threads=None, time_ns=None, functions=None, recursive_only=false,
    edges=false, paths=false
))]
#[allow(clippy::too_many_arguments, reason = "one argument per option")]
pub fn call_statistics(
    py: Python<'_>,
    profile: &PyProfile,
    by: &str,
    rank: &str,
    threads: Option<Vec<u32>>,
    time_ns: Option<(i64, i64)>,
    functions: Option<Vec<u32>>,
    recursive_only: bool,
    edges: bool,
    paths: bool,
) -> PyResult<PyCallStatistics> {
    let (by, rank) = (choice("by", by, &CallGrouping::ALL)?, choice("rank", rank, &Rank::ALL)?);
    let functions = functions.map(|mut functions| {
        functions.sort_unstable();
        functions
    });
    let selection = selection(threads, time_ns);
    let options = Options { selection, by, rank, functions, recursive_only, edges, ..Options::default() };
    let costs = profile.inputs.read(py, || profile.inner.call_costs(&options, paths))?;
    costs.map(PyCallStatistics).map_err(table_error)
}
