//! Truncated files and flipped bytes: no panic, termination, offsets inside the file, readable tables.

use std::fs::File;
use std::io::{Read, Seek};

use proptest::prelude::*;

use super::{batches, open_bytes, testdata};
use crate::{FORMAT, InjectedMmap, PerfData, inject};
use perfuse_recording::{Position, Recording, Source};

/// Exercises all operations on a file.
fn exercise(bytes: Vec<u8>) {
    let len = bytes.len() as u64;
    let Ok(perf) = PerfData::open(std::sync::Arc::new(Source::from_bytes("damaged", bytes).unwrap())) else {
        return;
    };
    let mut sink = perfuse_wire::Diagnostics::with_limit(50);
    perf.check(&mut sink);
    for row in sink.rows() {
        assert!(row.offset <= len, "{row:?}");
    }
    let mut at = Position::default();
    let mut num = 0;
    while let Some(view) = perf.next_record(&mut at) {
        assert!(view.offset < len);
        num += 1;
    }
    assert_eq!(num, perf.summary().counts.iter().map(|(_, count)| count).sum::<u64>());
    let rows = |table| batches(&perf, table).iter().map(|batch| batch.num_rows() as u64).sum::<u64>();
    // Counts of members of groups, and times off the processor, add rows.
    let num_samples = perf.file().survey().num_samples;
    assert!((num_samples..=perf.extent().sample).contains(&rows("callchains")));
    for table in FORMAT.tables {
        rows(table);
    }
    assert_eq!(rows("mappings"), u64::from(perf.extent().mapping));
    rows("threads");
    let (_, _) = (perf.command_line(), perf.clock_data());
    let added = [InjectedMmap {
        pid: 1,
        tid: 1,
        ts_ns: 1,
        start_address: 0x1000,
        size: 0x1000,
        file_offset: 0,
        path: "/x".to_owned(),
        build_id: None,
    }];
    let _ = inject(&perf, &added, &[], &mut std::io::Cursor::new(Vec::new()));
}

const RECORDINGS: [&str; 9] =
    ["fork", "zstd", "pipe", "group", "branches", "memory", "switches", "deferred", "offcpu"];

/// The bytes after a repair, and the codes of its changes.
fn repaired(bytes: &[u8]) -> (Vec<u8>, Vec<&'static str>) {
    let mut out = tempfile();
    let done = open_bytes(bytes.to_vec()).repair(&mut out).unwrap();
    let mut bytes = Vec::new();
    out.rewind().unwrap();
    out.read_to_end(&mut bytes).unwrap();
    (bytes, done.changes.iter().map(|change| change.rule.code).collect())
}

