//! Rows of a table that are selected, and what some add up to: what reports ask without a database.

use perfuse_engine::handles::{HandleKind, HandleSite, handles};
use perfuse_engine::selected::{Wanted, counts};
use perfuse_engine::stacks::backtraces;
use perfuse_formats::TableRequest;
use perfuse_tables::TableSpec;
use perfuse_tables::access::ColumnError;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use crate::arrow::{ArrowStream, batches};
use crate::calls::selection;
use crate::errors::table_error;
use crate::fusion::Fusion;

/// Tables whose rows have stacks of their own.
const STACKED: [&str; 3] = ["exceptions", "lock_events", "gc_handles"];

/// What is selected of a table.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Chosen {
    /// Keys of threads; all where none.
    threads: Option<Vec<u32>>,
    time_ns: Option<(i64, i64)>,
    /// Column of the time.
    time: String,
    /// Column of the thread.
    thread: String,
    /// Words in column `kind`; all where none.
    kinds: Option<Vec<String>>,
}

impl Chosen {
    fn wanted(self, spec: &'static TableSpec) -> PyResult<Wanted> {
        let selection = selection(self.threads, self.time_ns);
        let time = if selection.time_ns.is_some() { column(spec, &self.time)?.1 } else { "" };
        let thread = if selection.threads.is_some() { column(spec, &self.thread)?.1 } else { "" };
        Ok(Wanted { selection, time, thread, kinds: self.kinds })
    }
}

fn spec(table: &str) -> PyResult<&'static TableSpec> {
    perfuse_tables::table(table).ok_or_else(|| PyKeyError::new_err(format!("no table {table}")))
}

fn column(spec: &'static TableSpec, name: &str) -> PyResult<(usize, &'static str)> {
    let found = spec.columns.iter().enumerate().find(|(_, column)| column.name == name);
    let found = found.map(|(at, column)| (at, column.name));
    found.ok_or_else(|| PyValueError::new_err(format!("no column {name} in {}", spec.name)))
}

/// A request of a table with stacks of its own, or without any.
pub fn request(table: &str, with_stacks: bool) -> TableRequest {
    let stacks_of = STACKED.iter().find(|name| with_stacks && **name == table).copied();
    TableRequest { no_stacks: !with_stacks, stacks_of, ..TableRequest::default() }
}

/// Some columns of those rows of a table that are selected, made as they are pulled. Only what recordings fill by themselves:
/// `slices` has no calls. Keys of stacks are those of `Fusion.table` with `stacks_of`.
#[pyfunction]
fn selected_rows(
    py: Python<'_>,
    fusion: &Fusion,
    table: &str,
    columns: Vec<String>,
    chosen: Chosen,
) -> PyResult<ArrowStream> {
    let spec = spec(table)?;
    let wanted = chosen.wanted(spec)?;
    let picked = columns.iter().map(|name| Ok(column(spec, name)?.0)).collect::<PyResult<Vec<_>>>()?;
    let schema = spec.schema().project(&picked).map_err(table_error)?;
    let request = request(table, columns.iter().any(|name| name.ends_with("stack_id")));
    let batches = py.detach(|| fusion.own_rows(spec.name, request)).map_err(table_error)?;
    let taken = batches.map(move |batch| wanted.take(&batch, &picked));
    Ok(ArrowStream::trying(schema.into(), taken))
}

/// How many rows of a table are selected.
#[pyfunction]
fn count_rows(py: Python<'_>, fusion: &Fusion, table: &str, chosen: Chosen) -> PyResult<u64> {
    let spec = spec(table)?;
    let wanted = chosen.wanted(spec)?;
    let count = || {
        let is_whole = wanted.selection.threads.is_none() && wanted.selection.time_ns.is_none();
        if is_whole
            && wanted.kinds.is_none()
            && let Some(known) = fusion.known_rows(spec.name)
        {
            return Ok(known);
        }
        fusion.own_rows(spec.name, request(table, false))?.map(|batch| wanted.count(&batch)).sum()
    };
    py.detach(count).map_err(table_error)
}

/// How many selected rows of a table have the same word and key, in these columns: `(word, key, count)`.
#[pyfunction]
fn row_counts(
    py: Python<'_>,
    fusion: &Fusion,
    table: &str,
    columns: (String, String),
    chosen: Chosen,
) -> PyResult<Vec<(String, Option<u32>, u64)>> {
    let spec = spec(table)?;
    let wanted = chosen.wanted(spec)?;
    let (word, key) = (column(spec, &columns.0)?.1, column(spec, &columns.1)?.1);
    let request = request(table, key.ends_with("stack_id"));
    py.detach(|| counts(fusion.own_rows(spec.name, request)?, &wanted, word, key)).map_err(table_error)
}

/// `(kind, created, destroyed, left, most alive)`
type KindRow = (String, u64, u64, u64, u64);
/// `(kind, stack, created, left)`
type SiteRow = (String, Option<u32>, u64, u64);

/// Handles made or freed by some threads in a time: by kind, and, where stacks are looked at, by kind and stack.
#[pyfunction]
#[pyo3(signature = (fusion, *, stacks, threads=None, time_ns=None))]
fn handle_sums(
    py: Python<'_>,
    fusion: &Fusion,
    stacks: bool,
    threads: Option<Vec<u32>>,
    time_ns: Option<(i64, i64)>,
) -> PyResult<(Vec<KindRow>, Vec<SiteRow>)> {
    let selection = selection(threads, time_ns);
    let told =
        py.detach(|| handles(fusion.own_rows("gc_handles", request("gc_handles", stacks))?, &selection));
    let (kinds, sites) = told.map_err(table_error)?;
    let kind = |it: HandleKind| (it.name, it.num_created, it.num_destroyed, it.num_left, it.max_alive);
    let site = |it: HandleSite| (it.kind, it.stack_id, it.num_created, it.num_left);
    Ok((kinds.into_iter().map(kind).collect(), sites.into_iter().map(site).collect()))
}

/// Keys of the functions of some stacks, outermost first, of tables `stacks` and `frames`; None for functions not known.
#[pyfunction]
#[pyo3(name = "backtraces")]
fn py_backtraces(
    py: Python<'_>,
    stacks: &Bound<'_, PyAny>,
    frames: &Bound<'_, PyAny>,
    wanted: Vec<u32>,
) -> PyResult<Vec<Vec<Option<u32>>>> {
    let (stacks, frames) = (batches(stacks)?, batches(frames)?);
    py.detach(|| backtraces(&stacks, &frames, &wanted)).map_err(table_error)
}

impl Fusion {
    /// Rows that recordings fill by themselves.
    fn own_rows(
        &self,
        table: &'static str,
        request: TableRequest,
    ) -> Result<impl Iterator<Item = arrow_array::RecordBatch> + Send + 'static, ColumnError> {
        self.settle_keys()?;
        Ok(self.recordings().rows(table, request))
    }

    fn known_rows(&self, table: &str) -> Option<u64> {
        let filling = self.placed.iter().map(|placed| placed.recording()).filter(|it| it.fills(table));
        filling.map(|recording| recording.num_rows(table)).sum()
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(selected_rows, module)?)?;
    module.add_function(wrap_pyfunction!(count_rows, module)?)?;
    module.add_function(wrap_pyfunction!(row_counts, module)?)?;
    module.add_function(wrap_pyfunction!(handle_sums, module)?)?;
    module.add_function(wrap_pyfunction!(py_backtraces, module)?)
}
