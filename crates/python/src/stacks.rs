//! Call trees: stacks folded in the engine, read out as Arrow.

use std::collections::HashMap;

use perfuse_engine::stacks::{self, CallTreeOptions, LineCount, SampledEvent, StackTables, WeightGrouping};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::{ArrowStream, batches};
use crate::calls::choice;

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
    fn nodes(&self, py: Python<'_>) -> ArrowStream {
        ArrowStream::of(py.detach(|| self.0.nodes_batch()))
    }

    /// One row a symbol.
    fn symbols(&self, py: Python<'_>) -> ArrowStream {
        ArrowStream::of(py.detach(|| self.0.symbols_batch()))
    }

    /// The nodes as the viewer reads them.
    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| self.0.to_bytes());
        PyBytes::new(py, &bytes)
    }

    /// Self and total weight of each function, module and so on.
    fn weights(&self, py: Python<'_>, by: &str) -> PyResult<ArrowStream> {
        let by = choice("by", by, &WeightGrouping::ALL)?;
        Ok(ArrowStream::of(py.detach(|| self.0.weights(by))))
    }

    /// Collapsed stacks. `names` are those of the symbols, `roots` come first in stacks of a thread.
    fn collapsed<'py>(
        &self,
        py: Python<'py>,
        names: Vec<String>,
        roots: HashMap<u32, Option<String>>,
        counted: &str,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let counted = choice("counted", counted, &LineCount::ALL)?;
        let roots = roots.into_iter().collect();
        let text = py.detach(|| self.0.collapsed(&names, &roots, counted));
        Ok(PyBytes::new(py, &text))
    }

    /// Frames without a name: reason, module, number, samples that have one innermost.
    fn unnamed(&self, py: Python<'_>) -> Vec<(String, String, u64, u64)> {
        let rows = py.detach(|| self.0.unnamed());
        rows.into_iter().map(|one| (one.reason, one.module, one.frames, one.leaf_samples)).collect()
    }
}

/// Folds the samples of a profile's tables, which are looked up by name, into a call tree.
#[pyfunction]
#[pyo3(signature = (tables, *, inverted=false, split_threads=false, merge_recursion=false, threads=None, processes=None, event=None, time_ns=None, min_share=0.0))]
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
) -> PyResult<PyCallTree> {
    let table = |name: &str| batches(&tables.get_item(name)?);
    let tables = StackTables {
        samples: table("samples")?,
        stacks: table("stacks")?,
        frames: table("frames")?,
        functions: table("functions")?,
        code_objects: table("code_objects")?,
        modules: table("modules")?,
        mappings: table("mappings")?,
        threads: table("threads")?,
    };
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
    };
    let tree = py.detach(|| stacks::call_tree(&tables, &options));
    tree.map(PyCallTree).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Name, unit, number, weight, times of the first and the last.
type EventRow = (String, String, u64, u128, i64, i64);

/// The events of `samples`.
#[pyfunction]
pub fn sampled_events(py: Python<'_>, samples: &Bound<'_, PyAny>) -> PyResult<Vec<EventRow>> {
    let samples = batches(samples)?;
    let events = py.detach(|| stacks::sampled_events(&samples));
    let events = events.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let row = |one: SampledEvent| (one.name, one.unit, one.samples, one.weight, one.first_ns, one.last_ns);
    Ok(events.into_iter().map(row).collect())
}
