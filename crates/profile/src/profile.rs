//! Several recordings on one clock: the tables of a profile.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use arrow_array::RecordBatch;
use perfuse_binaries::xray_map::{NamedFunctions, ObjectMaps};
use perfuse_engine::align::first_uses;
use perfuse_engine::allocated::AllocationSums;
use perfuse_engine::join;
use perfuse_engine::unwind::Totals;
use perfuse_formats::{CallStream, ClockMap, Placement, Recording, ShotSum, TableRequest};
use perfuse_tables::access::ColumnError;
use perfuse_tables::{Alignment, Choices, Identities, Offsets, clocks, sources};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow::ArrowStream;
use crate::calls::Traced;
use crate::errors::table_error;
use crate::heap;
use crate::naming::{FindingRow, open_maps};
use crate::recording::PyRecording;
use crate::selected::request;
use crate::unwinding;

/// How a recording is put among the others.
#[pyclass(frozen, name = "Placed", module = "perfuse._core")]
pub struct PyPlaced {
    recording: Arc<dyn Recording>,
    clock: ClockMap,
    pid: Option<i32>,
    clock_kind: String,
    hz: Option<u64>,
    hz_source: String,
    stated_hz: Option<u64>,
    uncertainty_ns: Option<i64>,
    alignment: Alignment,
}

#[pymethods]
impl PyPlaced {
    #[new]
    #[pyo3(signature = (
        recording, *, numerator, denominator, offset_ns, pid, clock_kind, hz, hz_source, stated_hz, uncertainty_ns,
        alignment
    ))]
    #[allow(clippy::too_many_arguments, reason = "one a column of table clocks")]
    fn new(
        recording: &PyRecording,
        numerator: u64,
        denominator: u64,
        offset_ns: i64,
        pid: Option<i32>,
        clock_kind: String,
        hz: Option<u64>,
        hz_source: String,
        stated_hz: Option<u64>,
        uncertainty_ns: Option<i64>,
        alignment: &str,
    ) -> PyResult<Self> {
        let clock = ClockMap { numerator, denominator: denominator.max(1), offset_ns };
        let recording = Arc::clone(&recording.inner);
        let named = Alignment::ALL.iter().copied().find(|word| word.name() == alignment);
        let alignment =
            named.ok_or_else(|| PyValueError::new_err(format!("not an alignment: {alignment}")))?;
        Ok(Self { recording, clock, pid, clock_kind, hz, hz_source, stated_hz, uncertainty_ns, alignment })
    }
}

pub struct Placed {
    how: Py<PyPlaced>,
    pub placement: Placement,
}

impl Placed {
    pub fn recording(&self) -> &Arc<dyn Recording> {
        &self.how.get().recording
    }

    pub fn table(&self, name: &str, request: &TableRequest) -> Vec<RecordBatch> {
        self.recording().table(name, &self.placement, request).into_iter().flatten().collect()
    }
}

/// Recordings, each with its place, for rows that are made when they are pulled.
#[derive(Clone)]
pub struct Recordings(Vec<(Arc<dyn Recording>, Placement)>);

impl Recordings {
    /// Each by itself: addresses of one process mean nothing in another.
    pub fn each(self) -> impl Iterator<Item = Self> {
        self.0.into_iter().map(|one| Self(vec![one]))
    }

    /// Whether any of them has rows for a table.
    pub fn fills(&self, table: &str) -> bool {
        self.0.iter().any(|(recording, _)| recording.fills(table))
    }

    /// Heap shots added up, where every recording knows that without making tables.
    pub fn known_shot_sums(&self) -> Option<Vec<ShotSum>> {
        let sums = self.0.iter().map(|(recording, placement)| recording.shot_sums(placement));
        Some(sums.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect())
    }

