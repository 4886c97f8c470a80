//! Several recordings on one clock: `Placed` and `Profile`.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use perfuse_binaries::symbolize::Follow;
use perfuse_binaries::xray_map::{Error, MapFile, ObjectMaps};
use perfuse_engine::unwind::{FrameOrigin, Stop, UnwindTotals};
use perfuse_formats::UnpackLimit;
use perfuse_profile::{DefinedLines, NamingFinding, ProfileInput, ProfileOptions, take_profile};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow::ArrowStream;
use crate::call::call;
use crate::clock::{ClockRow, clock_of};
use crate::errors::{io_error, lacking, table_error, value_error};
use crate::inputs::{Inputs, ReadInputs};
use crate::recording::PyRecording;

/// Lines at which functions are defined, by file and name.
#[pyclass(frozen, name = "DefinedLines", module = "perfuse._core")]
pub struct PyDefinedLines(pub Arc<DefinedLines>);

#[pymethods]
impl PyDefinedLines {
    #[new]
    fn new(lines: HashMap<String, HashMap<String, u32>>) -> Self {
        let files = lines.into_iter().map(|(file, of_file)| (file, of_file.into_iter().collect()));
        Self(Arc::new(DefinedLines::new(files)))
    }

    /// The lines, by file and name.
    fn lines(&self) -> HashMap<&str, HashMap<&str, u32>> {
        self.0.files().map(|(file, lines)| (file, lines.collect())).collect()
    }
}

/// A recording, its clock and its process, as an input of `Profile`.
#[pyclass(frozen, name = "Placed", module = "perfuse._core")]
pub struct PyPlaced(pub ProfileInput);

#[pymethods]
impl PyPlaced {
    #[new]
    #[pyo3(signature = (recording, clock, pid, definitions=None, nth_of_pid=None))]
    fn new(
        recording: &PyRecording,
        clock: ClockRow,
        pid: Option<i32>,
        definitions: Option<&PyDefinedLines>,
        nth_of_pid: Option<BTreeMap<i32, u32>>,
    ) -> PyResult<Self> {
        let definitions = definitions.map(|definitions| Arc::clone(&definitions.0));
        let recording = Arc::clone(&recording.inner);
        let nth_of_pid = Arc::new(nth_of_pid.unwrap_or_default());
        Ok(Self(ProfileInput { recording, clock: clock_of(&clock)?, pid, nth_of_pid, definitions }))
    }
}

/// Of recordings of samples, by pid, which of the processes with that pid is each one's own; pids of the first are left out.
#[pyfunction]
pub fn process_numbers(
    py: Python<'_>,
    recordings: Vec<PyRef<'_, PyRecording>>,
) -> PyResult<Vec<BTreeMap<i32, u32>>> {
    let all: Vec<_> = recordings.iter().map(|recording| Arc::clone(&recording.inner)).collect();
    Inputs::of(&all).read(py, || perfuse_profile::process_numbers(&all))
}

