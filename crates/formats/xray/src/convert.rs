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
use super::log::{Content, XRay};
use super::writer::{
    BUFFER_BYTES, BasicWriter, FdrWriter, Finish, LogSpec, Misfits, Sink, ToBasic, ToFdr, ToYaml, WriteError,
    Written,
};
use perfuse_recording::Recording;

pub use selection::Selection;
pub use tables::{FunctionNumbers, TablesError, tell_tables};

use selection::Selected;

/// A log of version 1 may have so many bytes of padding for each byte of records.
const MOST_PADDING: u64 = 16;

/// Padding below this is never too much.
const SMALL_PADDING: u64 = 64 << 20;

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
pub fn convert<W: Write>(logs: &[&XRay], options: &Options, out: W) -> Result<Written, ConvertError> {
    let mut spec = spec(logs, options)?;
    if spec.mode == Mode::Basic {
        let sink = ToBasic::new(BasicWriter::new(out, spec)?, options.version);
        return run(logs, &options.selection, sink);
    }
    if spec.version == 1
        && spec.is_known()
        && let Some(first) = logs.first()
    {
        let log_bytes = first.source().len() as u64;
        let own_size = own_size(first).filter(|&size| size <= log_bytes);
        spec.buffer_size = distance(logs, options, spec, own_size)?;
    }
    run(logs, &options.selection, ToFdr::new(FdrWriter::new(out, spec)?, spec))
}

/// Writes the same as the YAML that llvm-xray reads, all of it in memory until it is in order.
///
/// # Errors
/// As for [`convert`].
pub fn to_yaml<W: Write>(logs: &[&XRay], options: &Options, out: W) -> Result<Written, ConvertError> {
    run(logs, &options.selection, ToYaml::new(out, spec(logs, options)?))
}

fn own_size(first: &XRay) -> Option<u64> {
    Some(first.header().file.buffer_size).filter(|_| first.header().mode == Mode::Fdr)
}

/// What the header of the log to be written says.
fn spec(logs: &[&XRay], options: &Options) -> Result<LogSpec, ConvertError> {
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
        buffer_size: own_size(first).unwrap_or(BUFFER_BYTES),
    })
}

/// The distance of buffers in version 1: as it was, or that of the largest.
fn distance(
    logs: &[&XRay],
    options: &Options,
    spec: LogSpec,
    own_size: Option<u64>,
) -> Result<u64, ConvertError> {
    let endless = LogSpec { version: 2, ..spec };
    let mut measure = ToFdr::new(FdrWriter::new(io::sink(), endless)?, spec);
    feed(logs, &options.selection, &mut measure)?;
    measure.write_gathered()?;
    let (largest, written, num) = measure.sizes();
    let size = own_size.filter(|&size| size >= largest).unwrap_or(largest);
    let bytes = size.saturating_mul(num);
    if bytes > SMALL_PADDING && bytes > written.saturating_mul(MOST_PADDING) {
        return Err(ConvertError::Padding { bytes });
    }
    Ok(size)
}

fn run<S: Finish>(logs: &[&XRay], selection: &Selection, mut sink: S) -> Result<Written, ConvertError> {
    let found = feed(logs, selection, &mut sink)?;
    let mut written = sink.finish()?;
    written.misfits.add(&found);
    Ok(written)
}

/// Tells a sink what is in the logs, and counts what is in none.
fn feed<S: Sink>(logs: &[&XRay], selection: &Selection, sink: &mut S) -> Result<Misfits, ConvertError> {
    let mut misfits = Misfits::default();
    if selection.is_all() {
        feed_all(logs, selection, sink, &mut misfits)?;
    } else {
        feed_all(logs, selection, &mut Selected::new(selection, sink), &mut misfits)?;
    }
    Ok(misfits)
}

fn feed_all<S: Sink>(
    logs: &[&XRay],
    selection: &Selection,
    sink: &mut S,
    misfits: &mut Misfits,
) -> Result<(), ConvertError> {
    let (places, copies) = read_logs::ordered_buffers(logs);
    misfits.copies = misfits.copies.saturating_add(copies);
    for place in places {
        read_logs::read_buffer(&place, selection, sink, misfits)?;
    }
    let mut basics: Vec<_> = logs
        .iter()
        .filter_map(|log| match log.content() {
            Content::Basic(survey) => Some((log, survey)),
            Content::Fdr(_) | Content::Profile(_) => None,
        })
        .collect();
    basics.sort_by_key(|(_, survey)| survey.span);
    for (log, survey) in basics {
        read_logs::read_basic_log(log, survey, selection, sink, misfits)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