    /// What is wanted of a table, of one recording after the other.
    pub fn rows(
        self,
        name: &str,
        request: TableRequest,
    ) -> impl Iterator<Item = RecordBatch> + Send + 'static {
        let name = name.to_owned();
        self.0.into_iter().flat_map(move |(recording, placement)| {
            recording.table(&name, &placement, &request).into_iter().flatten()
        })
    }
}

/// Recordings, placed; their tables, joined when first asked for.
#[pyclass(frozen, module = "perfuse._core")]
pub struct Fusion {
    pub placed: Vec<Placed>,
    identities: Arc<Mutex<Identities>>,
    /// First keys behind all recordings' own.
    pub after: Offsets,
    /// Files that name functions which recordings have only numbers of.
    pub maps: ObjectMaps,
    pub symbol_dirs: Vec<PathBuf>,
    pub debug_info: bool,
    pub recorded_on: Option<(String, String)>,
    pub named: OnceLock<Result<Vec<NamedFunctions>, ColumnError>>,
    pub joined: OnceLock<Result<join::Tables, ColumnError>>,
    /// Whether the join was started before anybody needed it.
    pub ahead: OnceLock<()>,
    /// How unwinding went; set by the join, where there was anything to unwind.
    pub unwound: OnceLock<Totals>,
    pub traced: OnceLock<Result<Traced, ColumnError>>,
    pub allocated: OnceLock<Result<AllocationSums, ColumnError>>,
}

#[pymethods]
impl Fusion {
    #[new]
    #[pyo3(signature = (placed, symbol_dirs, debug_info, recorded_on=None, maps=None))]
    fn new(
        py: Python<'_>,
        placed: Vec<Py<PyPlaced>>,
        symbol_dirs: Vec<PathBuf>,
        debug_info: bool,
        recorded_on: Option<(String, String)>,
        maps: Option<Vec<(u32, PathBuf)>>,
    ) -> PyResult<Self> {
        let maps = open_maps(py, maps.unwrap_or_default())?;
        let identities = Arc::default();
        let mut after = Offsets::default();
        let mut all = Vec::new();
        for (how, source_id) in placed.into_iter().zip(0u32..) {
            let PyPlaced { recording, clock, pid, .. } = how.get();
            let extent = py.detach(|| recording.extent());
            let identities = Arc::clone(&identities);
            let placement = Placement { source_id, first: after, clock: *clock, pid: *pid, identities };
            after = after.plus(extent);
            all.push(Placed { how, placement });
        }
        let (named, joined, ahead, unwound, traced, allocated) = Default::default();
        Ok(Self {
            placed: all,
            identities,
            after,
            maps,
            symbol_dirs,
            debug_info,
            recorded_on,
            named,
            joined,
            ahead,
            unwound,
            traced,
            allocated,
        })
    }

