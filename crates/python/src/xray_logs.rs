//! Writes XRay logs: from logs, from tables, from single events.

use std::collections::{HashMap, HashSet};
use std::io::BufWriter;
use std::os::fd::RawFd;
use std::sync::{Mutex, MutexGuard};

use perfuse_formats::ClockMap;
use perfuse_formats::xray::XRay;
use perfuse_formats::xray::consts::{Action, EMULATED_HZ, FUNCTION_ID_BITS};
use perfuse_formats::xray::convert::{ConvertError, Options, RecordSelection, TablesError, convert, to_yaml};
use perfuse_formats::xray::header::Mode;
use perfuse_formats::xray::writer::{
    FinishLog, LogSink, LogSpec, LogWriter, ThreadEvent, TscStamp, WriteError, WriteSummary,
};
use perfuse_profile::call_log::write_call_log;
use perfuse_wire::Endian;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::choice::choice;
use crate::errors::{export_error, os_error, table_error, value_error};
use crate::inputs::ReadInputs;
use crate::output::duplicate;
use crate::profile::PyProfile;
use crate::recording::{PyRecording, common_clock, parse_endian};

/// `(buffers, function records, events, what did not fit by name)`.
type XRayWriteFacts = (u64, u64, u64, Vec<(&'static str, u64)>);

fn facts(written: &WriteSummary) -> XRayWriteFacts {
    (written.num_buffers, written.num_calls, written.num_events, written.unsupported.counts().to_vec())
}

/// Options of the written log; those not given are as in the input.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct LogOptions {
    mode: Option<String>,
    version: Option<u16>,
    endian: Option<String>,
    hz: Option<u64>,
    between_ns: Option<(i64, i64)>,
    /// Whether that is from the first event on.
    is_relative: bool,
    tids: Option<Vec<i32>>,
    functions: Option<HashSet<i64>>,
}

impl LogOptions {
    /// The options of the new log: `options` are those of the source, whose first event is at `zero` nanoseconds.
    fn resolve(&self, mut options: Options, clock: &ClockMap, zero: i64) -> PyResult<Options> {
        if let Some(name) = &self.mode {
            let mode = choice("mode", name, &Mode::LOGS)?;
            if mode != options.mode {
                options.version = mode.latest_version();
            }
            options.mode = mode;
        }
        options.version = self.version.unwrap_or(options.version);
        if let Some(name) = &self.endian {
            options.endian = parse_endian(name)?;
        }
        options.hz = self.hz;
        options.selection = RecordSelection {
            ticks: self.between_ns.map(|(start, end)| {
                let zero = if self.is_relative { zero } else { 0 };
                clock.ticks(start.saturating_add(zero))..clock.ticks(end.saturating_add(zero))
            }),
            tids: self.tids.clone(),
            functions: self.functions.as_ref().map(|ids| ids.iter().map(|&id| id as u32).collect()),
        };
        Ok(options)
    }
}

/// Writes one log of logs of a run to a file, given as its descriptor; with `yaml_names`, names of functions by id, as llvm-xray's
/// YAML.
#[pyfunction]
#[pyo3(signature = (recordings, out, options, yaml_names=None))]
pub fn convert_xray(
    py: Python<'_>,
    recordings: Vec<PyRef<'_, PyRecording>>,
    out: RawFd,
    options: LogOptions,
    yaml_names: Option<HashMap<u32, String>>,
) -> PyResult<XRayWriteFacts> {
    let logs: Vec<&XRay> = recordings.iter().map(|one| one.concrete()).collect::<PyResult<_>>()?;
    let (inputs, clock, zero) = common_clock(py, &recordings)?;
    let first = *logs.first().ok_or_else(|| PyValueError::new_err("no log to convert"))?;
    let options = options.resolve(Options::like(first), &clock, zero)?;
    let written = inputs.read(py, || {
        let mut out = BufWriter::with_capacity(1 << 20, duplicate(out).map_err(WriteError::from)?);
        match yaml_names {
            Some(names) => to_yaml(&logs, &options, names.into_iter().collect(), &mut out),
            None => convert(&logs, &options, &mut out),
        }
    })?;
    match written {
        Ok(written) => Ok(facts(&written)),
        Err(ConvertError::Write(error)) => Err(refused(error)),
        Err(error) => Err(export_error(py, error)),
    }
}

/// Writes the calls of a profile as a log with one tick per nanosecond; also returns how many functions and threads have new
/// numbers.
#[pyfunction]
pub fn write_xray(
    py: Python<'_>,
    profile: &PyProfile,
    out: RawFd,
    options: LogOptions,
    is_monotonic: bool,
) -> PyResult<(XRayWriteFacts, u64, u64)> {
    let like = Options {
        mode: Mode::Fdr,
        version: Mode::Fdr.latest_version(),
        endian: Endian::Little,
        hz: None,
        selection: RecordSelection::default(),
    };
    let Options { mode, version, endian, selection, .. } = options.resolve(like, &ClockMap::default(), 0)?;
    let spec = LogSpec::new(mode, version, endian, EMULATED_HZ);
    let out = BufWriter::with_capacity(1 << 20, duplicate(out)?);
    let written =
        profile.inputs.read(py, || write_call_log(&profile.inner, spec, &selection, is_monotonic, out))?;
    match written {
        Ok(log) => Ok((facts(&log.written), log.num_renumbered_functions, log.num_renumbered_threads)),
        Err(TablesError::Write(error)) => Err(refused(error)),
        Err(TablesError::Column(error)) => Err(table_error(error)),
    }
}

/// Appends records to a buffer that `take` empties.
#[pyclass(frozen, module = "perfuse._core")]
pub struct XRayLogWriter {
    writer: Mutex<LogWriter<Vec<u8>>>,
    mode: Mode,
}

#[allow(clippy::too_many_arguments, reason = "one argument a field of the record")]
#[pymethods]
impl XRayLogWriter {
    #[new]
    fn new(mode_name: &str, version: u16, endian_name: &str, hz: u64, is_monotonic: bool) -> PyResult<Self> {
        let mode = choice("mode", mode_name, &Mode::LOGS)?;
        let spec = LogSpec::new(mode, version, parse_endian(endian_name)?, hz);
        let writer = LogWriter::new(Vec::new(), spec, is_monotonic).map_err(refused)?;
        Ok(Self { writer: Mutex::new(writer), mode })
    }

    /// A function was entered (0) or left (1, by a tail call 2), with its argument.
    #[pyo3(signature = (action, function_id, tsc, cpu, owner, argument=None))]
    fn call(
        &self,
        action: u8,
        function_id: i32,
        tsc: u64,
        cpu: u16,
        owner: (i32, i32),
        argument: Option<u64>,
    ) -> PyResult<()> {
        let function_id = function_id.cast_unsigned();
        if self.mode == Mode::Fdr && function_id >> FUNCTION_ID_BITS != 0 {
            return Err(PyValueError::new_err(format!(
                "function id {} does not fit the {FUNCTION_ID_BITS} bits of FDR mode",
                function_id.cast_signed()
            )));
        }
        let mut writer = self.lock()?;
        let at = TscStamp { tsc, cpu };
        writer.write_event(owner, at, ThreadEvent::Call { action: Action(action), function_id });
        if let Some(argument) = argument {
            writer.write_event(owner, at, ThreadEvent::Argument(argument));
        }
        writer.check().map_err(refused)
    }

    /// A custom event, or a typed one.
    fn event(
        &self,
        event_type: Option<u16>,
        payload: &[u8],
        tsc: u64,
        cpu: u16,
        owner: (i32, i32),
    ) -> PyResult<()> {
        let mut writer = self.lock()?;
        writer.write_event(owner, TscStamp { tsc, cpu }, ThreadEvent::Event { event_type, payload });
        writer.check().map_err(refused)
    }

    /// The bytes that are ready since the last call.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = std::mem::take(self.lock()?.get_mut());
        Ok(PyBytes::new(py, &bytes))
    }

    /// Ends the log: what is gathered becomes ready.
    fn finish(&self) -> PyResult<XRayWriteFacts> {
        Ok(facts(&self.lock()?.finish().map_err(refused)?))
    }
}

impl XRayLogWriter {
    fn lock(&self) -> PyResult<MutexGuard<'_, LogWriter<Vec<u8>>>> {
        self.writer.lock().map_err(table_error)
    }
}

fn refused(error: WriteError) -> PyErr {
    match error {
        WriteError::Io(error) => os_error(error),
        error => value_error(error),
    }
}
