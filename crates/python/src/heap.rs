//! Heap snapshots: what keeps objects alive, and where they were allocated.

use std::collections::HashMap;

use perfuse_engine::heap::{ClassChange, FoldedHeap, Heap, HeapRoots, HeldObjects, SnapshotRoot};
use perfuse_profile::HeapSnapshot;
use perfuse_tables::SnapshotSum;
use perfuse_writers::heap_dumps::{HeapDump, write_hprof, write_v8};
use perfuse_writers::perfetto::{HeapGraph, write_heap_graph};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use crate::arrow::ArrowStream;
use crate::call::call;
use crate::errors::table_error;
use crate::inputs::{Inputs, ReadInputs};
use crate::output::{Progress, Target, WaitingPython};
use crate::profile::PyProfile;
use crate::profile_output::{ClockOption, trace_clock};

/// A heap snapshot, with its dominator tree.
#[pyclass(frozen, name = "HeapSnapshot", module = "perfuse._core")]
pub struct PyHeapSnapshot {
    inner: HeapSnapshot,
    inputs: Inputs,
}

/// `(kind, name, slot_address, owner_type_id, owner_thread_id)` of a root.
type RootRow = (String, Option<String>, Option<u64>, Option<u32>, Option<u32>);

#[pymethods]
impl PyHeapSnapshot {
    /// Reads the snapshot with that key.
    #[new]
    fn new(py: Python<'_>, profile: &PyProfile, snapshot: u32) -> PyResult<Self> {
        let found =
            profile.inputs.read(py, || profile.inner.heap_snapshot(snapshot))?.map_err(table_error)?;
        let of = |inner| Self { inner, inputs: profile.inputs.clone() };
        found.map(of).ok_or_else(|| PyKeyError::new_err(format!("no heap snapshot {snapshot}")))
    }

    /// Key of the snapshot.
    #[getter]
    fn snapshot_id(&self) -> u32 {
        self.inner.id()
    }

    /// Objects.
    #[getter]
    fn num_objects(&self) -> usize {
        self.heap().objects().len()
    }

    /// Their sizes.
    #[getter]
    fn size_bytes(&self) -> u64 {
        self.heap().objects().size_bytes()
    }

    /// References from one to another.
    #[getter]
    fn num_references(&self) -> usize {
        self.heap().num_references()
    }

    /// References from or to addresses without an object in the snapshot.
    #[getter]
    fn num_dangling(&self) -> u64 {
        self.heap().num_dangling()
    }

    /// Repeated records of one object.
    #[getter]
    fn num_repeated(&self) -> u64 {
        self.heap().objects().num_repeated()
    }

    /// Roots that keep an object alive.
    #[getter]
    fn num_roots(&self) -> usize {
        self.heap().roots().list().len()
    }

    /// Roots of addresses without an object in the snapshot.
    #[getter]
    fn num_missed_roots(&self) -> u64 {
        self.heap().roots().num_missed()
    }

    /// Whether any roots were recorded.
    #[getter]
    fn has_roots(&self) -> bool {
        self.heap().has_roots()
    }

    /// Objects that no root keeps alive, and their size in bytes; all objects where no roots were recorded.
    #[getter]
    fn unreachable(&self) -> (u32, u64) {
        self.heap().unreachable()
    }

    /// Rows of `heap_classes`.
    fn classes(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        Ok(ArrowStream::of(call(py, || self.heap().class_rows(self.inner.id()))?))
    }

    /// A row for the object at an address.
    fn object(&self, address: u64) -> PyResult<ArrowStream> {
        Ok(ArrowStream::of(self.heap().object_row(self.find(address)?)))
    }

    /// Objects whose immediate dominator is the one at an address; without an address, those without a dominator. Largest
    /// retained size first.
    #[pyo3(signature = (address=None, limit=None))]
    fn below(&self, py: Python<'_>, address: Option<u64>, limit: Option<usize>) -> PyResult<ArrowStream> {
        let object = address.map(|address| self.find(address)).transpose()?;
        Ok(ArrowStream::of(call(py, || self.heap().below(object, limit))?))
    }

    /// Objects that no root keeps alive, except those that another of them retains.
    #[pyo3(signature = (limit=None))]
    fn rest(&self, py: Python<'_>, limit: Option<usize>) -> PyResult<ArrowStream> {
        Ok(ArrowStream::of(call(py, || self.heap().rest(limit))?))
    }

    /// Objects of a type, or of none, largest retained size first.
    #[pyo3(signature = (type_id, limit=None))]
    fn of_type(&self, py: Python<'_>, type_id: Option<u32>, limit: Option<usize>) -> ArrowStream {
        ArrowStream::of(py.detach(|| self.heap().of_type(type_id, limit)))
    }

