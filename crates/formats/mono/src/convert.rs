//! Conversion of logs: to another data version, to a part of a log, or of several logs of one run to one log.
//!
//! Each buffer becomes one buffer with the same base values, so an unchanged log is written byte for byte. Items that
//! the target data version cannot represent are counted.

mod adapt;
mod counter_sums;
mod log_converter;
mod merge_order;
mod outcome;
mod time_range;

use std::io::Write;

use crate::consts::NEWEST;
use crate::convert::counter_sums::CounterSums;
use crate::convert::log_converter::LogConverter;
use crate::convert::merge_order::WrittenDefinitions;
use crate::dialect::LogDialect;
use crate::header::Header;
use crate::recording::MonoLog;

pub use crate::convert::log_converter::{LogSelection, ThreadChoice};
pub use crate::convert::outcome::{ConvertSummary, LogConvertError, UnsupportedItem};

/// What to write.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Target data version; if `None`, the exact encoding of the first log.
    pub version: Option<u8>,
    /// The part of the logs to write.
    pub selection: LogSelection,
    /// Allows logs of different runs. Their addresses are not distinguished in the result.
    pub any_run: bool,
}

/// Writes one log from the logs of a run. A buffer that occurs in several logs is written once.
///
/// # Errors
/// When the output fails, there is no log, the logs are not of one run, or the data version does not exist.
pub fn convert<W: Write>(
    logs: &[&MonoLog],
    options: &Options,
    mut out: W,
) -> Result<ConvertSummary, LogConvertError> {
    let first = *logs.first().ok_or(LogConvertError::Nothing)?;
    for log in logs {
        check_same_run(first.header(), log.header(), options.any_run)?;
    }
    let to = target_dialect(first, options.version)?;
    let mut summary = ConvertSummary::default();
    let mut bytes = Vec::new();
    convert_header(first.header(), to, &mut summary).write(&mut bytes);
    out.write_all(&bytes)?;
    let mut converters: Vec<_> =
        logs.iter().map(|log| LogConverter::new(log, to, &options.selection)).collect();
    let same_run: Vec<_> = logs.iter().map(|log| may_be_of_same_run(first.header(), log.header())).collect();
    let mut sums = CounterSums::new(logs);
    let mut definitions = WrittenDefinitions::new(logs.len() > 1);
    for buffer in merge_order::merge_buffers(logs, &mut summary) {
        let Some(converter) = converters.get_mut(buffer.log) else { continue };
        let has_counters = same_run.get(buffer.log) == Some(&true);
        bytes.clear();
        converter.convert_buffer(
            &buffer,
            &mut definitions,
            has_counters.then_some(&mut sums),
            &mut summary,
            &mut bytes,
        )?;
        out.write_all(&bytes)?;
    }
    out.flush()?;
    Ok(summary)
}

/// The encoding to write: that of the first log, or the released one of the requested data version.
fn target_dialect(first: &MonoLog, version: Option<u8>) -> Result<LogDialect, LogConvertError> {
    let own = first.survey().dialect;
    match version {
        None => Ok(own),
        Some(version) if !(1..=NEWEST).contains(&version) => Err(LogConvertError::Version(version)),
        Some(version) if version == own.version && own.prerelease == Default::default() => Ok(own),
        Some(version) => Ok(LogDialect::released(version, own.pointer_bytes)),
    }
}

/// Converts the file header.
fn convert_header(of: &Header, to: LogDialect, summary: &mut ConvertSummary) -> Header {
    if of.dialect() == (LogDialect { prerelease: Default::default(), ..to }) {
        return of.clone();
    }
    let mut new = of.converted(&to);
    if to.version == 1 && to.minor <= 1 {
        // The reader of 2010 reads flags from the upper half of the startup time, and the profiler wrote 0 in all of
        // these fields.
        (new.fixed.startup_time, new.timer_overhead, new.pid) = (0, 0, 0);
    }
    let num_texts =
        |header: &Header| (0..3).filter(|&at| header.text(at).is_some_and(|it| !it.is_empty())).count();
    let changes = [
        (of.fixed.startup_time, new.fixed.startup_time),
        (of.startup_ns, new.startup_ns),
        (of.timer_overhead.into(), new.timer_overhead.into()),
        (of.pid.into(), new.pid.into()),
        (of.port.into(), new.port.into()),
    ];
    let num_lost = changes.iter().filter(|(before, after)| before != after).count();
    let num_lost = num_lost.saturating_add(num_texts(of).saturating_sub(num_texts(&new)));
    summary.count_item(UnsupportedItem::HeaderFields, num_lost as u64);
    new
}

/// Whether two logs can be of the same run: known values (not 0) of process id and start time are equal.
fn may_be_of_same_run(first: &Header, other: &Header) -> bool {
    let same = |a: u64, b: u64| a == b || a == 0 || b == 0;
    same(first.pid.into(), other.pid.into()) && same(first.fixed.startup_time, other.fixed.startup_time)
}

/// Checks that two logs can become one.
fn check_same_run(first: &Header, other: &Header, any_run: bool) -> Result<(), LogConvertError> {
    let (a, b) = (first.fixed.ptrsize, other.fixed.ptrsize);
    if a != b {
        return Err(LogConvertError::Pointers(a, b));
    }
    if any_run || may_be_of_same_run(first, other) {
        return Ok(());
    }
    let name =
        |header: &Header| format!("process {} that started at {} ms", header.pid, header.fixed.startup_time);
    Err(LogConvertError::Runs(name(first), name(other)))
}

#[cfg(test)]
mod tests;
