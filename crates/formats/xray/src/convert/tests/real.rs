//! Real logs of every writer, converted to every version.

use std::collections::BTreeMap;

use perfuse_wire::Endian;

use super::*;
use crate::consts::{HEADER_BYTES, METADATA_BYTES};
use crate::layout;
use crate::log::LogContent;
use crate::record_iter::{RecordItem, RecordIter};
use crate::records::Record;

const LOGS: &[&str] = &["fdr", "fdr-old", "basic", "dso", "synthetic", "synthetic-be"];

fn fits_no_argument_rows(rows: &BTreeMap<(i32, i32), Vec<Row>>) -> BTreeMap<(i32, i32), Vec<Row>> {
    const ARGUMENT: i32 = perfuse_tables::CallEvent::Argument as i32;
    const TAIL_EXIT: i32 = perfuse_tables::CallEvent::TailExit as i32;
    let mut rows = rows.clone();
    for row in rows.values_mut().flatten() {
        if row.2 == TAIL_EXIT {
            row.2 = perfuse_tables::CallEvent::Exit as i32;
        }
    }
    rows.values_mut().for_each(|rows| rows.retain(|row| row.2 != ARGUMENT));
    rows
}

/// Rows by thread id alone, as in versions without process ids.
fn of_no_process(rows: BTreeMap<(i32, i32), Vec<Row>>) -> BTreeMap<(i32, i32), Vec<Row>> {
    let mut merged: BTreeMap<(i32, i32), Vec<Row>> = BTreeMap::new();
    for ((_, tid), rows) in rows {
        merged.entry((0, tid)).or_default().extend(rows);
    }
    merged.values_mut().for_each(|rows| rows.sort_by_key(|row| row.0));
    merged
}

#[test]
fn every_call_is_in_every_version() {
    let targets = (1..=5).map(|version| (Mode::Fdr, version)).chain((1..=3).map(|v| (Mode::Basic, v)));
    let targets: Vec<_> = targets.collect();
    for path in files(LOGS) {
        let log = open(&path);
        let before = rows(&log);
        for &(mode, version) in &targets {
            for endian in [Endian::Little, Endian::Big] {
                let (bytes, _) = converted(&[&log], &to(mode, version, endian));
                let again = of_bytes(&bytes);
                let header = again.header();
                assert_eq!((header.mode, header.file.version, header.endian), (mode, version, endian));
                let (mut expected, mut found) = (before.clone(), rows(&again));
                if version < 3 {
                    (expected, found) = (of_no_process(expected), of_no_process(found));
                }
                if (mode, version) == (Mode::Basic, 1) {
                    expected = fits_no_argument_rows(&expected);
                }
                assert_eq!(found, expected, "{} to {mode:?} {version} {endian:?}", path.display());
            }
        }
    }
}

#[test]
fn a_log_as_it_should_be_comes_out_byte_for_byte() {
    for path in files(LOGS) {
        let log = open(&path);
        let (once, _) = converted(&[&log], &Options::like(&log));
        let log = of_bytes(&once);
        let (twice, done) = converted(&[&log], &Options::like(&log));
        assert!(once == twice, "{}", path.display());
        let unknown_wall_times = done.unsupported.unknown_wall_times;
        assert_eq!(done.unsupported, UnsupportedItems { unknown_wall_times, ..Default::default() });
    }
}

/// The bytes of a file with unused bytes set to 0.
fn without_garbage(log: &XRay) -> Vec<u8> {
    let LogContent::Fdr(survey) = log.content() else { panic!("not FDR") };
    let mut bytes = log.source().to_vec();
    bytes[5..8].fill(0);
    bytes[24..HEADER_BYTES].fill(0);
    let dialect = log.header().dialect();
    for block in &survey.blocks {
        let begin = block.offset as usize;
        for step in RecordIter::new(log.source(), begin..block.records.end, dialect) {
            let RecordItem::Metadata { offset, record, .. } = step else { continue };
            let used = match record {
                Record::NewBuffer { .. } => layout::NewBuffer::SIZE,
                Record::NewCpuId { .. } => layout::NewCpuId::SIZE,
                Record::TscWrap { .. } => layout::TscWrap::SIZE,
                Record::WallTime { .. } => layout::WallTimeMarker::SIZE,
                Record::CallArgument(_) => layout::CallArgument::SIZE,
                Record::BufferExtents(_) => layout::BufferExtents::SIZE,
                Record::Pid(_) => layout::Pid::SIZE,
                Record::Custom(_) if dialect.version == 4 => layout::CustomEventV4::SIZE,
                Record::Custom(_) => layout::CustomEventV5::SIZE,
                Record::Typed(_) => layout::TypedEventV5::SIZE,
                other => panic!("{other:?}"),
            };
            bytes[offset + used as usize..offset + METADATA_BYTES].fill(0);
        }
    }
    bytes
}

