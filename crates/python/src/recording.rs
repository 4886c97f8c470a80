//! One open file: what it is, its records, its departures, its tables.

use std::collections::HashSet;
use std::fs::File;
use std::sync::{Arc, Mutex};

use perfuse_formats::listing::{RecordCursor, RecordForm, RecordRange, RecordStyle, write_records};
use perfuse_formats::{Placement, Rate, Recording, Source, TableRequest, registry, table_of};
use perfuse_profile::sframe::cross_check_recording;
use perfuse_profile::{DiagnosticRow, begin_opening, diagnostics_batch, prefetch_summary, take_opened};
use perfuse_tables::Choices;
use perfuse_wire::{Diagnostic, Diagnostics, Endian, RecordView, Value};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::arrow::ArrowStream;
use crate::errors::{io_error, unreadable};
use crate::output::{Target, WaitingPython};

/// An open file of any format.
#[pyclass(frozen, name = "Recording", module = "perfuse._core")]
pub struct PyRecording {
    pub inner: Arc<dyn Recording>,
}

#[pymethods]
impl PyRecording {
    /// Opens a file; its content decides the format.
    #[staticmethod]
    fn open(py: Python<'_>, path: &str) -> PyResult<Self> {
        if let Some(inner) = py.detach(|| take_opened(path)) {
            return Ok(Self { inner });
        }
        let source = py.detach(|| registry::read(path)).map_err(|error| io_error(py, path, &error))?;
        Self::of(py, path, source)
    }

    /// Opens bytes that are already here.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, path: &str, data: Vec<u8>) -> PyResult<Self> {
        let source =
            py.detach(|| Source::from_bytes(path, data)).map_err(|error| io_error(py, path, &error))?;
        Self::of(py, path, source)
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

    /// Starts the pass over the record headers in the background.
    fn read_ahead(&self) {
        prefetch_summary(&self.inner);
    }

