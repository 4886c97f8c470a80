//! One open file: what it is, its records, its departures, its tables.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

use perfuse_formats::listing::{RecordCursor, RecordForm, RecordRange, RecordStyle, write_records};
use perfuse_formats::{
    ClockMap, Placement, Rate, Recording, Source, TableRequest, UnpackLimit, registry, table_of,
};
use perfuse_profile::saved_events::keys_of;
use perfuse_profile::sframe::cross_check_recording;
use perfuse_profile::{
    DiagnosticRow, begin_opening, begin_summary, diagnostics_batch, forget_opened, take_opened,
};
use perfuse_wire::{Diagnostic, Diagnostics, Endian, RecordView, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyBytes, PyDict, PyList, PyString};

use crate::arrow::ArrowStream;
use crate::call::{attached, call};
use crate::choice::choice;
use crate::clock::{ClockRow, clock_row};
use crate::errors::{io_error, unreadable};
use crate::inputs::{Inputs, ReadInputs};
use crate::output::{Target, WaitingPython};

/// Numbers of keys by kind; first and last time stamp.
type KeysAndSpan = (HashMap<&'static str, u64>, Option<(u64, u64)>);

/// An open file of any format.
#[pyclass(frozen, name = "Recording", module = "perfuse._core")]
pub struct PyRecording {
    pub inner: Arc<dyn Recording>,
    pub inputs: Inputs,
}

#[pymethods]
impl PyRecording {
    /// Opens a regular file, or a directory that is one recording; its content decides the format.
    #[staticmethod]
    #[pyo3(signature = (path, max_unpacked=None))]
    fn open(py: Python<'_>, path: &str, max_unpacked: Option<u64>) -> PyResult<Self> {
        let limit = UnpackLimit { allowed_bytes: max_unpacked };
        if max_unpacked.is_some() {
            // It was opened with the usual limits.
            call(py, || forget_opened(path))?;
        } else if let Some(inner) = call(py, || take_opened(path))? {
            return Self::whole(py, inner);
        }
        let source = call(py, || registry::read_within(path, limit))?;
        Self::of(py, path, source.map_err(|error| io_error(py, path, &error))?)
    }

    /// Opens bytes that are already here.
    #[staticmethod]
    #[pyo3(signature = (path, data, max_unpacked=None))]
    fn from_bytes(py: Python<'_>, path: &str, data: Vec<u8>, max_unpacked: Option<u64>) -> PyResult<Self> {
        let limit = UnpackLimit { allowed_bytes: max_unpacked };
        let source = call(py, || Source::from_bytes_within(path, data, limit))?;
        Self::of(py, path, source.map_err(|error| io_error(py, path, &error))?)
    }

    /// Copies what a binary file object has, such as a pipe, up to a limit; unpacks it meanwhile.
    #[staticmethod]
    #[pyo3(signature = (path, stream, max_unpacked=None))]
    fn from_stream(
        py: Python<'_>,
        path: &str,
        stream: Py<PyAny>,
        max_unpacked: Option<u64>,
    ) -> PyResult<Self> {
        let limit = UnpackLimit { allowed_bytes: max_unpacked };
        let mut failed = None;
        let reader = PythonReader { stream, failed: &mut failed };
        let source = py.detach(|| Source::from_reader(path, reader, limit));
        if let Some(error) = failed {
            return Err(error);
        }
        Self::of(py, path, source.map_err(|error| io_error(py, path, &error))?)
    }

    #[getter]
    fn format(&self) -> &'static str {
        self.inner.format().name
    }

    /// The common tables that files of its format fill.
    #[getter]
    fn fills(&self) -> Vec<&'static str> {
        self.inner.format().tables.to_vec()
    }

    #[getter]
    fn size_bytes(&self) -> usize {
        self.inner.source().len()
    }

    #[getter]
    fn unpack_error(&self) -> Option<&str> {
        self.inner.source().unpack_error.as_deref()
    }

    /// Number of keys of each kind that its tables take, and first and last time stamp in ticks of its clock.
    fn keys_and_span(&self, py: Python<'_>) -> PyResult<KeysAndSpan> {
        self.inputs.read(py, || (keys_of(&self.inner.extent()).into_iter().collect(), self.inner.span()))
    }

    /// The recording without what earlier ones contain too, and the number of events left out; None where there are none.
    fn without_copies_of(&self, py: Python<'_>, earlier: Vec<Py<Self>>) -> PyResult<Option<(Self, u64)>> {
        let earlier: Vec<_> = earlier.iter().map(|one| Arc::clone(&one.get().inner)).collect();
        let rest = self.inputs.read(py, || self.inner.without_copies_of(&earlier))?;
        Ok(rest.map(|(inner, num_copied)| (Self { inner, inputs: self.inputs.clone() }, num_copied)))
    }

    /// Starts the pass over the record headers in the background.
    fn read_ahead(&self) {
        begin_summary(&self.inner);
    }

    /// The clock of its time stamps: the counter's rate is what the recording shows, what its header states, or given.
    #[pyo3(signature = (hz=None, header=false))]
    fn clock(&self, py: Python<'_>, hz: Option<u64>, header: bool) -> PyResult<ClockRow> {
        let rate = hz.map_or(if header { Rate::Header } else { Rate::Auto }, Rate::Hz);
        Ok(clock_row(self.inputs.read(py, || self.inner.clock(rate))?))
    }

    /// Facts about the sampled machine and processes, as in `perfuse.fusing.facts.SamplingFacts`; None where its format has none.
    fn sampling_facts<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(facts) = self.inputs.read(py, || self.inner.sampling_facts())? else { return Ok(None) };
        let markers = facts.markers.into_iter().map(|m| (m.pid, m.tid, m.ts, m.path, m.record_offset));
        dict!(py,
            command_line: facts.command_line, hostname: facts.hostname, os_release: facts.os_release,
            cpu: facts.cpu, markers: markers.collect::<Vec<_>>(), pids: facts.pids,
            time_conversion: facts.time_conversion,
        )
        .map(Some)
    }

    /// Version, producer, counts: one pass over the record headers.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = self.inputs.read(py, || self.inner.summary())?;
        dict!(py,
            version: summary.version, endian: summary.endian.name(), pointer_bytes: summary.pointer_bytes,
            arch: summary.arch, producer: summary.producer, clock: summary.clock, span: summary.span,
            records: summary.counts.into_py_dict(py)?, header: fields(py, summary.header)?,
        )
    }

    /// Records of these kinds in a range.
    #[pyo3(signature = (kinds, range))]
    fn records(&self, kinds: Option<HashSet<String>>, range: RecordSpan) -> RecordIterator {
        let cursor = Mutex::new(RecordCursor::new(range.into(), kinds));
        RecordIterator { inner: Arc::clone(&self.inner), inputs: self.inputs.clone(), cursor }
    }

    /// Writes such records, at most `limit`, as JSON or as text with `(colour, width, with bytes)`; returns how many were written
    /// and how many are left.
    fn write_records(
        &self,
        py: Python<'_>,
        out: Target,
        kinds: Option<HashSet<String>>,
        range: RecordSpan,
        limit: u64,
        text: Option<(bool, Option<usize>, bool)>,
    ) -> PyResult<(u64, u64)> {
        let form = text.map_or(RecordForm::Json, |(colour, width, with_bytes)| RecordForm::Text {
            style: RecordStyle { colour, width },
            with_bytes,
        });
        self.inputs.read(py, || {
            let mut waiting = WaitingPython::new(None, None);
            let mut cursor = RecordCursor::new(range.into(), kinds);
            let mut out = out.open()?;
            let done =
                write_records(&*self.inner, &mut cursor, limit, form, &mut out, |num| waiting.go_on(num));
            let num = waiting.settle(done.map_err(perfuse_writers::Error::Io))?;
            Ok((num, if num < limit { 0 } else { cursor.count_rest(&*self.inner) }))
        })?
    }

    /// Every departure: `(code, message, offset, record_index, field, code_section, count)`; at most `limit` rows of a code.
    /// Without `whole` only what reading the file for its tables finds.
    #[pyo3(signature = (limit, whole=true))]
    fn check(&self, py: Python<'_>, limit: usize, whole: bool) -> PyResult<Vec<FindingFields>> {
        let rows = self.inputs.read(py, || {
            let mut sink = Diagnostics::with_limit(limit);
            if whole {
                self.inner.check(&mut sink);
                cross_check_recording(&*self.inner, &mut sink);
            } else {
                self.inner.findings(&mut sink);
            }
            sink.into_rows()
        })?;
        Ok(diagnostic_rows(rows))
    }

    /// Writes the longest valid file that can be saved to a file that is there: `(changes, lost, kinds of records in another form)`.
    fn repair(&self, py: Python<'_>, path: &str) -> PyResult<RepairFacts> {
        let done = self.inputs.read(py, || {
            let mut out = File::options().write(true).truncate(true).open(path)?;
            self.inner.repair(&mut out)
        })??;
        let changes = done.changes.into_iter().map(|c| (c.rule.code, c.message, c.offset)).collect();
        Ok((changes, diagnostic_rows(done.lost), done.rewritten))
    }

    /// Whether a table has rows of this file, as far as that is known without making it.
    fn has(&self, py: Python<'_>, table: &str) -> PyResult<bool> {
        self.inputs.read(py, || self.inner.fills(table))
    }

    /// One of the tables its format fills, alone on its own clock; None for one it does not fill.
    #[pyo3(signature = (name, with_bytes=false))]
    fn table(&self, py: Python<'_>, name: &str, with_bytes: bool) -> PyResult<Option<ArrowStream>> {
        let Some(spec) = perfuse_tables::table(name) else { return Ok(None) };
        let request = TableRequest { with_bytes, ..TableRequest::default() };
        let placement = Placement::alone(&*self.inner);
        let stream = call(py, || table_of(&self.inner, name, &placement, &request))?;
        let batches = stream.map(|stream| self.inputs.batches(stream.map(Ok::<_, Infallible>)));
        Ok(batches.map(|batches| ArrowStream::trying(spec.schema(), batches)))
    }

    /// Bytes of the (unpacked) file; fewer where it ends.
    fn read_bytes<'py>(&self, py: Python<'py>, offset: u64, size: u64) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = py.detach(|| self.inner.source().get_range(offset, size).to_vec());
        self.inputs.check(py)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// Reads a Python file object. Signals arrive while Python reads; its exceptions are raised by the caller.
