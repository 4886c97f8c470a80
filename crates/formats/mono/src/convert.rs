//! Conversion of logs: to another data version, to a part of a log, or of several logs of one run to one log. Each
//! buffer becomes one buffer with the same base values, so an unchanged log is written byte for byte. Items that the
//! target data version cannot represent are counted.

mod adapt;
mod brackets;
mod counters;
mod cut;
mod misfits;
mod order;
mod piece;
mod selection;

use std::fmt;
use std::io::{self, Write};

use perfuse_wire::ParseError;

use super::MonoLog;
use super::consts::NEWEST;
use super::dialect::Dialect;
use super::header::Header;

pub use misfits::{Misfit, Written};
pub use selection::{Selection, ThreadChoice};

use counters::CounterSums;
use order::Told;
use piece::Piece;

/// What to write.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Target data version; if `None`, the exact encoding of the first log.
    pub version: Option<u8>,
    /// The part of the logs to write.
    pub selection: Selection,
    /// Allows logs of different runs. Their addresses are not distinguished in the result.
    pub any_run: bool,
}

/// Why a conversion failed.
#[derive(Debug)]
pub enum ConvertError {
    /// The output failed.
    Output(io::Error),
    /// No log was given.
    Nothing,
    /// The data version does not exist.
    Version(u8),
    /// The logs are of programs with different pointer sizes.
    Pointers(u8, u8),
    /// The logs are of different processes, or of one process id at different times.
    Runs(String, String),
    /// A buffer would exceed the maximum length.
    Buffer(ParseError),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => error.fmt(f),
            Self::Nothing => f.write_str("no log to convert"),
            Self::Version(version) => write!(f, "there is no data version {version}: they are 1 to {NEWEST}"),
            Self::Pointers(first, other) => {
                write!(f, "the logs are not of one run: their pointers have {first} and {other} bytes")
            }
            Self::Runs(first, other) => write!(f, "the logs are not of one run: {first}, and {other}"),
            Self::Buffer(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConvertError {}

impl From<io::Error> for ConvertError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Writes one log from the logs of a run. A buffer that occurs in several logs is written once.
///
/// # Errors
/// When the output fails, there is no log, the logs are not of one run, or the data version does not exist.
pub fn convert<W: Write>(logs: &[&MonoLog], options: &Options, mut out: W) -> Result<Written, ConvertError> {
    let first = *logs.first().ok_or(ConvertError::Nothing)?;
    for log in logs {
        same_run(first.header(), log.header(), options.any_run)?;
    }
    let to = target(first, options.version)?;
    let mut written = Written::default();
    let mut bytes = Vec::new();
    header(first.header(), to, &mut written).write(&mut bytes);
    out.write_all(&bytes)?;
    let mut pieces: Vec<_> = logs.iter().map(|log| Piece::new(log, to, &options.selection)).collect();
    let runs: Vec<_> = logs.iter().map(|log| of_run(first.header(), log.header())).collect();
    let mut sums = CounterSums::new(logs);
    let mut told = Told::new(logs.len() > 1);
    for place in order::places(logs, &mut written) {
        let Some(piece) = pieces.get_mut(place.log) else { continue };
        let counted = runs.get(place.log) == Some(&true);
        bytes.clear();
        piece.buffer(&place, &mut told, counted.then_some(&mut sums), &mut written, &mut bytes)?;
        out.write_all(&bytes)?;
    }
    out.flush()?;
    Ok(written)
}

/// The encoding to write: that of the first log, or the released one of the requested data version.
fn target(first: &MonoLog, version: Option<u8>) -> Result<Dialect, ConvertError> {
    let own = first.survey().dialect;
    match version {
        None => Ok(own),
        Some(version) if !(1..=NEWEST).contains(&version) => Err(ConvertError::Version(version)),
        Some(version) if version == own.version && own.early == Default::default() => Ok(own),
        Some(version) => Ok(Dialect::released(version, own.pointer_bytes)),
    }
}

/// Converts the file header.
fn header(of: &Header, to: Dialect, written: &mut Written) -> Header {
    if of.dialect() == (Dialect { early: Default::default(), ..to }) {
        return of.clone();
    }
    let mut new = of.converted(&to);
    if to.version == 1 && to.minor <= 1 {
        // The reader of 2010 reads flags from the upper half of the startup time, and the profiler wrote 0 in all of
        // these fields.
        (new.fixed.startup_time, new.timer_overhead, new.pid) = (0, 0, 0);
    }
    let texts =
        |header: &Header| (0..3).filter(|&at| header.text(at).is_some_and(|it| !it.is_empty())).count();
    let pairs = [
        (of.fixed.startup_time, new.fixed.startup_time),
        (of.startup_ns, new.startup_ns),
        (of.timer_overhead.into(), new.timer_overhead.into()),
        (of.pid.into(), new.pid.into()),
        (of.port.into(), new.port.into()),
    ];
    let lost = pairs.iter().filter(|(before, after)| before != after).count();
    let lost = lost.saturating_add(texts(of).saturating_sub(texts(&new)));
    written.add(Misfit::HeaderFields, lost as u64);
    new
}

/// Whether two logs can be of the same run: known values (not 0) of process id and start time are equal.
fn of_run(first: &Header, other: &Header) -> bool {
    let same = |a: u64, b: u64| a == b || a == 0 || b == 0;
    same(first.pid.into(), other.pid.into()) && same(first.fixed.startup_time, other.fixed.startup_time)
}

/// Checks that two logs can become one.
fn same_run(first: &Header, other: &Header, any_run: bool) -> Result<(), ConvertError> {
    let (a, b) = (first.fixed.ptrsize, other.fixed.ptrsize);
    if a != b {
        return Err(ConvertError::Pointers(a, b));
    }
    if any_run || of_run(first, other) {
        return Ok(());
    }
    let name =
        |header: &Header| format!("process {} that started at {} ms", header.pid, header.fixed.startup_time);
    Err(ConvertError::Runs(name(first), name(other)))
}

#[cfg(test)]
mod tests;
