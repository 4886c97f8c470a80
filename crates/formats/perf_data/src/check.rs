//! Checks a recording against its specification and reports every departure.

use perfuse_wire::{Diagnostics, Rule};

use super::consts::{RecordType, byte_order};
use super::perf_data::PerfData;
use super::perf_file::PerfFile;
use super::record::RecordsEnd;
use super::rules::*;
use super::timed_passes::{num_incomplete, sched_states};

/// Reports every departure from the specification.
pub fn check(perf: &PerfData, sink: &mut Diagnostics) {
    let file = &**perf.file();
    for finding in &file.findings {
        sink.push(finding.rule, finding.offset, None, finding.field, || finding.message.clone());
    }
    check_header(perf, sink);
    file.survey().record_findings.rows().iter().cloned().for_each(|row| sink.push_row(row));
    check_damage(file, sink);
    check_end(file, sink);
    check_trailing(file, sink);
    check_survey(file, sink);
}

/// Checks header, attributes and features.
fn check_header(perf: &PerfData, sink: &mut Diagnostics) {
    let file = &**perf.file();
    if !file.pipe && file.header.data_size == 0 {
        sink.push(&UNFINISHED, 48, None, "data_size", || {
            format!(
                "data_size is 0, and {} bytes follow the header",
                file.records.end.saturating_sub(file.records.start)
            )
            .into()
        });
    }
    if file.features.iter().next().is_none() {
        sink.push(&NO_FEATURES, 0, None, "features", || "no feature section can be read".into());
    }
    if !file.attributes.list().is_empty() && !perf.clock_is_monotonic() {
        sink.push(&NOT_MONOTONIC, 0, None, "clockid", || match perf.clockid() {
            Some(clockid) => format!("times are of clock {clockid}, not CLOCK_MONOTONIC (1)").into(),
            None => "times are of perf's own clock, not CLOCK_MONOTONIC".into(),
        });
    }
    if let Some(attribute) = file.attributes.list().iter().find(|attribute| !attribute.layout.has_time()) {
        sink.push(&NO_TIME, 0, None, "sample_type", || {
            format!("samples of {} have no time", attribute.name).into()
        });
    }
}

/// Checks the end of the records.
fn check_end(file: &PerfFile, sink: &mut Diagnostics) {
    let survey = file.survey();
    let index = Some(survey.num_records);
    match survey.end {
        RecordsEnd::Complete if file.header.data_size != 0 => {
            let expected_end = file.header.data_offset.saturating_add(file.header.data_size);
            let end = file.source.len() as u64;
            if expected_end > end {
                sink.push(&TRUNCATED, end, None, "data_size", || {
                    format!("the records should end at {expected_end:#x}, but the file ends at {end:#x}")
                        .into()
                });
            }
        }
        RecordsEnd::Complete => {}
        RecordsEnd::Message { offset } => sink.push(&TRAILING, offset, None, "size", || {
            let bytes = (file.source.len() as u64).saturating_sub(offset);
            format!("{bytes} bytes follow the last record; perf's own message begins there").into()
        }),
        RecordsEnd::Short { offset, need, have } => sink.push(&TRUNCATED, offset, index, "size", || {
            format!("the last record has {need} bytes, {have} are left").into()
        }),
        RecordsEnd::BadSize { offset, .. } | RecordsEnd::UnknownType { offset, .. } => {
            let skipped = file.records.end.saturating_sub(offset);
            sink.push(&BAD_SIZE, offset, index, "size", || describe_damage(survey.end, skipped).into());
        }
    }
}

/// Checks that records follow each other.
fn check_damage(file: &PerfFile, sink: &mut Diagnostics) {
    for damage in &file.survey().damage {
        if let Some(next) = damage.next {
            let skipped = next.saturating_sub(damage.offset);
            sink.push(&BAD_SIZE, damage.offset, None, "size", || {
                describe_damage(damage.reason, skipped).into()
            });
        }
    }
}

/// Why bytes are not records, and how many.
fn describe_damage(reason: RecordsEnd, skipped: u64) -> String {
    let reason = match reason {
        RecordsEnd::BadSize { size: size @ 8.., .. } => {
            format!("the record's size is {size}; the kernel writes multiples of 8")
        }
        RecordsEnd::BadSize { size, .. } => format!("the record's size is {size}; its header alone is 8"),
        RecordsEnd::Short { need, have, .. } => format!("the record has {need} bytes, {have} are left"),
        RecordsEnd::UnknownType { number, .. } => format!("no record has type {number}"),
        RecordsEnd::Complete | RecordsEnd::Message { .. } => "no record follows".to_owned(),
    };
    format!("{reason}; {skipped} bytes were skipped")
}

/// Checks that the file ends with its last section.
fn check_trailing(file: &PerfFile, sink: &mut Diagnostics) {
    let end = file.sections_end;
    let trailing = usize::try_from(end).ok().and_then(|end| file.source.get(end..)).unwrap_or_default();
    // Without the size of the records, or with sections that are missing, the end is unknown.
    let is_known = file.findings.iter().all(|finding| finding.rule != &SECTION_OUTSIDE);
    if is_known && !trailing.is_empty() {
        let what = if byte_order(trailing).is_some() {
            "another recording begins there"
        } else {
            "no section contains them"
        };
        sink.push(&TRAILING, end, None, "size", || {
            format!("{} bytes follow the last section; {what}", trailing.len()).into()
        });
    }
}

/// Reports departures that concern the recording as a whole.
fn check_survey(file: &PerfFile, sink: &mut Diagnostics) {
    let survey = file.survey();
    if survey.counts.keys().any(|kind| kind.is_compressed())
        && let Some((offset, error)) = &file.unpacked().error
    {
        sink.push(&BAD_COMPRESSION, *offset, None, "data", || error.clone().into());
    }
    let start = file.records.start;
    let mut report_count = |rule: &'static Rule, field: &'static str, count: u64, what: &str| {
        if count != 0 {
            sink.push(rule, start, None, field, || format!("{count} {what}").into());
        }
    };
    let count = |kind: RecordType| survey.counts.get(&kind).copied().unwrap_or(0);
    report_count(
        &USER_STACKS,
        "sample_type",
        survey.num_user_stacks,
        "samples have a copy of the user stack",
    );
    report_count(
        &LATE_RECORDS,
        "time",
        survey.num_late,
        "records are older than records of a finished round",
    );
    report_count(&MANY_INHERITED, "", file.tasks().num_left_out, "inherited mappings were left out");
    report_count(&AUX_DATA, "", count(RecordType::AUXTRACE), "records of AUX data");
    report_count(
        &DEFERRED,
        "cookie",
        num_incomplete(file),
        "samples without their user part, which no later record contains",
    );
    report_count(
        &ONE_SIDED,
        "",
        sched_states(file).iter().filter(|state| state.has_unknown_end).count() as u64,
        "times on or off a processor of which the end was not recorded",
    );
    for &(fork, pid) in &file.tasks().reused {
        let offset = file.at(fork).map_or(start, |record| record.offset);
        sink.push(&REUSED_PID, offset, None, "pid", || {
            format!("a process {pid} began after another of that pid had ended; they are shown as one").into()
        });
    }
}
