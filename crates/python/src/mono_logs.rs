//! Bindings for writing Mono logs: conversion of logs, and a writer of events.

use std::io::{BufWriter, Write};
use std::sync::{Mutex, MutexGuard};

use perfuse_formats::mono::MonoLog;
use perfuse_formats::mono::consts::EventByte;
use perfuse_formats::mono::convert::{
    ConvertSummary, LogConvertError, LogSelection, Options, ThreadChoice, UnsupportedItem, convert,
};
use perfuse_formats::mono::dialect::LogDialect;
use perfuse_formats::mono::header::Header;
use perfuse_formats::mono::named_fields::{self, FieldValue, NamedField};

use perfuse_formats::mono::writer::{RowStacks, WriteError, Writer, events_from_rows};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrow::{batches, reader};
use crate::call::call;
use crate::errors::{export_error, os_error, table_error, value_error};
use crate::inputs::ReadInputs;
use crate::output::Target;
use crate::recording::{PyRecording, common_clock};

/// `(number of buffers, number of events, omitted events by kind, unsupported items by code)`.
type MonoWriteFacts = (u64, u64, Vec<(String, u64)>, Vec<(&'static str, u64)>);

fn facts(summary: &ConvertSummary) -> MonoWriteFacts {
    let omitted = summary.omitted_events.iter().map(|(byte, count)| (byte.to_string(), *count));
    let unsupported = summary.unsupported.iter().map(|(item, count)| (item.name(), *count));
    (summary.num_buffers, summary.num_events, omitted.collect(), unsupported.collect())
}

/// A thread, by its id or by a name.
#[derive(FromPyObject)]
enum ThreadName {
    Id(u64),
    Name(String),
}

/// Options of a conversion. Options that are not given leave the log unchanged.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct MonoConversion {
    version: Option<u8>,
    between_ns: Option<(i64, i64)>,
    /// Whether `between_ns` counts from the first event.
    is_relative: bool,
    threads: Option<Vec<ThreadName>>,
    kinds: Option<Vec<String>>,
    any_run: bool,
}

fn kind(name: &str) -> PyResult<EventByte> {
    let known = EventByte::ALL.iter().find(|byte| byte.name() == Some(name));
    known.copied().ok_or_else(|| PyValueError::new_err(format!("unknown event {name}")))
}

/// Writes one log from several.
#[pyfunction]
pub fn convert_mono(
    py: Python<'_>,
    recordings: Vec<PyRef<'_, PyRecording>>,
    out: Target,
    options: MonoConversion,
) -> PyResult<MonoWriteFacts> {
    let logs: Vec<&MonoLog> = recordings.iter().map(|one| one.concrete()).collect::<PyResult<_>>()?;
    let (inputs, clock, zero) = common_clock(py, &recordings)?;
    let zero = if options.is_relative { zero } else { 0 };
    let time = |ns: i64| clock.ticks(ns.saturating_add(zero));
    let threads = options.threads.map(|all| {
        let choice = |name| match name {
            ThreadName::Id(id) => ThreadChoice::Id(id),
            ThreadName::Name(name) => ThreadChoice::Name(name),
        };
        all.into_iter().map(choice).collect()
    });
    let kinds = options.kinds.map(|names| names.iter().map(|name| kind(name)).collect::<PyResult<_>>());
    let selection = LogSelection {
        time: options.between_ns.map(|(start, end)| time(start)..time(end)),
        threads,
        kinds: kinds.transpose()?,
    };
    let options = Options { version: options.version, selection, any_run: options.any_run };
    let out = out.open()?;
    let written = inputs.read(py, || {
        let mut out = BufWriter::with_capacity(1 << 20, out);
        convert(&logs, &options, &mut out)
    })?;
    match written {
        Ok(written) => Ok(facts(&written)),
        Err(LogConvertError::Output(error)) => Err(os_error(error)),
        Err(error @ (LogConvertError::Version(_) | LogConvertError::Nothing)) => Err(value_error(error)),
        Err(error) => Err(export_error(py, error)),
    }
}

/// The names of all kinds of events.
#[pyfunction]
pub fn mono_kinds() -> Vec<&'static str> {
    EventByte::ALL.iter().filter_map(|byte| byte.name()).collect()
}

/// The codes of the items that a data version may not be able to represent.
#[pyfunction]
pub fn mono_unsupported_items() -> Vec<&'static str> {
    UnsupportedItem::ALL.iter().map(|item| item.name()).collect()
}

/// The fields of a file header. The profiler version defaults to that which wrote the data version.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct HeaderFields {
    version: u8,
    pointer_bytes: u8,
    profiler: Option<(u8, u8)>,
    startup_ms: u64,
    startup_ns: u64,
    timer_overhead_ns: u32,
    pid: u32,
    port: u16,
    texts: [String; 3],
}

