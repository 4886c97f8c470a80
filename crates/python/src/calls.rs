//! Call traces: what calls cost, each call as a slice, and traces as rows of the tables of samples.

use arrow_array::RecordBatch;
use perfuse_engine::calls::{
    Account, CallGrouping, CallPaths, CallTotals, FirstKeys, Options, PathRow, Rank, Sampled, Selection,
    account, path_rows, slices,
};
use perfuse_formats::TableRequest;
use perfuse_tables::access::ColumnError;
use perfuse_tables::samples;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrow::ArrowStream;
use crate::errors::table_error;
use crate::fusion::Fusion;
use crate::read_ahead::ReadAhead;

/// The call traces of a fusion as if they had been sampled.
pub struct Traced {
    paths: CallPaths,
    first: FirstKeys,
    /// Frames and stacks of every call path.
    pub sampled: Sampled,
    /// What threads spent in them.
    pub samples: RecordBatch,
}

impl Fusion {
    /// Whether any recording tells of calls.
    pub fn has_traces(&self) -> bool {
        let mut tables = self.placed.iter().flat_map(|placed| placed.recording().format().tables);
        tables.any(|table| ["call_events", "call_sums"].contains(table))
    }

    /// All traces as samples, behind those that were taken.
    pub fn traced(&self) -> Result<Option<&Traced>, ColumnError> {
        if !self.has_traces() {
            return Ok(None);
        }
        let traced = self.traced.get_or_init(|| {
            let Account { paths, path_rows, .. } =
                self.account(&Options { functions: Some(Vec::new()), ..Options::default() })?;
            self.as_samples(paths, &path_rows)
        });
        traced.as_ref().map(Some).map_err(|error| *error)
    }

    fn as_samples(&self, paths: CallPaths, rows: &[PathRow]) -> Result<Traced, ColumnError> {
        let keys = self.keys_after_join()?;
        let first = FirstKeys { frame: keys.frame, stack: keys.stack, sample: keys.sample };
        let sampled = Sampled::of(&paths, first);
        Ok(Traced { first, sampled, samples: Sampled::samples(rows, first), paths })
    }

    /// Decoded in another thread while the stacks are rebuilt in this one.
    fn call_events(&self) -> ReadAhead {
        ReadAhead::new(self.stream("call_events", false))
    }

    fn account(&self, options: &Options) -> Result<Account, ColumnError> {
        account(|| self.call_segments(), self.stream("call_sums", false), options)
    }

    /// Table `slices`: those that recordings have themselves, then the calls.
    pub fn slices(&self) -> Result<Box<dyn Iterator<Item = RecordBatch> + Send>, ColumnError> {
        let calls = slices(|| self.call_events(), self.after.slice)?;
        Ok(Box::new(self.stream("slices", false).chain(calls)))
    }
}

/// Table `samples`, only what is of some threads (`thread_id`) and a time. Of call traces it is what threads spent in each path
/// within that time; of allocations, what was allocated then.
#[pyfunction]
#[pyo3(signature = (fusion, *, threads=None, time_ns=None))]
fn selected_samples(
    py: Python<'_>,
    fusion: &Fusion,
    threads: Option<Vec<u32>>,
    time_ns: Option<(i64, i64)>,
) -> PyResult<ArrowStream> {
    let selection = selection(threads, time_ns);
    let batches = py.detach(|| {
        let own = fusion.collect("samples", &TableRequest::default());
        let taken = own.iter().chain(&fusion.joined()?.samples).map(|batch| selection.samples(batch));
        let mut batches = taken.collect::<Result<Vec<_>, _>>()?;
        if let Some(traced) = fusion.traced()? {
            let sums = fusion.stream("call_sums", false);
            let rows = path_rows(|| fusion.call_segments(), sums, &selection, &traced.paths)?;
            batches.push(Sampled::samples(&rows, traced.first));
        }
        batches.extend(fusion.allocated_samples(Some(&selection))?);
        Ok::<_, ColumnError>(batches)
    });
    Ok(ArrowStream::new(samples::SPEC.schema(), batches.map_err(table_error)?.into_iter()))
}

pub fn selection(threads: Option<Vec<u32>>, time_ns: Option<(i64, i64)>) -> Selection {
    let threads = threads.map(|mut threads| {
        threads.sort_unstable();
        threads
    });
    Selection { threads, time_ns: time_ns.map(|(start, end)| start..end) }
}

/// What the calls of a profile cost.
#[pyclass(frozen, module = "perfuse._core")]
pub struct CallStatistics {
    functions: RecordBatch,
    edges: Option<RecordBatch>,
    paths: Option<RecordBatch>,
    threads: RecordBatch,
    migrations: RecordBatch,
    totals: CallTotals,
}