/// A file without a name.
fn tempfile() -> File {
    let path = std::env::temp_dir().join(format!(
        "perfuse-perf-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

#[test]
fn an_undamaged_recording_is_copied() {
    for index in 0..4 {
        let whole = recording(index);
        assert!(repaired(&whole) == (whole, Vec::new()));
    }
}

#[test]
fn a_repaired_recording_is_not_changed_again() {
    for index in 0..4 {
        let whole = recording(index);
        for (cut, step) in [(whole.len() / 2, 7), (whole.len() - 60, 1)] {
            for len in (cut..whole.len()).step_by(step).take(40) {
                let (once, changes) = repaired(&whole[..len]);
                assert!(!changes.is_empty() || once == whole[..len], "{index} {len}");
                assert!(repaired(&once) == (once, Vec::new()), "{index} {len}");
            }
        }
    }
}

#[test]
fn records_that_cannot_be_read_are_left_out() {
    let mut bytes = recording(0);
    let records = |bytes: &[u8]| open_bytes(bytes.to_vec()).summary().counts;
    // The first sample states more frames than it has bytes for.
    let samples =
        |counts: &[(String, u64)]| counts.iter().find(|(name, _)| name == "PERF_RECORD_SAMPLE").unwrap().1;
    let num = samples(&records(&bytes));
    let perf = open_bytes(bytes.clone());
    let mut at = Position::default();
    let found =
        std::iter::from_fn(|| perf.next_record(&mut at)).find(|view| view.name == "PERF_RECORD_SAMPLE");
    let (offset, size) = found.map(|view| (view.offset as usize, view.size as usize)).unwrap();
    let nr = (offset + 8..offset + size).step_by(8).find(|&at| {
        let word = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        at + 8 + 8 * word as usize == offset + size
    });
    bytes[nr.unwrap()] = 0xff;
    let (once, changes) = repaired(&bytes);
    assert_eq!(changes, ["PD010"]);
    assert_eq!(samples(&records(&once)), num - 1);
    assert!(repaired(&once) == (once, Vec::new()));
}

#[test]
fn a_sample_with_an_id_of_no_event_is_left_out() {
    let mut bytes = recording(3);
    let num_samples = |bytes: &[u8]| open_bytes(bytes.to_vec()).file().survey().num_samples;
    let num = num_samples(&bytes);
    let perf = open_bytes(bytes.clone());
    let mut at = Position::default();
    let found =
        std::iter::from_fn(|| perf.next_record(&mut at)).find(|view| view.name == "PERF_RECORD_SAMPLE");
    let first = found.map(|view| view.offset as usize).unwrap();
    let id = (first..).step_by(8).find(|&at| {
        let word = u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        perf.file().attributes.index_of(word).is_some()
    });
    bytes[id.unwrap()] ^= 0x55;
    let (once, changes) = repaired(&bytes);
    assert_eq!(changes, ["PD013"]);
    assert_eq!(num_samples(&once), num - 1);
    assert!(repaired(&once) == (once, Vec::new()));
}

#[test]
fn an_index_with_an_id_of_no_event_is_left_out() {
    let mut bytes = recording(0);
    let indices = |bytes: &[u8]| {
        let counts = open_bytes(bytes.to_vec()).summary().counts;
        counts.iter().find(|(name, _)| name == "PERF_RECORD_ID_INDEX").map_or(0, |(_, num)| *num)
    };
    assert_eq!(indices(&bytes), 1);
    let perf = open_bytes(bytes.clone());
    let mut at = Position::default();
    let found =
        std::iter::from_fn(|| perf.next_record(&mut at)).find(|view| view.name == "PERF_RECORD_ID_INDEX");
    // A header and the number of entries precede the first id.
    bytes[found.map(|view| view.offset as usize).unwrap() + 16] ^= 0x55;
    let (once, changes) = repaired(&bytes);
    assert_eq!(changes, ["PD013"]);
    assert_eq!(indices(&once), 0);
    assert!(repaired(&once) == (once, Vec::new()));
}

fn recording(index: usize) -> Vec<u8> {
    let name = RECORDINGS[index];
    std::fs::read(testdata(&format!("{name}.perf.data"))).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn truncated(which in 0..RECORDINGS.len(), at in any::<prop::sample::Index>()) {
        let mut bytes = recording(which);
        bytes.truncate(at.index(bytes.len()));
        exercise(bytes);
    }

    #[test]
    fn flipped(which in 0..RECORDINGS.len(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = recording(which);
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= value;
        }
        exercise(bytes);
    }

    /// Most bytes of a file are call chains; this tests headers and attributes more often.
    #[test]
    fn flipped_in_the_header(which in 0..RECORDINGS.len(), at in 8usize..400, value in 1u8..) {
        let mut bytes = recording(which);
        bytes[at] ^= value;
        exercise(bytes);
    }
}

/// Counts and sizes larger than the file do not need more memory than the file.
#[test]
fn largest_counts_and_sizes() {
    for which in 0..RECORDINGS.len() {
        let whole = recording(which);
        for at in (8..600).step_by(4).chain((600..whole.len() - 8).step_by(52)) {
            let mut bytes = whole.clone();
            bytes[at..at + 4].fill(0xff);
            let perf = PerfData::open(std::sync::Arc::new(Source::from_bytes("damaged", bytes).unwrap()));
            if let Ok(perf) = perf {
                perf.extent();
                perf.check(&mut perfuse_wire::Diagnostics::with_limit(5));
            }
        }
    }
}

#[test]
fn a_damaged_compressed_record_is_reported_with_its_offset() {
    let mut bytes = recording(1);
    // The magic of the zstd frame.
    let at = bytes.windows(4).position(|four| four == [0x28, 0xb5, 0x2f, 0xfd]).unwrap();
    bytes[at] ^= 1;
    let perf = open_bytes(bytes);
    let mut sink = perfuse_wire::Diagnostics::default();
    perf.check(&mut sink);
    let found: Vec<_> = sink.rows().iter().map(|row| (row.rule.code, row.offset)).collect();
    assert_eq!(found, [("PD012", at as u64 - 8)]);
    assert_eq!(perf.extent().sample, 0);
}