struct PythonReader<'a> {
    stream: Py<PyAny>,
    failed: &'a mut Option<PyErr>,
}

impl Read for PythonReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = |py: Python<'_>| {
            let bytes = self.stream.call_method1(py, "read", (buffer.len().min(1 << 20),))?;
            let bytes = bytes.bind(py).cast::<PyBytes>()?.as_bytes();
            let len = bytes.len().min(buffer.len());
            if let (Some(to), Some(from)) = (buffer.get_mut(..len), bytes.get(..len)) {
                to.copy_from_slice(from);
            }
            Ok(len)
        };
        attached(read).map_err(|error: PyErr| {
            let text = io::Error::other(error.to_string());
            *self.failed = Some(error);
            text
        })
    }
}

/// `(changes, lost, kinds of records in another form)`
type RepairFacts = (Vec<(&'static str, String, u64)>, Vec<FindingFields>, Vec<(String, &'static str)>);

fn diagnostic_rows(rows: Vec<Diagnostic>) -> Vec<FindingFields> {
    let row = |d: Diagnostic| {
        let section = d.code_section.into_owned();
        (d.rule.code, d.message.into_owned(), d.offset, d.record_index, d.field, section, d.count)
    };
    rows.into_iter().map(row).collect()
}

type FindingFields = (&'static str, String, u64, Option<u64>, &'static str, String, u64);