impl HeaderFields {
    fn header(self) -> PyResult<Header> {
        let dialect = LogDialect::existing(self.version, self.pointer_bytes);
        let mut dialect = dialect.map_err(value_error)?;
        (dialect.major, dialect.minor) = self.profiler.unwrap_or((dialect.major, dialect.minor));
        let (startup, process) = ((self.startup_ms, self.startup_ns), (self.pid, self.port));
        Ok(Header::of_dialect(&dialect, startup, self.timer_overhead_ns, process, self.texts))
    }
}

/// Writes events to a buffer; `take` returns and empties it.
#[pyclass(frozen, module = "perfuse._core")]
pub struct MonoLogWriter {
    writer: Mutex<Writer<Vec<u8>>>,
    stacks: Mutex<RowStacks>,
    dialect: LogDialect,
}

#[pymethods]
impl MonoLogWriter {
    #[new]
    fn new(header: HeaderFields) -> PyResult<Self> {
        let header = header.header()?;
        let writer = Writer::new(Vec::new(), &header)?;
        Ok(Self { writer: Mutex::new(writer), stacks: Mutex::default(), dialect: header.dialect() })
    }

    /// Appends an event of a thread.
    fn event(
        &self,
        thread_id: u64,
        name: &str,
        timestamp: Option<u64>,
        fields: &Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let fields = given(fields)?;
        let refused = |error: String| PyValueError::new_err(format!("{name}: {error}"));
        let mut event = named_fields::build_event(&self.dialect, name, timestamp, &fields)
            .map_err(|e| refused(e.to_string()))?;
        match self.lock()?.event(thread_id, &mut event) {
            Ok(()) => Ok(()),
            Err(WriteError::Output(error)) => Err(os_error(error)),
            Err(WriteError::Refused(error)) => Err(refused(error.to_string())),
        }
    }

    /// Adds the stacks that rows refer to.
    fn stacks(&self, stacks: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut known = self.stacks.lock().map_err(table_error)?;
        for batch in batches(stacks)? {
            known.add(&batch).map_err(table_error)?;
        }
        Ok(())
    }

    /// Writes the events of table rows, which are in time order; returns their number.
    fn rows(&self, py: Python<'_>, events: &Bound<'_, PyAny>, out: Target) -> PyResult<u64> {
        let (events, mut out) = (reader(events)?, out.open()?);
        let written = call(py, || -> Result<u64, RowsError> {
            let known = self.stacks.lock().map_err(|error| error.to_string())?;
            let mut num_events = 0;
            for batch in events {
                // Not locked while the next batch is computed: DuckDB may need Python for it.
                let batch = batch?;
                let mut writer = self.writer.lock().map_err(|error| error.to_string())?;
                events_from_rows(&batch, &known, |thread, event| {
                    writer.event(thread, event).map_err(|error| RowsError::from(error.to_string()))
                })?;
                num_events += batch.num_rows() as u64;
                let bytes = std::mem::take(writer.get_mut());
                drop(writer);
                out.write_all(&bytes)?;
            }
            Ok(num_events)
        })?;
        written.map_err(table_error)
    }

    /// The bytes written since the last call.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = std::mem::take(self.lock()?.get_mut());
        Ok(PyBytes::new(py, &bytes))
    }

    /// Completes the buffers of all threads.
    fn flush(&self) -> PyResult<()> {
        self.lock()?.flush().map_err(table_error)
    }
}

/// Why rows are not written.
type RowsError = Box<dyn std::error::Error + Send + Sync>;

impl MonoLogWriter {
    fn lock(&self) -> PyResult<MutexGuard<'_, Writer<Vec<u8>>>> {
        self.writer.lock().map_err(table_error)
    }
}

fn given(fields: &Bound<'_, PyDict>) -> PyResult<Vec<NamedField>> {
    fields.iter().map(|(name, value)| Ok((name.extract()?, value_given(&value)?))).collect()
}

fn value_given(value: &Bound<'_, PyAny>) -> PyResult<FieldValue> {
    if let Ok(text) = value.extract::<String>() {
        return Ok(FieldValue::Text(text));
    }
    if let Ok(number) = value.extract::<i128>() {
        return Ok(FieldValue::Number(number));
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(FieldValue::Text(number.to_string()));
    }
    let entries: Vec<Bound<'_, PyDict>> = value
        .extract()
        .map_err(|_| PyTypeError::new_err("a value is a number, text, or a list of dicts of these"))?;
    Ok(FieldValue::Entries(entries.iter().map(given).collect::<PyResult<_>>()?))
}
