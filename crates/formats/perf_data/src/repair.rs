//! Repairs a recording: writes every readable record, uncompressed and in time order, with a correct header. A recording
//! without damage is copied.

use std::fs::File;
use std::io::{self, Write};

use perfuse_wire::{Diagnostic, Diagnostics, Severity};

use super::check;
use super::consts::RecordType;
use super::perf_data::PerfData;
use super::rules::{
    BAD_BODY, BAD_COMPRESSION, BAD_FEATURE, BAD_SIZE, EMPTY_FEATURE, LATE_RECORDS, MOVED_SECTIONS,
    SECTION_OUTSIDE, TRAILING, TRUNCATED, UNFINISHED, UNKNOWN_EVENT,
};
use super::writer::{InjectError, not_copied_because, write_readable};
use perfuse_recording::{Change, Repaired};

/// Writes the repaired recording.
///
/// # Errors
/// When the output cannot be written, or no event attribute can be read.
pub fn repair(perf: &PerfData, out: &mut File) -> io::Result<Repaired> {
    let mut sink = Diagnostics::default();
    check::check(perf, &mut sink);
    let found = sink.into_rows();
    let changes: Vec<_> = found.iter().filter_map(change).collect();
    let has_attributes = !perf.file().attributes.list().is_empty();
    let is_changed = !changes.is_empty();
    let lost =
        found.into_iter().filter(|d| d.rule.severity >= Severity::DataLoss && d.rule.code != UNFINISHED.code);
    let lost = lost.collect();
    if has_attributes && !is_changed {
        out.write_all(&perf.file().source)?;
        return Ok(Repaired { changes, lost, rewritten: Vec::new() });
    }
    write_readable(perf, out).map_err(|error| match error {
        InjectError::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
    })?;
    // The written file may have rounds where the damaged one lost them.
    let kinds = perf.file().survey().counts.keys().chain([&RecordType::FINISHED_ROUND]);
    let rewritten = kinds.filter_map(|kind| Some((kind.name().into_owned(), not_copied_because(*kind)?)));
    Ok(Repaired { changes, lost, rewritten: rewritten.collect() })
}

/// The change that removes a departure; `None` for others.
fn change(found: &Diagnostic) -> Option<Change> {
    let rule = found.rule;
    let message = if rule == &UNFINISHED {
        "the header contains the sizes and the index of the file"
    } else if rule == &LATE_RECORDS {
        "sorted by time"
    } else if [&TRUNCATED, &BAD_SIZE, &BAD_COMPRESSION, &BAD_BODY].contains(&rule) {
        "unreadable data was left out"
    } else if rule == &SECTION_OUTSIDE {
        "left out of the header"
    } else if rule == &BAD_FEATURE || rule == &EMPTY_FEATURE {
        "the section was left out"
    } else if rule == &MOVED_SECTIONS {
        "the header states where they are"
    } else if rule == &TRAILING {
        "the bytes after the last section were left out"
    } else if rule == &UNKNOWN_EVENT && found.field != "sample_type" {
        "the record was left out"
    } else {
        return None;
    };
    Some(Change { rule, offset: found.offset, message: message.to_owned() })
}