impl PyRecording {
    fn of(py: Python<'_>, path: &str, source: Source) -> PyResult<Self> {
        let format = registry::detect(&source);
        let inner = call(py, || registry::open(Arc::new(source)))?
            .map_err(|error| unreadable(py, path, &error, &registry::advice(format, &error)))?;
        Self::whole(py, inner)
    }

    /// An open recording, unless its file became shorter meanwhile.
    pub fn whole(py: Python<'_>, inner: Arc<dyn Recording>) -> PyResult<Self> {
        let inputs = Inputs::of([&inner]);
        inputs.check(py)?;
        Ok(Self { inner, inputs })
    }

    /// The recording as its concrete type, for what only one format has.
    pub fn concrete<T: Recording + 'static>(&self) -> PyResult<&T> {
        let other = || PyTypeError::new_err(format!("this call is not for format {}", self.format()));
        self.inner.as_any().downcast_ref().ok_or_else(other)
    }
}

/// The inputs of recordings, the clock of the first, and when the earliest begins on it, in nanoseconds.
pub fn common_clock(
    py: Python<'_>,
    recordings: &[PyRef<'_, PyRecording>],
) -> PyResult<(Inputs, ClockMap, i64)> {
    let all: Vec<_> = recordings.iter().map(|one| &one.inner).collect();
    let inputs = Inputs::of(all.iter().copied());
    let (clock, start) = inputs.read(py, || {
        let clock = all.first().map(|one| one.clock(Rate::Auto).map).unwrap_or_default();
        (clock, all.iter().filter_map(|one| one.span()).map(|(start, _)| clock.ns(start)).min())
    })?;
    Ok((inputs, clock, start.unwrap_or(0)))
}

/// Number of records after which the file's size is compared again.
const CHECKED_RECORDS: u64 = 256;

/// A half-open range of records as Python gives it: whether of offsets, its start, and its end.
#[derive(FromPyObject)]
pub struct RecordSpan(bool, u64, Option<u64>);

impl From<RecordSpan> for RecordRange {
    fn from(RecordSpan(is_of_offsets, first, end): RecordSpan) -> Self {
        let end = end.unwrap_or(u64::MAX);
        if is_of_offsets { Self::Offsets { first, end } } else { Self::Indexes { first, end } }
    }
}

/// Iterates over records; each is `(name, index, offset, size, timestamp, fields)`.
#[pyclass(frozen, module = "perfuse._core")]
pub struct RecordIterator {
    inner: Arc<dyn Recording>,
    inputs: Inputs,
    cursor: Mutex<RecordCursor>,
}

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[allow(clippy::type_complexity, reason = "a record as a plain tuple")]
    fn __next__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(String, u64, u64, u64, Option<u64>, Bound<'py, PyDict>)>> {
        let mut cursor = self.cursor.lock().map_err(crate::errors::table_error)?;
        let next = cursor.next(&*self.inner);
        if next.as_ref().is_none_or(|record| record.index.is_multiple_of(CHECKED_RECORDS)) {
            self.inputs.check(py)?;
        }
        let Some(record) = next else { return Ok(None) };
        let RecordView { index, offset, size, name, timestamp, fields: all } = record;
        Ok(Some((name.into_owned(), index, offset, size, timestamp, fields(py, all)?)))
    }
}