    /// One of the common tables; None for a name that is none.
    #[pyo3(signature = (name, with_bytes=false, stacks_of=None))]
    fn table(
        &self,
        py: Python<'_>,
        name: &str,
        with_bytes: bool,
        stacks_of: Option<&str>,
    ) -> PyResult<Option<ArrowStream>> {
        let Some(spec) = perfuse_tables::table(name) else { return Ok(None) };
        let schema = spec.schema();
        py.detach(|| {
            self.settle_keys().map_err(table_error)?;
            if let Some(of) = stacks_of {
                return Ok(Some(ArrowStream::new(
                    schema,
                    self.collect(name, &request(of, true)).into_iter(),
                )));
            }
            let batches = match name {
                "sources" => vec![self.sources()],
                "clocks" => vec![self.clocks()],
                "processes" | "threads" => {
                    self.joined().and_then(|_| self.traced()).map_err(table_error)?;
                    let identities = self.identities.lock().map_err(table_error)?;
                    vec![if name == "processes" { identities.processes() } else { identities.threads() }]
                }
                "frames" | "stacks" | "samples" => {
                    let tables = self.joined().map_err(table_error)?;
                    let traced = self.traced().map_err(table_error)?;
                    let mut all = self.collect(name, &TableRequest::default());
                    match name {
                        "frames" => all.push(tables.frames.clone()),
                        "stacks" => all.push(tables.stacks.clone()),
                        _ => all.extend(tables.samples.iter().cloned()),
                    }
                    all.extend(traced.map(|traced| match name {
                        "frames" => traced.sampled.frames.clone(),
                        "stacks" => traced.sampled.stacks.clone(),
                        _ => traced.samples.clone(),
                    }));
                    if name == "samples" {
                        all.extend(self.allocated_samples(None).map_err(table_error)?);
                    }
                    all
                }
                "slices" => {
                    let slices = self.slices().map_err(table_error)?;
                    return Ok(Some(ArrowStream::new(schema, slices)));
                }
                "functions" | "modules" => {
                    let tables = self.joined().map_err(table_error)?;
                    let mut all = self.with_names(name).map_err(table_error)?;
                    all.push(if name == "functions" { &tables.functions } else { &tables.modules }.clone());
                    all
                }
                "heap_dominators" | "heap_classes" | "heap_sites" => {
                    return Ok(Some(ArrowStream::trying(schema, heap::table(self.recordings(), spec.name))));
                }
                _ => return Ok(Some(ArrowStream::new(schema, self.stream(name, with_bytes)))),
            };
            Ok(Some(ArrowStream::new(schema, batches.into_iter())))
        })
    }

    /// Starts to unwind stacks and to join samples and code, in a thread of the core's own, which needs no GIL; whoever asks
    /// for a table waits for it. Samples without copies of stacks are joined when they are asked for.
    fn join_ahead(slf: Py<Self>, py: Python<'_>) {
        if py.detach(|| slf.get().has_user_stacks()) && slf.get().ahead.set(()).is_ok() {
            std::thread::spawn(move || slf.get().joined().is_ok());
        }
    }

    /// Time from the first to the last event of the recordings that log events: call traces and runtime logs.
    fn trace_span(&self, py: Python<'_>) -> Option<(i64, i64)> {
        let spans = |placed: &Placed| {
            let (recording, clock) = (placed.recording(), placed.placement.clock);
            let (first, last) = if recording.format().role.logs_events() { recording.span() } else { None }?;
            Some((clock.ns(first), clock.ns(last)))
        };
        py.detach(|| self.placed.iter().filter_map(spans).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))))
    }

    /// What is wrong with instrumentation maps, and with how they fit: `(path, code, message, offset, count)`.
    #[pyo3(name = "naming_findings")]
    fn py_naming_findings(&self, py: Python<'_>) -> PyResult<Vec<FindingRow>> {
        py.detach(|| self.naming_findings()).map_err(table_error)
    }

    /// How unwinding copies of stacks went: see `perfuse.profile.Unwinding`. None where there are none.
    #[pyo3(name = "unwinding")]
    fn py_unwinding<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let totals = py.detach(|| self.unwinding()).map_err(table_error)?;
        totals.map(|totals| unwinding::totals(py, totals)).transpose()
    }

    /// When code was made and first seen to run: `(created, sampled)` pairs, code of one recording against samples of
    /// another, each on its own clock as placed.
    fn first_uses(&self, py: Python<'_>, samples: usize, code: usize) -> PyResult<Vec<(i64, i64)>> {
        let (Some(samples), Some(code)) = (self.placed.get(samples), self.placed.get(code)) else {
            return Ok(Vec::new());
        };
        py.detach(|| {
            let code_objects = code.table("code_objects", &TableRequest::default());
            let chains =
                samples.recording().table("callchains", &samples.placement, &TableRequest::default());
            let uses = first_uses(chains.into_iter().flatten(), &code_objects).map_err(table_error)?;
            Ok(uses.into_iter().map(|u| (u.created, u.sampled)).collect())
        })
    }
}