    /// The first references from an object or, with `to`, to it, and their number: `(address, type_id, size, field_offset)`.
    fn references(
        &self,
        py: Python<'_>,
        address: u64,
        to: bool,
        limit: usize,
    ) -> PyResult<(usize, Vec<ReferenceRow>)> {
        let (object, heap) = (self.find(address)?, self.heap());
        let from = || heap.references_from(object).collect();
        let found: Vec<_> = py.detach(|| if to { heap.references_to(object) } else { from() });
        let row = |&(other, field): &(u32, Option<u32>)| {
            let objects = heap.objects();
            (objects.address(other), objects.type_id(other), objects.size(other), field)
        };
        Ok((found.len(), found.iter().take(limit).map(row).collect()))
    }

    /// The objects on a shortest path to an object, from its start.
    fn path(&self, py: Python<'_>, address: u64) -> PyResult<ArrowStream> {
        let object = self.find(address)?;
        Ok(ArrowStream::of(call(py, || self.heap().path_rows(object))?))
    }

    /// The objects of some types by the types on their shortest paths from roots:
    /// `(types, start_address, address, num_objects, size_bytes, retained_bytes)`.
    fn held_objects(&self, py: Python<'_>, types: Vec<Option<u32>>) -> Vec<HeldRow> {
        let held = py.detach(|| self.heap().held_objects(&types));
        let address = |object| self.heap().objects().address(object);
        let row = |it: HeldObjects| {
            let start = it.start.map(address);
            (it.types, start, address(it.example), it.num_objects, it.size_bytes, it.retained_bytes)
        };
        held.into_iter().map(row).collect()
    }

    /// The most informative root that refers to an object; None where there is none.
    fn root(&self, address: u64) -> PyResult<Option<RootRow>> {
        let (object, roots) = (self.find(address)?, self.heap().roots());
        let root = roots.list().iter().find(|root| root.object == object);
        Ok(root.map(|root| row_of(roots, root)))
    }

    /// A root of each kind, name, type and thread, those of weak roots last.
    fn distinct_roots(&self) -> Vec<RootRow> {
        let roots = self.heap().roots();
        roots.distinct().into_iter().map(|root| row_of(roots, root)).collect()
    }

    /// Writes the snapshot as V8's `.heapsnapshot`; `types` are the names of its types, `roots` the texts of `distinct_roots`.
    #[pyo3(signature = (out, *, types, roots, progress=None))]
    fn write_v8(
        &self,
        py: Python<'_>,
        out: Target,
        types: HashMap<u32, String>,
        roots: Vec<String>,
        progress: Progress,
    ) -> PyResult<()> {
        let out = out.open()?;
        let mut waiting = WaitingPython::new(progress, Some(2 * self.num_objects() as u64));
        let dump = HeapDump { heap: self.heap(), types: &types, roots: &roots };
        let written = call(py, || write_v8(&dump, out, &mut |done| waiting.go_on(done)))?;
        waiting.settle(written)
    }

    /// Writes the snapshot as HPROF; arguments as for `write_v8`.
    #[pyo3(signature = (out, *, types, pointer_bytes, time_ms, progress=None))]
    fn write_hprof(
        &self,
        py: Python<'_>,
        out: Target,
        types: HashMap<u32, String>,
        pointer_bytes: u32,
        time_ms: u64,
        progress: Progress,
    ) -> PyResult<()> {
        if !matches!(pointer_bytes, 4 | 8) {
            return Err(PyValueError::new_err("pointer_bytes is neither 4 nor 8"));
        }
        let out = out.open()?;
        let mut waiting = WaitingPython::new(progress, Some(self.num_objects() as u64));
        let dump = HeapDump { heap: self.heap(), types: &types, roots: &[] };
        let written =
            call(py, || write_hprof(&dump, pointer_bytes, time_ms, out, &mut |done| waiting.go_on(done)))?;
        waiting.settle(written)
    }

    /// Writes the snapshot, which is number `number` of a trace, as packets of Perfetto.
    #[pyo3(signature = (out, *, types, number, pid, ts_ns, clock=None, progress=None))]
    #[allow(clippy::too_many_arguments, reason = "one argument per option")]
    fn write_perfetto(
        &self,
        py: Python<'_>,
        out: Target,
        types: HashMap<u32, String>,
        number: u32,
        pid: i32,
        ts_ns: i64,
        clock: Option<ClockOption>,
        progress: Progress,
    ) -> PyResult<()> {
        let out = out.open()?;
        let mut waiting = WaitingPython::new(progress, Some(self.num_objects() as u64));
        let dump = HeapDump { heap: self.heap(), types: &types, roots: &[] };
        let graph = HeapGraph { dump, number, pid, ts_ns, clock: clock.map(trace_clock) };
        let written = call(py, || write_heap_graph(&graph, out, &mut |done| waiting.go_on(done)))?;
        waiting.settle(written)
    }

