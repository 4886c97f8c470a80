//! A log from logs: of another version, mode or byte order; a part of one; several of one run together.
//!
//! Times stay what they were, in ticks. A buffer of an FDR log becomes a buffer again, so that a log as it should be written
//! comes out byte for byte as it was. What the version to be written has no place for is counted.

mod read_logs;
mod selection;
mod tables;

use std::fmt;
use std::io::{self, Write};

use super::header::Mode;
use super::log::{LogContent, XRay};
use super::writer::{
    BUFFER_BYTES, BasicSink, BasicWriter, FdrSink, FdrWriter, FinishLog, LogSink, LogSpec, UnsupportedItems,
    WriteError, WriteSummary, YamlSink,
};
use perfuse_recording::Recording;

pub use selection::Selection;
pub use tables::{FunctionNumbers, TablesError, write_tables};

use selection::SelectionFilter;

/// A log of version 1 may have so many bytes of padding for each byte of records.
const MAX_PADDING_RATIO: u64 = 16;

/// Padding below this is never too much.
const ALLOWED_PADDING_BYTES: u64 = 64 << 20;

/// What to write.
#[derive(Clone, Debug)]
pub struct Options {
    /// FDR or Basic.
    pub mode: Mode,
    /// Version of that mode.
    pub version: u16,
    /// Byte order.
    pub endian: perfuse_wire::Endian,
    /// Rate to state in the header; what the first log states where not given.
    pub hz: Option<u64>,
    /// What of the logs is written.
    pub selection: Selection,
}

impl Options {
    /// The mode, version and byte order of a log, and all that is in it.
    #[must_use]
    pub fn like(log: &XRay) -> Self {
        let header = log.header();
        let dialect = header.dialect();
        Self {
            mode: header.mode,
            version: dialect.version,
            endian: dialect.endian,
            hz: None,
            selection: Selection::default(),
        }
    }
}

/// Why nothing, or not all, was written.
#[derive(Debug)]
pub enum ConvertError {
    /// It cannot be written.
    Write(WriteError),
    /// There is no log to be written.
    Nothing,
    /// A profile has no calls, only their sums.
    Profile,
    /// The logs state different rates of the counter: they are not of one run on one machine.
    Rates(u64, u64),
    /// Nearly all of a log of version 1 would be padding: its buffers differ too much in size.
    Padding {
        /// Bytes the log would have.
        bytes: u64,
    },
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write(error) => error.fmt(f),
            Self::Nothing => f.write_str("no log to convert"),
            Self::Profile => f.write_str("a profile has sums of calls, and a log would need each"),
            Self::Rates(first, other) => write!(
                f,
                "the logs are not of one run: their counters tick at {first} and {other} Hz, as their headers say; \
                 if they are of one machine, give the rate to state for all (hz)"
            ),
            Self::Padding { bytes } => {
                write!(
                    f,
                    "version 1 gives all buffers the size of the largest: {bytes} bytes, nearly all padding"
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

/// Writes one log of the logs of a run. Buffers that are there twice are written once.
///
/// # Errors
/// When the sink refuses, the logs are none or not of one run, or version 1 would be nearly all padding.
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
        let log_bytes = first.source().len() as u64;
        let stated_buffer_size = stated_buffer_size(first).filter(|&size| size <= log_bytes);
        spec.buffer_size = version_1_stride(logs, options, spec, stated_buffer_size)?;
    }
    run(logs, &options.selection, FdrSink::new(FdrWriter::new(out, spec)?, spec))
}

/// Writes the same as the YAML that llvm-xray reads, all of it in memory until it is in order.
///
/// # Errors
/// As for [`convert`].
pub fn to_yaml<W: Write>(logs: &[&XRay], options: &Options, out: W) -> Result<WriteSummary, ConvertError> {
    run(logs, &options.selection, YamlSink::new(out, log_spec(logs, options)?))
}

fn stated_buffer_size(first: &XRay) -> Option<u64> {
    Some(first.header().file.buffer_size).filter(|_| first.header().mode == Mode::Fdr)
}

/// What the header of the log to be written says.
fn log_spec(logs: &[&XRay], options: &Options) -> Result<LogSpec, ConvertError> {
    let first = logs.first().ok_or(ConvertError::Nothing)?;
    let stated = first.header().file.cycle_frequency;
    for log in logs {
        if log.header().mode == Mode::Profile {
            return Err(ConvertError::Profile);
        }
        let other = log.header().file.cycle_frequency;
        // A rate that is given is that of the machine's one counter: headers of its programs may be rounded otherwise.
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

/// The distance of buffers in version 1: as it was, or that of the largest.
fn version_1_stride(
    logs: &[&XRay],
    options: &Options,
    spec: LogSpec,
    stated_buffer_size: Option<u64>,
) -> Result<u64, ConvertError> {
    let without_stride = LogSpec { version: 2, ..spec };
    let mut measure = FdrSink::new(FdrWriter::new(io::sink(), without_stride)?, spec);
    feed(logs, &options.selection, &mut measure)?;
    measure.write_gathered()?;
    let (largest, written, num) = measure.sizes();
    let size = stated_buffer_size.filter(|&size| size >= largest).unwrap_or(largest);
    let bytes = size.saturating_mul(num);
    if bytes > ALLOWED_PADDING_BYTES && bytes > written.saturating_mul(MAX_PADDING_RATIO) {
        return Err(ConvertError::Padding { bytes });
    }
    Ok(size)
}

fn run<S: FinishLog>(
    logs: &[&XRay],
    selection: &Selection,
    mut sink: S,
) -> Result<WriteSummary, ConvertError> {
    let found = feed(logs, selection, &mut sink)?;
    let mut written = sink.finish()?;
    written.unsupported.add(&found);
    Ok(written)
}

/// Tells a sink what is in the logs, and counts what is in none.
fn feed<S: LogSink>(
    logs: &[&XRay],
    selection: &Selection,
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

fn feed_all<S: LogSink>(
    logs: &[&XRay],
    selection: &Selection,
    sink: &mut S,
    unsupported: &mut UnsupportedItems,
) -> Result<(), ConvertError> {
    let (buffers, copies) = read_logs::ordered_buffers(logs);
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
