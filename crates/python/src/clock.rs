//! The clock of a recording, as Python's `perfuse.clock.Clock`.

use perfuse_formats::{Clock, ClockMap};
use perfuse_tables::{Alignment, Choices};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// The values of `perfuse.clock.Clock`: `(kind, hz, hz_source, stated_hz, numerator, denominator, offset_ns,
/// uncertainty_ns, alignment)`.
pub type ClockRow = (String, Option<u64>, String, Option<u64>, u64, u64, i64, Option<i64>, String);

pub fn clock_row(clock: Clock) -> ClockRow {
    let Clock { kind, hz, hz_source, stated_hz, map, uncertainty_ns, alignment } = clock;
    let ClockMap { numerator, denominator, offset_ns } = map;
    let (kind, source, alignment) = (kind.to_owned(), hz_source.to_owned(), alignment.name().to_owned());
    (kind, hz, source, stated_hz, numerator, denominator, offset_ns, uncertainty_ns, alignment)
}

pub fn clock_of(row: &ClockRow) -> PyResult<Clock> {
    let (kind, hz, hz_source, stated_hz, numerator, denominator, offset_ns, uncertainty_ns, alignment) = row;
    let map = ClockMap { numerator: *numerator, denominator: *denominator.max(&1), offset_ns: *offset_ns };
    let found = Alignment::ALL.iter().copied().find(|known| known.name() == alignment);
    Ok(Clock {
        kind: known("kind", kind, Clock::KINDS)?,
        hz: *hz,
        hz_source: known("hz_source", hz_source, Clock::HZ_SOURCES)?,
        stated_hz: *stated_hz,
        map,
        uncertainty_ns: *uncertainty_ns,
        alignment: found.ok_or_else(|| PyValueError::new_err(format!("not an alignment: {alignment}")))?,
    })
}

/// The value of an option that is one of some words.
fn known(option: &str, word: &str, all: &[&'static str]) -> PyResult<&'static str> {
    let found = all.iter().find(|known| **known == word).copied();
    found.ok_or_else(|| PyValueError::new_err(format!("{option} is one of {}, not {word:?}", all.join(", "))))
}