#[pymethods]
impl CallStatistics {
    /// One row a function, and thread or processor where they were asked for by these.
    fn functions(&self) -> ArrowStream {
        ArrowStream::of(self.functions.clone())
    }

    /// One row a caller and callee.
    fn edges(&self) -> PyResult<ArrowStream> {
        asked_for(self.edges.as_ref(), "edges")
    }

    /// One row a call path and thread.
    fn paths(&self) -> PyResult<ArrowStream> {
        asked_for(self.paths.as_ref(), "paths")
    }

    /// One row a thread.
    fn threads(&self) -> ArrowStream {
        ArrowStream::of(self.threads.clone())
    }

    /// One row a thread and pair of processors it went between.
    fn migrations(&self) -> ArrowStream {
        ArrowStream::of(self.migrations.clone())
    }

    /// Rows of `call_events`.
    #[getter]
    fn num_events(&self) -> u64 {
        self.totals.num_events
    }

    /// Calls.
    #[getter]
    fn num_calls(&self) -> u64 {
        self.totals.num_calls
    }

    /// Calls left without an exit.
    #[getter]
    fn num_unwound(&self) -> u64 {
        self.totals.counts.num_unwound
    }

    /// Calls that ended by jumping into the next function.
    #[getter]
    fn num_tail_calls(&self) -> u64 {
        self.totals.counts.num_tail_calls
    }

    /// Calls still open at the end.
    #[getter]
    fn num_truncated(&self) -> u64 {
        self.totals.counts.num_truncated
    }

    /// Calls already open at the start.
    #[getter]
    fn num_lost(&self) -> u64 {
        self.totals.counts.num_lost
    }

    /// Exits in the middle of other calls that belong to no entry.
    #[getter]
    fn num_orphans(&self) -> u64 {
        self.totals.counts.num_orphans
    }

    /// Time of the first and the last event.
    #[getter]
    fn span_ns(&self) -> Option<(i64, i64)> {
        self.totals.span_ns
    }
}

fn asked_for(rows: Option<&RecordBatch>, what: &str) -> PyResult<ArrowStream> {
    match rows {
        Some(rows) => Ok(ArrowStream::of(rows.clone())),
        None => Err(PyValueError::new_err(format!("{what} were not asked for: {what}=True"))),
    }
}

/// Accounts for the calls of a fusion's traces, of some threads (`thread_id`), functions (`function_id`) and a time.
#[pyfunction]
#[pyo3(signature = (
    fusion, *, by="function", rank="nearest", threads=None, time_ns=None, functions=None, recursive_only=false,
    edges=false, paths=false
))]
#[allow(clippy::too_many_arguments, reason = "one argument an option")]
fn call_statistics(
    py: Python<'_>,
    fusion: &Fusion,
    by: &str,
    rank: &str,
    threads: Option<Vec<u32>>,
    time_ns: Option<(i64, i64)>,
    functions: Option<Vec<u32>>,
    recursive_only: bool,
    edges: bool,
    paths: bool,
) -> PyResult<CallStatistics> {
    let (by, rank) = (chosen("by", by, &CallGrouping::ALL)?, chosen("rank", rank, &Rank::ALL)?);
    let functions = functions.map(|mut functions| {
        functions.sort_unstable();
        functions
    });
    let is_whole = threads.is_none() && time_ns.is_none();
    let selection = selection(threads, time_ns);
    let options = Options { selection, by, rank, functions, recursive_only, edges };
    let told = py.detach(|| {
        let Account { functions, edges, threads, migrations, paths: all, path_rows, totals } =
            fusion.account(&options)?;
        let paths = paths.then(|| all.batch(&path_rows));
        if is_whole && fusion.has_traces() {
            // What tables of samples are made of, without another pass.
            fusion.traced.get_or_init(|| fusion.as_samples(all, &path_rows));
        }
        Ok::<_, ColumnError>(CallStatistics { functions, edges, paths, threads, migrations, totals })
    });
    told.map_err(table_error)
}

pub fn chosen<T: Copy>(option: &str, name: &str, all: &[(&str, T)]) -> PyResult<T> {
    match all.iter().find(|(known, _)| *known == name) {
        Some(&(_, value)) => Ok(value),
        None => {
            let known: Vec<_> = all.iter().map(|(known, _)| *known).collect();
            Err(PyValueError::new_err(format!("{option} is one of {}, not {name:?}", known.join(", "))))
        }
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<CallStatistics>()?;
    module.add_function(wrap_pyfunction!(selected_samples, module)?)?;
    module.add_function(wrap_pyfunction!(call_statistics, module)?)
}
