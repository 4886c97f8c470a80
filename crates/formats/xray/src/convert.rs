//! Converts logs: to another version, mode or byte order; a selection of one; several logs of one run into one.
//!
//! Times keep their values in ticks. A buffer of an FDR log becomes a buffer again, so that a valid log is reproduced
//! byte for byte. Items that the target version cannot represent are counted.

mod read_logs;
mod selection;
mod tables;

use std::fmt;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::header::Mode;
use super::log::{LogContent, XRay};
use super::writer::{
    BUFFER_BYTES, BasicSink, BasicWriter, FdrSink, FdrWriter, FinishLog, LogSink, LogSpec, UnsupportedItems,
    WriteError, WriteSummary, YamlSink,
};
use perfuse_recording::Recording;

pub use selection::RecordSelection;
pub use tables::{FunctionNumbers, TablesError, write_tables};

use selection::SelectionFilter;

/// Largest number of padding bytes per byte of records in a log of version 1.
const MAX_PADDING_RATIO: u64 = 16;

/// Padding up to this size is always accepted.
const ALLOWED_PADDING_BYTES: u64 = 64 << 20;

/// Properties of the log to write.
#[derive(Clone, Debug)]
pub struct Options {
    /// FDR or Basic.
    pub mode: Mode,
    /// Version of that mode.
    pub version: u16,
    /// Byte order.
    pub endian: perfuse_wire::Endian,
    /// Rate to state in the header; `None` for that of the first log.
    pub hz: Option<u64>,
    /// The part of the logs to write.
    pub selection: RecordSelection,
}

impl Options {
    /// The mode, version and byte order of a log, with everything in it.
    #[must_use]
    pub fn like(log: &XRay) -> Self {
        let header = log.header();
        let dialect = header.dialect();
        Self {
            mode: header.mode,
            version: dialect.version,
            endian: dialect.endian,
            hz: None,
            selection: RecordSelection::default(),
        }
    }
}

/// Why a conversion failed.
#[derive(Debug)]
pub enum ConvertError {
    /// Writing failed.
    Write(WriteError),
    /// No log was given.
    Nothing,
    /// A profile contains sums of calls, and no calls.
    Profile,
    /// The logs state different counter rates, so they are not of one run on one machine.
    Rates(u64, u64),
    /// A thread of several logs, by the ids of its process and its own, made calls in them at one time: they are of processes with
    /// the same ids, which one log cannot distinguish.
    Threads(i32, i32),
    /// A log of version 1 would be nearly all padding, as its buffers differ too much in size.
    Padding {
        /// Size in bytes that the log would have.
        bytes: u64,
    },
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => error.fmt(f),
            Self::Nothing => f.write_str("no log to convert"),
            Self::Profile => f.write_str("a profile contains sums of calls, and a log needs each call"),
            Self::Rates(first, other) => write!(
                f,
                "the logs are not of one run: their headers state counter rates of {first} and {other} Hz; \
                 if they are of one machine, give the rate for all of them (hz)"
            ),
            Self::Threads(pid, tid) => write!(
                f,
                "two logs are of processes with the same ids: thread {tid} of process {pid} is in both at one time; \
                 write each log for itself"
            ),
            Self::Padding { bytes } => {
                write!(
                    f,
                    "all buffers of version 1 have the size of the largest: {bytes} bytes, nearly all padding"
                )
            }
        }
    }
}

impl std::error::Error for ConvertError {}

impl From<WriteError> for ConvertError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

/// Writes one log from the logs of a run. Duplicate buffers are written once.
///
/// # Errors
/// When writing fails, there is no log, the logs are not of one run, or a log of version 1 would be nearly all
/// padding.
pub fn convert<W: Write>(logs: &[&XRay], options: &Options, out: W) -> Result<WriteSummary, ConvertError> {
    let mut spec = log_spec(logs, options)?;
    if spec.mode == Mode::Basic {
        let sink = BasicSink::new(BasicWriter::new(out, spec)?, options.version);
        return run(logs, &options.selection, sink);
    }
    if spec.version == 1
        && spec.is_known()
        && let Some(first) = logs.first()
    {
        spec.buffer_size = version_1_stride(logs, options, spec, first)?;
    }
    run(logs, &options.selection, FdrSink::new(FdrWriter::new(out, spec)?, spec))
}

/// Writes the logs as the YAML that llvm-xray reads, with names of functions by their ids. Everything is in memory until it is
/// sorted.
///
/// # Errors
/// As for [`convert`].
pub fn to_yaml<W: Write>(
    logs: &[&XRay],
    options: &Options,
    names: FxHashMap<u32, String>,
    out: W,
) -> Result<WriteSummary, ConvertError> {
    run(logs, &options.selection, YamlSink::new(out, log_spec(logs, options)?, names))
}