    /// Groups of equal objects.
    fn duplicates(&self, py: Python<'_>, least_references: usize) -> PyResult<ArrowStream> {
        Ok(ArrowStream::of(call(py, || self.heap().duplicate_rows(least_references))?))
    }

    /// Sums by type and the stack that allocated the objects, as far as recorded.
    fn sites(&self, py: Python<'_>) -> PyResult<ArrowStream> {
        self.inputs.read(py, || self.inner.site_sums())?.map(ArrowStream::of).map_err(table_error)
    }

    /// Addresses in the snapshot of objects given by earlier addresses, `(ts_ns, address)` in time order. None for objects that
    /// were not recorded or are not in the snapshot.
    fn whereabouts(&self, py: Python<'_>, known: Vec<(i64, u64)>) -> PyResult<Vec<Option<u64>>> {
        self.inputs.read(py, || self.inner.follow_objects(&known))?.map_err(table_error)
    }

    /// The snapshot as stacks and samples, in tables by name; `types` are the names of its types.
    fn folded(
        &self,
        py: Python<'_>,
        types: HashMap<u32, String>,
    ) -> PyResult<HashMap<&'static str, ArrowStream>> {
        let FoldedHeap { functions, frames, stacks, samples } = call(py, || self.heap().folded(&types))?;
        let tables = [("functions", functions), ("frames", frames), ("stacks", stacks), ("samples", samples)];
        Ok(tables.into_iter().map(|(name, rows)| (name, ArrowStream::of(rows))).collect())
    }

    /// Objects created and freed since an earlier snapshot, by type: `(type_id, num_new, new_bytes, num_gone, gone_bytes)`.
    fn changes(&self, py: Python<'_>, earlier: u32) -> PyResult<Vec<ClassChangeRow>> {
        let changes = self.inputs.read(py, || self.inner.changes(earlier))?.map_err(table_error)?;
        let row = |(of, it): (_, ClassChange)| (of, it.num_new, it.new_bytes, it.num_gone, it.gone_bytes);
        Ok(changes.into_iter().map(row).collect())
    }

    /// Objects that an earlier snapshot does not contain, largest retained size first.
    #[pyo3(signature = (earlier, limit=None))]
    fn new_objects(&self, py: Python<'_>, earlier: u32, limit: Option<usize>) -> PyResult<ArrowStream> {
        self.inputs
            .read(py, || self.inner.new_objects(earlier, limit))?
            .map(ArrowStream::of)
            .map_err(table_error)
    }
}

fn row_of(roots: &HeapRoots, root: &SnapshotRoot) -> RootRow {
    let name = roots.name(root).map(str::to_owned);
    (roots.kind(root).to_owned(), name, root.slot_address, root.owner_type_id, root.owner_thread_id)
}

/// See `held_objects`.
type HeldRow = (Vec<Option<u32>>, Option<u64>, u64, u64, u64, u64);

/// `(address, type_id, size, field_offset)` of the object at the other end of a reference.
type ReferenceRow = (u64, Option<u32>, u64, Option<u32>);

type ClassChangeRow = (Option<u32>, u64, u64, u64, u64);

impl PyHeapSnapshot {
    fn heap(&self) -> &Heap {
        self.inner.heap()
    }

    fn find(&self, address: u64) -> PyResult<u32> {
        let found = self.inner.find(address);
        found.ok_or_else(|| PyKeyError::new_err(format!("no object at {address:#x}")))
    }
}

/// `(snapshot_id, type_id, num_objects, size_bytes)`.
type SumRow = (u32, Option<u32>, u64, u64);
/// Those rows, and `(snapshot_id, num_references)`.
type SumRows = (Vec<SumRow>, Vec<(u32, u64)>);

/// Sums of heap snapshots: rows by snapshot and type, and `(snapshot_id, num_references)` of each snapshot.
#[pyfunction]
pub fn heap_sums(py: Python<'_>, profile: &PyProfile) -> PyResult<SumRows> {
    let sums = profile.inputs.read(py, || profile.inner.snapshot_sums())?.map_err(table_error)?;
    let row = |sum: &SnapshotSum| (sum.snapshot_id, sum.type_id, sum.num_objects, sum.size_bytes);
    Ok((sums.classes().map(row).collect(), sums.references().into_iter().collect()))
}