fn fields<'py>(py: Python<'py>, fields: Vec<(&'static str, Value<'_>)>) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, value) in fields {
        out.set_item(name, python_value(py, value)?)?;
    }
    Ok(out)
}

fn python_value<'py>(py: Python<'py>, value: Value<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Unsigned(number) => number.into_pyobject(py)?.into_any(),
        Value::Signed(number) => number.into_pyobject(py)?.into_any(),
        Value::Hex(number) => hex_class(py)?.call1((number,))?,
        Value::Text(text) => PyString::new(py, &text).into_any(),
        Value::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        Value::Entries(entries) => {
            let rows = entries.into_iter().map(|entry| fields(py, entry)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, rows)?.into_any()
        }
    })
}

/// `perfuse.records.Hex`, an int that shows itself in hexadecimal.
fn hex_class(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: pyo3::sync::PyOnceLock<Py<PyAny>> = pyo3::sync::PyOnceLock::new();
    let class = CLASS
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("perfuse.records")?.getattr("Hex")?.unbind()))?;
    Ok(class.bind(py).clone())
}

/// The byte order of that name.
pub fn parse_endian(name: &str) -> PyResult<Endian> {
    choice("endian", name, &[Endian::Little, Endian::Big].map(|endian| (endian.name(), endian)))
}

/// Starts to read a file for `Recording.open`; with `joins`, also to join its samples for a `Profile` of it alone.
#[pyfunction]
pub fn read_early(path: std::path::PathBuf, joins: bool) {
    begin_opening(path, joins);
}

/// Table `diagnostics`; `source_id` is the index of a row's path in `paths`. Rows with an unknown code are left out.
#[pyfunction]
pub fn diagnostics_table(rows: Vec<DiagnosticRow>, paths: Vec<String>) -> ArrowStream {
    ArrowStream::of(diagnostics_batch(&rows, &paths))
}
