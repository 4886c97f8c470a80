//! The clock of a recording, as Python's `perfuse.clock.Clock`.

use perfuse_formats::{Clock, ClockMap};
use perfuse_tables::{Alignment, Choices};
use pyo3::prelude::*;

use crate::choice::choice;

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
    let alignments: Vec<_> = Alignment::ALL.iter().map(|&known| (known.name(), known)).collect();
    Ok(Clock {
        kind: known("kind", kind, Clock::KINDS)?,
        hz: *hz,
        hz_source: known("hz_source", hz_source, Clock::HZ_SOURCES)?,
        stated_hz: *stated_hz,
        map,
        uncertainty_ns: *uncertainty_ns,
        alignment: choice("alignment", alignment, &alignments)?,
    })
}

fn known(option: &str, word: &str, all: &[&'static str]) -> PyResult<&'static str> {
    choice(option, word, &all.iter().map(|&known| (known, known)).collect::<Vec<_>>())
}
