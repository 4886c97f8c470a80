//! Selected rows of tables and their sums, for reports that need no database.

use perfuse_engine::handles::{HandleKind, HandleSite};
use perfuse_engine::stacks::backtraces;
use perfuse_profile::Rows;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrow::{ArrowStream, batches};
use crate::call::call;
use crate::calls::selection;
use crate::errors::table_error;
use crate::inputs::ReadInputs;
use crate::profile::PyProfile;

/// Condition on the rows of a table.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct RowSelection {
    /// Keys of threads; all where None.
    threads: Option<Vec<u32>>,
    time_ns: Option<(i64, i64)>,
    /// Column of the time.
    time: String,
    /// Column of the thread.
    thread: String,
    /// Values of column `kind`; all where None.
    kinds: Option<Vec<String>>,
}

impl RowSelection {
    fn rows(self, table: &str) -> PyResult<Rows> {
        let selection = selection(self.threads, self.time_ns);
        Rows::select(table, selection, &self.time, &self.thread, self.kinds).map_err(PyValueError::new_err)
    }
}

/// Some columns of selected rows of a table, made on demand. Only rows that recordings contain: `slices` has no
/// calls. Keys of stacks are those of `Profile.table` with `stacks_of`.
#[pyfunction]
pub fn selected_rows(
    py: Python<'_>,
    profile: &PyProfile,
    table: &str,
    columns: Vec<String>,
    selection: RowSelection,
) -> PyResult<ArrowStream> {
    let rows = selection.rows(table)?;
    let indexes = columns.iter().map(|name| Ok(rows.column(name)?.0)).collect::<Result<Vec<_>, _>>();
    let indexes = indexes.map_err(PyValueError::new_err::<String>)?;
    let schema = rows.table.schema().project(&indexes).map_err(table_error)?;
    let batches =
        profile.inputs.read(py, || profile.inner.selected_rows(rows, indexes))?.map_err(table_error)?;
    Ok(ArrowStream::trying(schema.into(), profile.inputs.batches(batches)))
}

/// Number of selected rows of a table.
#[pyfunction]
pub fn count_rows(
    py: Python<'_>,
    profile: &PyProfile,
    table: &str,
    selection: RowSelection,
) -> PyResult<u64> {
    let rows = selection.rows(table)?;
    profile.inputs.read(py, || profile.inner.count_rows(&rows))?.map_err(table_error)
}

/// Number of selected rows of a table by the values of two columns: `(word, key, count)`.
#[pyfunction]
pub fn row_counts(
    py: Python<'_>,
    profile: &PyProfile,
    table: &str,
    columns: (String, String),
    selection: RowSelection,
) -> PyResult<Vec<(String, Option<u32>, u64)>> {
    let rows = selection.rows(table)?;
    let name = |column: &str| rows.column(column).map_err(PyValueError::new_err);
    let (word, key) = (name(&columns.0)?.1, name(&columns.1)?.1);
    profile.inputs.read(py, || profile.inner.row_counts(&rows, word, key))?.map_err(table_error)
}

/// `(kind, created, destroyed, left, most alive)`
type KindRow = (String, u64, u64, u64, u64);
/// `(kind, stack, created, left)`
type SiteRow = (String, Option<u32>, u64, u64);

/// Handles created or destroyed by some threads in a time range: by kind, and with `stacks` by kind and stack.
#[pyfunction]
#[pyo3(signature = (profile, *, stacks, threads=None, time_ns=None))]
pub fn handle_sums(
    py: Python<'_>,
    profile: &PyProfile,
    stacks: bool,
    threads: Option<Vec<u32>>,
    time_ns: Option<(i64, i64)>,
) -> PyResult<(Vec<KindRow>, Vec<SiteRow>)> {
    let selection = selection(threads, time_ns);
    let (kinds, sites) =
        profile.inputs.read(py, || profile.inner.handle_sums(&selection, stacks))?.map_err(table_error)?;
    let kind = |it: HandleKind| (it.name, it.num_created, it.num_destroyed, it.num_left, it.max_alive);
    let site = |it: HandleSite| (it.kind, it.stack_id, it.num_created, it.num_left);
    Ok((kinds.into_iter().map(kind).collect(), sites.into_iter().map(site).collect()))
}

/// Keys of the functions of some stacks, outermost first, from tables `stacks` and `frames`; None for unknown functions.
#[pyfunction]
#[pyo3(name = "backtraces")]
pub fn py_backtraces(
    py: Python<'_>,
    stacks: &Bound<'_, PyAny>,
    frames: &Bound<'_, PyAny>,
    stack_ids: Vec<u32>,
) -> PyResult<Vec<Vec<Option<u32>>>> {
    let (stacks, frames) = (batches(stacks)?, batches(frames)?);
    call(py, || backtraces(&stacks, &frames, &stack_ids))?.map_err(table_error)
}