/// The runtimes of LLVM 8 to 22 write valid logs, except for garbage in unused bytes.
#[test]
fn runtimes_of_today_are_reproduced() {
    let faulty = ["typed-v5", "blocked-thread-dup-v5", "threads4-rotate-v5", "threads2-tinybuf-v5"];
    let mut reproduced = 0;
    for path in files(&["fdr", "dso", "synthetic"]) {
        let log = open(&path);
        let (bytes, _) = converted(&[&log], &Options::like(&log));
        if faulty.iter().any(|name| path.to_str().unwrap().contains(name)) {
            continue;
        }
        assert!(bytes == without_garbage(&log), "{}", path.display());
        reproduced += 1;
    }
    assert!(reproduced >= 15 || perfuse_corpus::find("xray").is_none(), "{reproduced}");
}

/// The big-endian files of the corpus were made by a script that is independent of this writer.
#[test]
fn big_endian_is_as_another_encoder_has_it() {
    for (mode, name) in [("fdr", "small-v5"), ("fdr", "wrap-v5"), ("basic", "basic-small-v3")] {
        let Some(path) = corpus_log(&format!("{mode}/{name}")) else { continue };
        let log = open(&path);
        let (bytes, _) = converted(&[&log], &Options { endian: Endian::Big, ..Options::like(&log) });
        let Some(big_endian) = corpus_log(&format!("synthetic-be/{name}-be")) else { continue };
        let theirs = open(&big_endian);
        let expected = match theirs.header().mode {
            Mode::Fdr => without_garbage(&theirs),
            _ => theirs.source().to_vec(),
        };
        assert!(bytes[HEADER_BYTES..] == expected[HEADER_BYTES..], "{name}");
    }
}

#[test]
fn events_keep_their_bytes() {
    for path in files(LOGS) {
        let log = open(&path);
        if log.header().mode != Mode::Fdr {
            continue;
        }
        let before = events(&log);
        for version in 1..=5 {
            let (bytes, done) = converted(&[&log], &to(Mode::Fdr, version, Endian::Little));
            let after = events(&of_bytes(&bytes));
            let typed = before.iter().filter(|event| event.1.is_some()).count();
            let expected: Vec<_> =
                before.iter().filter(|event| version >= 3 || event.1.is_none()).cloned().collect();
            let lost = if version < 3 { typed as u64 } else { 0 };
            assert_eq!(done.unsupported.events, lost, "{}", path.display());
            let absent = expected.iter().filter(|event| event.2.is_none()).count();
            assert_eq!(done.unsupported.payloads, absent as u64);
            assert_eq!(after.len(), expected.len(), "{} to {version}", path.display());
            for (after, before) in after.iter().zip(&expected) {
                assert_eq!((after.0, after.1), (before.0, before.1), "{} to {version}", path.display());
                if before.2.is_some() {
                    assert_eq!(after.2, before.2, "{} to {version}", path.display());
                }
            }
        }
    }
}

#[test]
fn the_rate_a_log_shows_is_shown_by_its_copy() {
    for path in files(&["fdr", "fdr-old"]) {
        let log = open(&path);
        let (bytes, _) = converted(&[&log], &to(Mode::Fdr, 5, Endian::Little));
        let (before, after) = (log.estimate(), of_bytes(&bytes).estimate());
        if let Some((before, after)) = before.zip(after) {
            let away = (after.hz / before.hz - 1.0).abs();
            // Where buffers of version 1 have no counter, it is that of their first record.
            assert!(away <= 3.0 * before.relative_error.max(after.relative_error), "{}", path.display());
        }
        if log.header().file.version > 1 {
            assert_eq!(before, after, "{}", path.display());
        }
    }
}
