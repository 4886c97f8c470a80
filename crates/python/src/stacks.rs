//! Call trees: stacks folded in the engine, read out as Arrow.

use std::collections::HashMap;

use perfuse_engine::stacks::{
    self, CallTreeOptions, CodeOrigin, LineCount, SampledEvent, StackTables, WeightGrouping, WeightOrder,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::{ArrowStream, batches};
use crate::call::call;
use crate::choice::choice;
use crate::errors::{os_error, value_error};
use crate::output::Target;

/// Samples folded by function.
#[pyclass(frozen, name = "CallTree", module = "perfuse._core")]
pub struct PyCallTree(stacks::CallTree);

#[pymethods]
impl PyCallTree {
    /// Weight of the samples in the tree.
    #[getter]
    fn total_weight(&self) -> u64 {
        self.0.total_weight()
    }

    /// Number of samples in the tree.
    #[getter]
    fn total_samples(&self) -> u64 {
        self.0.total_samples()
    }

    /// Number of nodes.
    fn __len__(&self) -> usize {
        self.0.nodes().len()
    }

    /// One row a node, in preorder.
    fn nodes(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        Ok(ArrowStream::of(call(py, || self.0.nodes_batch())?))
    }

    /// One row a symbol.
    fn symbols(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        Ok(ArrowStream::of(call(py, || self.0.symbols_batch())?))
    }

    /// The nodes as the viewer reads them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = call(py, || self.0.to_bytes())?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Self and total weight of each function, module and so on.
    fn weights(&self, py: Python<'_>, by: &str) -> PyResult<ArrowStream> {
        let by = choice("by", by, &WeightGrouping::ALL)?;
        Ok(ArrowStream::of(call(py, || self.0.weights(by))?))
    }

    /// Number of functions.
    fn num_functions(&self, py: Python<'_>) -> PyResult<usize> {
        call(py, || self.0.num_functions())
    }

    /// The heaviest functions with their tiers, at most `limit`.
    #[pyo3(signature = (order, limit=None))]
    fn heaviest_functions(&self, py: Python<'_>, order: &str, limit: Option<usize>) -> PyResult<ArrowStream> {
        let order = choice("order", order, &WeightOrder::ALL)?;
        Ok(ArrowStream::of(call(py, || self.0.heaviest_functions(order, limit))?))
    }

    /// Self weight by module, or else by tier.
    fn group_weights(&self, py: Python<'_>, by_module: bool) -> PyResult<ArrowStream> {
        Ok(ArrowStream::of(call(py, || self.0.group_weights(by_module))?))
    }

    /// Writes collapsed stacks. `names` are those of the symbols, `roots` come first in stacks of a thread.
    fn write_collapsed(
        &self,
        py: Python<'_>,
        out: Target,
        names: Vec<String>,
        roots: HashMap<u32, Option<String>>,
        counted: &str,
    ) -> PyResult<()> {
        let counted = choice("counted", counted, &LineCount::ALL)?;
        let (roots, out) = (roots.into_iter().collect(), out.open()?);
        call(py, || self.0.write_collapsed(&names, &roots, counted, out))?.map_err(os_error)
    }

    /// Frames without a name: reason, module, number, samples that have one innermost.
    fn unnamed(&self, py: Python<'_>) -> PyResult<Vec<(String, String, u64, u64)>> {
        let rows = call(py, || self.0.unnamed())?;
        Ok(rows.into_iter().map(|one| (one.reason, one.module, one.frames, one.leaf_samples)).collect())
    }
}

/// Folds the samples of a profile's tables, which are looked up by name, into a call tree.
#[pyfunction]
#[pyo3(signature = (tables, *, inverted=false, split_threads=false, merge_recursion=false, threads=None, processes=None, event=None, time_ns=None, min_share=0.0, by_line=false, counted_event=None))]
#[allow(clippy::too_many_arguments, reason = "one argument an option")]
pub fn call_tree(
    py: Python<'_>,
    tables: &Bound<'_, PyAny>,
    inverted: bool,
    split_threads: bool,
    merge_recursion: bool,
    threads: Option<Vec<u32>>,
    processes: Option<Vec<u32>>,
    event: Option<String>,
    time_ns: Option<(i64, i64)>,
    min_share: f64,
    by_line: bool,
    counted_event: Option<String>,
) -> PyResult<PyCallTree> {
    let tables = stack_tables(tables)?;
    let time_ns = time_ns.map(|(start, end)| start..end);
    let options = CallTreeOptions {
        inverted,
        split_threads,
        merge_recursion,
        threads,
        processes,
        event,
        time_ns,
        min_share,
        by_line,
        counted_event,
    };
    let tree = call(py, || stacks::call_tree(&tables, &options))?;
    tree.map(PyCallTree).map_err(value_error)
}

/// Origins of code, each with its tiers and kinds as tables call them, in lower case.
#[pyfunction]
pub fn tiers_of_origins() -> Vec<(&'static str, Vec<&'static str>)> {
    CodeOrigin::ALL.iter().map(|origin| (origin.name(), origin.tiers_and_kinds().collect())).collect()
}

/// What each frame of a profile's tables is called, and whether its path can be one of its function.
#[pyfunction]
pub fn frame_names(py: Python<'_>, tables: &Bound<'_, PyAny>) -> PyResult<ArrowStream> {
    let table = |name: &str| batches(&tables.get_item(name)?);
    let tables = StackTables {
        frames: table("frames")?,
        functions: table("functions")?,
        code_objects: table("code_objects")?,
        modules: table("modules")?,
        mappings: table("mappings")?,
        ..StackTables::default()
    };
    let names = call(py, || stacks::frame_names(&tables))?;
    names.map(ArrowStream::of).map_err(value_error)
}

/// The tables that stacks are made of, looked up by name.
pub fn stack_tables(tables: &Bound<'_, PyAny>) -> PyResult<StackTables> {
    let table = |name: &str| batches(&tables.get_item(name)?);
    Ok(StackTables {
        samples: table("samples")?,
        stacks: table("stacks")?,
        frames: table("frames")?,
        functions: table("functions")?,
        code_objects: table("code_objects")?,
        modules: table("modules")?,
        mappings: table("mappings")?,
        threads: table("threads")?,
    })
}

/// Name, unit, number, weight, times of the first and the last.
type EventRow = (String, String, u64, u128, i64, i64);

/// The events of `samples`.
#[pyfunction]
pub fn sampled_events(py: Python<'_>, samples: &Bound<'_, PyAny>) -> PyResult<Vec<EventRow>> {
    let samples = batches(samples)?;
    let events = call(py, || stacks::sampled_events(&samples))?;
    let events = events.map_err(value_error)?;
    let row = |one: SampledEvent| (one.name, one.unit, one.samples, one.weight, one.first_ns, one.last_ns);
    Ok(events.into_iter().map(row).collect())
}