impl Fusion {
    /// Processes and threads get their keys in the order they are met in: no table may come before those of a join that was begun.
    pub fn settle_keys(&self) -> Result<(), ColumnError> {
        if self.ahead.get().is_some() { self.joined().map(|_| ()) } else { Ok(()) }
    }

    /// The first keys after those of the recordings and of the join. Whatever needs further keys starts here.
    pub fn keys_after_join(&self) -> Result<Offsets, ColumnError> {
        let joined = self.joined()?;
        Ok(self.after.plus(Offsets {
            function: joined.functions.num_rows() as u32,
            module: joined.modules.num_rows() as u32,
            frame: joined.frames.num_rows() as u32,
            stack: joined.stacks.num_rows() as u32,
            ..Offsets::default()
        }))
    }

    /// A table that every recording fills by itself, one after the other, made as it is pulled.
    pub fn stream(&self, name: &str, with_bytes: bool) -> impl Iterator<Item = RecordBatch> + Send + 'static {
        self.recordings().rows(name, TableRequest { with_bytes, ..TableRequest::default() })
    }

    /// The recordings, as something that tables can keep.
    pub fn recordings(&self) -> Recordings {
        let of = |placed: &Placed| (Arc::clone(placed.recording()), placed.placement.clone());
        Recordings(self.placed.iter().map(of).collect())
    }

    /// Table `call_events` in parts, each of which can be made without the others.
    pub fn call_segments(&self) -> Vec<CallStream> {
        self.placed.iter().flat_map(|placed| placed.recording().call_segments(&placed.placement)).collect()
    }

    /// Such a table whole.
    pub fn collect(&self, name: &str, request: &TableRequest) -> Vec<RecordBatch> {
        self.placed.iter().flat_map(|placed| placed.table(name, request)).collect()
    }

    /// The pid of each process met so far, by key.
    pub fn pids(&self) -> Vec<(u32, i32)> {
        self.identities.lock().map(|identities| identities.pids()).unwrap_or_default()
    }

    /// Pid and tid of a thread met so far, by its key; 0 where it has none.
    pub fn owner(&self, thread_id: u32) -> (i32, i32) {
        let known = self.identities.lock().ok().and_then(|identities| identities.owner(thread_id));
        known.unwrap_or_default()
    }

    /// The kind of clock that all recordings are on; `None` where they differ.
    pub fn clock_kind(&self) -> Option<&str> {
        let mut kinds = self.placed.iter().map(|placed| placed.how.get().clock_kind.as_str());
        let first = kinds.next()?;
        kinds.all(|kind| kind == first).then_some(first)
    }

    /// Tables `processes` and `threads`, as far as they were met.
    pub fn known_threads(&self) -> (RecordBatch, RecordBatch) {
        let lock = self.identities.lock();
        let identities = lock.unwrap_or_else(std::sync::PoisonError::into_inner);
        (identities.processes(), identities.threads())
    }

    fn sources(&self) -> RecordBatch {
        let mut table = sources::Builder::new();
        for placed in &self.placed {
            let summary = placed.recording().summary();
            let source = placed.recording().source();
            table.push(
                placed.placement.source_id,
                placed.recording().format().name,
                summary.version.as_deref(),
                &source.path,
                source.len() as u64,
                summary.endian.name(),
                summary.pointer_bytes,
                summary.arch,
                summary.producer.as_deref(),
                placed.placement.source_id,
            );
        }
        table.finish()
    }

    fn clocks(&self) -> RecordBatch {
        let mut table = clocks::Builder::new();
        for placed in &self.placed {
            let how = placed.how.get();
            let id = placed.placement.source_id;
            table.push(
                id,
                id,
                &how.clock_kind,
                how.hz,
                &how.hz_source,
                how.stated_hz,
                how.clock.offset_ns,
                how.uncertainty_ns,
                how.alignment,
            );
        }
        table.finish()
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyPlaced>()?;
    module.add_class::<Fusion>()
}