/// The buffer size in the header of an FDR log.
fn stated_buffer_size(first: &XRay) -> Option<u64> {
    Some(first.header().file.buffer_size).filter(|_| first.header().mode == Mode::Fdr)
}

/// The properties of the log to write.
fn log_spec(logs: &[&XRay], options: &Options) -> Result<LogSpec, ConvertError> {
    let first = logs.first().ok_or(ConvertError::Nothing)?;
    let stated = first.header().file.cycle_frequency;
    for log in logs {
        if log.header().mode == Mode::Profile {
            return Err(ConvertError::Profile);
        }
        let other = log.header().file.cycle_frequency;
        // A given rate applies to the machine's one counter; the headers of its programs may round it differently.
        if other != stated && options.hz.is_none() {
            return Err(ConvertError::Rates(stated, other));
        }
    }
    Ok(LogSpec {
        mode: options.mode,
        version: options.version,
        endian: options.endian,
        cycle_frequency: options.hz.unwrap_or(stated),
        tsc_flags: first.header().tsc_flags(),
        buffer_size: stated_buffer_size(first).unwrap_or(BUFFER_BYTES),
    })
}

/// The distance of buffers in version 1: the size that the first log states where all buffers fit and it is not larger than that log,
/// else the size of the largest.
fn version_1_stride(
    logs: &[&XRay],
    options: &Options,
    spec: LogSpec,
    first: &XRay,
) -> Result<u64, ConvertError> {
    let without_stride = LogSpec { version: 2, ..spec };
    let mut measure = FdrSink::new(FdrWriter::new(io::sink(), without_stride)?, spec);
    feed(logs, &options.selection, &mut measure)?;
    measure.write_gathered()?;
    let (largest, written, num) = measure.sizes();
    let log_bytes = first.source().len() as u64;
    let fits = |size: &u64| num == 0 || (largest..=log_bytes).contains(size);
    let size = stated_buffer_size(first).filter(fits).unwrap_or(largest);
    let bytes = size.saturating_mul(num);
    if bytes > ALLOWED_PADDING_BYTES && bytes > written.saturating_mul(MAX_PADDING_RATIO) {
        return Err(ConvertError::Padding { bytes });
    }
    Ok(size)
}

/// Passes the logs to a sink, and finishes it.
fn run<S: FinishLog>(
    logs: &[&XRay],
    selection: &RecordSelection,
    mut sink: S,
) -> Result<WriteSummary, ConvertError> {
    let found = feed(logs, selection, &mut sink)?;
    let mut written = sink.finish()?;
    written.unsupported.add(&found);
    Ok(written)
}

/// Passes the content of the logs to a sink, and counts what is in no log or unreadable.
fn feed<S: LogSink>(
    logs: &[&XRay],
    selection: &RecordSelection,
    sink: &mut S,
) -> Result<UnsupportedItems, ConvertError> {
    let mut unsupported = UnsupportedItems::default();
    if selection.is_all() {
        feed_all(logs, selection, sink, &mut unsupported)?;
    } else {
        feed_all(logs, selection, &mut SelectionFilter::new(selection, sink), &mut unsupported)?;
    }
    Ok(unsupported)
}

/// Passes the logs to a sink: FDR buffers first, then Basic mode records.
fn feed_all<S: LogSink>(
    logs: &[&XRay],
    selection: &RecordSelection,
    sink: &mut S,
    unsupported: &mut UnsupportedItems,
) -> Result<(), ConvertError> {
    let (buffers, copies) = read_logs::ordered_buffers(logs);
    if logs.len() > 1
        && let Some((pid, tid)) = read_logs::thread_of_two_processes(logs, &buffers)
    {
        return Err(ConvertError::Threads(pid, tid));
    }
    unsupported.copies = unsupported.copies.saturating_add(copies);
    for buffer in buffers {
        read_logs::read_buffer(&buffer, selection, sink, unsupported)?;
    }
    let mut basics: Vec<_> = logs
        .iter()
        .filter_map(|log| match log.content() {
            LogContent::Basic(survey) => Some((log, survey)),
            LogContent::Fdr(_) | LogContent::Profile(_) => None,
        })
        .collect();
    basics.sort_by_key(|(_, survey)| survey.span);
    for (log, survey) in basics {
        read_logs::read_basic_log(log, survey, selection, sink, unsupported)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