    /// The clock of its time stamps, as `perfuse.alignment.Alignment` has it: the counter's rate is what the recording shows,
    /// what its header states, or given.
    #[pyo3(signature = (hz=None, header=false))]
    fn clock<'py>(&self, py: Python<'py>, hz: Option<u64>, header: bool) -> PyResult<Bound<'py, PyDict>> {
        let rate = hz.map_or(if header { Rate::Header } else { Rate::Auto }, Rate::Hz);
        let clock = py.detach(|| self.inner.clock(rate));
        let out = PyDict::new(py);
        out.set_item("kind", clock.kind)?;
        out.set_item("numerator", clock.map.numerator)?;
        out.set_item("denominator", clock.map.denominator)?;
        out.set_item("offset_ns", clock.map.offset_ns)?;
        out.set_item("how", clock.alignment.name())?;
        out.set_item("hz", clock.hz)?;
        out.set_item("hz_source", clock.hz_source)?;
        out.set_item("stated_hz", clock.stated_hz)?;
        out.set_item("uncertainty_ns", clock.uncertainty_ns)?;
        Ok(out)
    }

    /// Facts about the sampled machine and processes, as in `perfuse.fusing.facts.SamplingFacts`; None where its format has none.
    fn sampling_facts<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(facts) = py.detach(|| self.inner.sampling_facts()) else { return Ok(None) };
        let markers = facts.markers.into_iter().map(|m| (m.pid, m.tid, m.ts, m.path, m.record_offset));
        let out = PyDict::new(py);
        out.set_item("command_line", facts.command_line)?;
        out.set_item("hostname", facts.hostname)?;
        out.set_item("os_release", facts.os_release)?;
        out.set_item("cpu", facts.cpu)?;
        out.set_item("markers", markers.collect::<Vec<_>>())?;
        out.set_item("pids", facts.pids)?;
        out.set_item("time_conversion", facts.time_conversion)?;
        Ok(Some(out))
    }

    /// Version, producer, counts: one pass over the record headers.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let summary = py.detach(|| self.inner.summary());
        let out = PyDict::new(py);
        out.set_item("version", summary.version)?;
        out.set_item("endian", summary.endian.name())?;
        out.set_item("pointer_bytes", summary.pointer_bytes)?;
        out.set_item("arch", summary.arch)?;
        out.set_item("producer", summary.producer)?;
        out.set_item("clock", summary.clock)?;
        out.set_item("span", summary.span)?;
        let records = PyDict::new(py);
        for (name, count) in summary.counts {
            records.set_item(name, count)?;
        }
        out.set_item("records", records)?;
        out.set_item("header", fields(py, summary.header)?)?;
        Ok(out)
    }

    /// Records of these kinds in a range.
    #[pyo3(signature = (kinds, range))]
    fn records(&self, kinds: Option<HashSet<String>>, range: RecordSpan) -> RecordIterator {
        let cursor = Mutex::new(RecordCursor::new(range.into(), kinds));
        RecordIterator { inner: Arc::clone(&self.inner), cursor }
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
        let form = match text {
            Some((colour, width, with_bytes)) => {
                RecordForm::Text { style: RecordStyle { colour, width }, with_bytes }
            }
            None => RecordForm::Json,
        };
        py.detach(|| {
            let mut waiting = WaitingPython::new(None, None);
            let mut cursor = RecordCursor::new(range.into(), kinds);
            let mut out = out.open()?;
            let done =
                write_records(&*self.inner, &mut cursor, limit, form, &mut out, |num| waiting.go_on(num));
            let num = waiting.settle(done.map_err(perfuse_writers::Error::Io))?;
            Ok((num, if num < limit { 0 } else { cursor.count_rest(&*self.inner) }))
        })
    }

    /// Every departure: `(code, message, offset, record_index, field, code_section, count)`; at most `limit` rows of a code.
    /// Without `whole` only what reading the file for its tables finds.
    #[pyo3(signature = (limit, whole=true))]
    fn check(&self, py: Python<'_>, limit: usize, whole: bool) -> Vec<FindingFields> {
        let rows = py.detach(|| {
            let mut sink = Diagnostics::with_limit(limit);
            match whole {
                true => {
                    self.inner.check(&mut sink);
                    cross_check_recording(&*self.inner, &mut sink);
                }
                false => self.inner.findings(&mut sink),
            }
            sink.into_rows()
        });
        diagnostic_rows(rows)
    }

    /// Writes the longest valid file that can be saved to a file that is there: `(changes, lost, kinds of records in another form)`.
    fn repair(&self, py: Python<'_>, path: &str) -> PyResult<RepairFacts> {
        let done = py.detach(|| {
            let mut out = File::options().write(true).truncate(true).open(path)?;
            self.inner.repair(&mut out)
        })?;
        let changes = done.changes.into_iter().map(|c| (c.rule.code, c.message, c.offset)).collect();
        Ok((changes, diagnostic_rows(done.lost), done.rewritten))
    }

    /// Whether a table has rows of this file, as far as that is known without making it.
    fn has(&self, py: Python<'_>, table: &str) -> bool {
        py.detach(|| self.inner.fills(table))
    }

    /// One of the tables its format fills, alone on its own clock; None for one it does not fill.
    #[pyo3(signature = (name, with_bytes=false))]
    fn table(&self, py: Python<'_>, name: &str, with_bytes: bool) -> Option<ArrowStream> {
        let spec = perfuse_tables::table(name)?;
        let request = TableRequest { with_bytes, ..TableRequest::default() };
        let placement = Placement::alone(&*self.inner);
        let stream = py.detach(|| table_of(&self.inner, name, &placement, &request))?;
        Some(ArrowStream::new(spec.schema(), stream))
    }

    /// Bytes of the (unpacked) file; fewer where it ends.
    fn read_bytes<'py>(&self, py: Python<'py>, offset: u64, size: u64) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.inner.source().get_range(offset, size))
    }
}

/// What can be opened, for people.
fn readable() -> String {
    let titles: Vec<_> = registry::FORMATS.iter().map(|format| format.title).collect();
    format!("perfuse reads {}: plain, .gz or .zst", titles.join(", "))
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
        let refused = registry::detect(&source).and_then(|format| format.refused);
        let hint = || refused.map_or_else(readable, str::to_owned);
        let inner = py
            .detach(|| registry::open(Arc::new(source)))
            .map_err(|error| unreadable(py, path, &error, &hint()))?;
        Ok(Self { inner })
    }
}

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
        let Some(record) = cursor.next(&*self.inner) else { return Ok(None) };
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
    let error = || PyValueError::new_err(format!("endian is 'little' or 'big', not {name:?}"));
    Endian::from_name(name).ok_or_else(error)
}

/// Starts to open and read a file; `Recording.open` of the same path waits for it.
#[pyfunction]
pub fn read_early(path: String) {
    begin_opening(path);
}

/// Table `diagnostics`; `source_id` is the index of a row's path in `paths`. Rows with an unknown code are left out.
#[pyfunction]
pub fn diagnostics_table(rows: Vec<DiagnosticRow>, paths: Vec<String>) -> ArrowStream {
    ArrowStream::of(diagnostics_batch(&rows, &paths))
}