/// `(path, code, message, offset, count)`.
type NamingFindingRow = (String, &'static str, String, Option<u64>, u64);

/// Recordings on one clock, and their tables.
#[pyclass(frozen, name = "Profile", module = "perfuse._core")]
#[derive(Clone)]
pub struct PyProfile {
    pub inner: Arc<perfuse_profile::Profile>,
    pub inputs: Inputs,
}

#[pymethods]
impl PyProfile {
    #[new]
    #[allow(clippy::too_many_arguments, reason = "the options of `perfuse.fuse`")]
    #[pyo3(signature = (
        placed, symbol_dirs, debug_info, recorded_on=None, maps=None, follow="all", max_unpacked=None
    ))]
    fn new(
        py: Python<'_>,
        placed: Vec<PyRef<'_, PyPlaced>>,
        symbol_dirs: Vec<PathBuf>,
        debug_info: bool,
        recorded_on: Option<(String, String)>,
        maps: Option<Vec<(u32, PathBuf)>>,
        follow: &str,
        max_unpacked: Option<u64>,
    ) -> PyResult<Self> {
        let error = || PyValueError::new_err(format!("follow is 'all', 'named' or 'none', not {follow:?}"));
        let follow = Follow::from_name(follow).ok_or_else(error)?;
        let unpack_limit = UnpackLimit { allowed_bytes: max_unpacked };
        let xray_maps = open_maps(py, maps.unwrap_or_default())?;
        let options =
            ProfileOptions { symbol_dirs, debug_info, recorded_on, follow, unpack_limit, xray_maps };
        let inputs = placed.iter().map(|placed| placed.0.clone()).collect();
        let inner = call(py, || take_profile(inputs, options))?;
        let inputs = Inputs::of(inner.recordings());
        inputs.check(py)?;
        Ok(Self { inner, inputs })
    }

    /// One of the common tables; None for an unknown name. With `stacks_of`, frames and stacks of that table's events only.
    #[pyo3(signature = (name, with_bytes=false, stacks_of=None))]
    fn table(
        &self,
        py: Python<'_>,
        name: &str,
        with_bytes: bool,
        stacks_of: Option<&str>,
    ) -> PyResult<Option<ArrowStream>> {
        let Some(spec) = perfuse_tables::table(name) else { return Ok(None) };
        let schema: SchemaRef = spec.schema();
        let stream = self.inputs.read(py, || match stacks_of {
            Some(of) => {
                let batches = self.inner.stacks_of(name, of)?;
                Ok(Some(ArrowStream::new(schema, batches.into_iter())))
            }
            None => {
                let batches = self.inner.table(name, with_bytes)?;
                Ok(batches.map(|batches| ArrowStream::trying(schema, self.inputs.batches(batches))))
            }
        })?;
        stream.map_err(|error: perfuse_tables::access::ColumnError| table_error(error))
    }

    /// Table `functions` or `code_objects` with at least the rows that frames refer to.
    fn rows_of_stacks(&self, py: Python<'_>, name: &str) -> PyResult<ArrowStream> {
        let Some(spec) = perfuse_tables::table(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let batches = self.inputs.read(py, || self.inner.rows_of_stacks(spec.name))?.map_err(table_error)?;
        Ok(ArrowStream::new(spec.schema(), batches.into_iter()))
    }

    /// Starts to unwind stacks and to join samples and code in another thread; everything that needs the result waits for it. Where
    /// no stacks are to be unwound, only if the result is needed in any case.
    #[pyo3(signature = (is_needed=false))]
    fn join_ahead(&self, is_needed: bool) {
        self.inner.start_join(is_needed);
    }

    /// Time from the first to the last event of the call traces among the recordings.
    fn trace_span(&self, py: Python<'_>) -> PyResult<Option<(i64, i64)>> {
        self.inputs.read(py, || self.inner.trace_span())
    }

    /// Pids of the recordings with counters, snapshots, handles or moves, by `source_id`.
    fn pids_of_recordings(&self, py: Python<'_>, threads: Option<Vec<u32>>) -> PyResult<BTreeMap<u32, i32>> {
        self.inputs.read(py, || self.inner.pids_of_recordings(threads.as_deref()))?.map_err(value_error)
    }

    /// Problems of instrumentation maps, and of how they fit: `(path, code, message, offset, count)`.
    fn naming_findings(&self, py: Python<'_>) -> PyResult<Vec<NamingFindingRow>> {
        let findings = self.inputs.read(py, || self.inner.naming_findings())?.map_err(table_error)?;
        let row = |it: NamingFinding| (it.path, it.code, it.message, it.offset, it.count);
        Ok(findings.into_iter().map(row).collect())
    }

    /// For each function key, that of the function that statistics of calls make it one with. None where each is itself.
    fn same_functions(&self, py: Python<'_>) -> PyResult<Option<Vec<u32>>> {
        let same = self.inputs.read(py, || self.inner.same_functions())?.map_err(table_error)?;
        Ok(same.map(|same| same.to_vec()))
    }

    /// Counts of unwound stacks and frames: see `perfuse.profile.Unwinding`. None where there were none to unwind.
    fn unwinding<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let totals = self.inputs.read(py, || self.inner.unwind_totals())?.map_err(table_error)?;
        totals.map(|totals| totals_dict(py, totals)).transpose()
    }

    /// `(created, sampled)` of code objects: code of one recording, samples of another, each on its own clock as placed.
    fn first_uses(&self, py: Python<'_>, samples: usize, code: usize) -> PyResult<Vec<(i64, i64)>> {
        let uses = self.inputs.read(py, || self.inner.first_uses(samples, code))?.map_err(table_error)?;
        Ok(uses.into_iter().map(|found| (found.created, found.sampled)).collect())
    }
}

/// Opens the instrumentation maps of objects.
fn open_maps(py: Python<'_>, maps: Vec<(u32, PathBuf)>) -> PyResult<ObjectMaps> {
    let mut objects = ObjectMaps::new();
    for (object, path) in maps {
        let file = open_map(py, &path, None)?;
        let name = path.to_string_lossy();
        objects.insert(object, file).map_err(|error| lacking(py, &name, error, "give --map OBJECT=FILE"))?;
    }
    Ok(objects)
}

/// Opens a program or library with an instrumentation map; `architecture` chooses a part of a universal file.
pub fn open_map(py: Python<'_>, path: &std::path::Path, architecture: Option<&str>) -> PyResult<MapFile> {
    let opened = call(py, || MapFile::open(path, architecture))?;
    let name = path.to_string_lossy();
    opened.map_err(|error| match error {
        Error::Io(error) => io_error(py, &name, &error),
        Error::NoMap(_) => lacking(py, &name, error, "compile and link with `clang -fxray-instrument`"),
        error => lacking(py, &name, error, "give the program that was recorded"),
    })
}

/// The fields of `perfuse.profile.Unwinding`.
fn totals_dict<'py>(py: Python<'py>, totals: &UnwindTotals) -> PyResult<Bound<'py, PyDict>> {
    let (frames, stops) = (PyDict::new(py), PyDict::new(py));
    for (origin, count) in FrameOrigin::ALL.into_iter().zip(totals.frames).filter(|(_, count)| *count != 0) {
        frames.set_item(origin.name(), count)?;
    }
    for (stop, count) in Stop::ALL.into_iter().zip(totals.stops).filter(|(_, count)| *count != 0) {
        stops.set_item(stop.name(), count)?;
    }
    let fields = dict!(py,
        num_stacks: totals.num_stacks, frames: frames, stops: stops,
        cut_bytes: (totals.cut_bytes != 0).then_some(totals.cut_bytes),
    )?;
    Ok(fields)
}
