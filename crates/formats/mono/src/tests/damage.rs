//! Tests of damaged logs: no panic, no endless loop, no allocation from an invalid count, and all lost data is
//! reported.

use perfuse_recording::{Placement, Position, Recording, TableRequest};
use proptest::prelude::*;

use crate::recording::MonoLog;
use crate::tests::assemble::*;

/// Uses every operation of a log; every reported offset is inside the file.
fn use_every_operation(log: &MonoLog) {
    let size = log.source().len() as u64;
    for found in checked(log) {
        assert!(found.offset <= size, "{} at {:#x} of {size:#x}", found.rule.code, found.offset);
    }
    let mut at = Position::default();
    let mut offsets = Vec::new();
    while let Some(record) = log.next_record(&mut at) {
        assert!(record.offset < size);
        offsets.push(record.offset);
    }
    let events = offsets.len() as u64;
    for (index, &offset) in (0u64..).zip(&offsets).step_by(1 + offsets.len() / 16) {
        for mut found in [log.seek_index(index), log.seek_offset(offset).unwrap()] {
            let record = log.next_record(&mut found).unwrap();
            assert_eq!((record.index, record.offset), (index, offset));
        }
    }
    assert_eq!(log.seek_index(u64::MAX).index, events);
    assert_eq!(events, log.survey().num_events());
    assert!(events <= size);
    for name in log.format().tables.iter().copied().chain(["records"]) {
        let table = log.table(name, &Placement::alone(log), &TableRequest::default()).unwrap();
        let batches: Vec<_> = table.collect();
        assert!(!batches.is_empty(), "{name} has a schema");
    }
}

/// Codes of diagnostics that report lost or invalid bytes.
const LOSSES: [&str; 5] = ["ML010", "ML011", "ML012", "ML013", "ML014"];

fn small() -> Vec<(String, Vec<u8>)> {
    fixtures().into_iter().filter(|(name, _)| name.starts_with("crafted")).collect()
}

#[test]
fn fixtures_have_no_damage() {
    for (name, bytes) in fixtures() {
        let log = open(bytes);
        use_every_operation(&log);
        assert!(!codes(&log).iter().any(|code| LOSSES.contains(code)), "{name}");
    }
}

#[test]
fn truncation_loses_only_the_end_and_is_reported() {
    // One of each family of encodings; all of them would take too long.
    let kinds = ["v01-32bit", "v05", "v12", "v13", "v14", "v17"];
    let is_selected = |name: &str| kinds.iter().any(|kind| name == format!("crafted-{kind}"));
    for (name, whole) in small().into_iter().filter(|(name, _)| is_selected(name)) {
        let first = open(whole.clone()).header().size as usize;
        let ends: Vec<_> =
            open(whole.clone()).survey().buffers.list.iter().map(|b| b.end() as usize).collect();
        let mut before = 0;
        for end in first..whole.len() {
            let log = open(whole[..end].to_vec());
            use_every_operation(&log);
            let events = log.survey().num_events();
            assert!(events >= before, "{name}: a longer file has no fewer events");
            before = events;
            let is_reported = codes(&log).iter().any(|code| LOSSES.contains(code));
            assert_eq!(is_reported, end != first && !ends.contains(&end), "{name} cut at {end}");
        }
    }
}

#[test]
fn a_truncated_header_is_rejected_with_its_offset() {
    for end in 0..header().len() {
        let source = perfuse_recording::Source::from_bytes("log", header()[..end].to_vec()).unwrap();
        let error = (crate::FORMAT.open)(std::sync::Arc::new(source)).err().unwrap();
        assert!(error.offset <= end as u64);
    }
}

const ROUND: fn() -> Vec<u8> = || event(0x81, &[]);

#[test]
fn a_damaged_event_affects_only_its_buffer() {
    let bad = vec![0xff; 9];
    let log = log(&[buffer(&[ROUND()]), buffer(&[ROUND(), bad, ROUND()]), buffer(&[ROUND(), ROUND()])]);
    use_every_operation(&log);
    assert_eq!(log.survey().num_events(), 4);
    let errors: Vec<_> = checked(&log).into_iter().filter(|found| found.rule.code == "ML014").collect();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].offset, header().len() as u64 + 2 * 48 + 2 + 2 + 1, "the byte after the event byte");
}

#[test]
fn a_wrong_length_ends_at_the_next_buffer() {
    for stated in [3u32, 51, 500, u32::MAX] {
        let mut first = buffer(&[ROUND()]);
        first[4..8].copy_from_slice(&stated.to_le_bytes());
        let log = log(&[first, buffer(&[ROUND()]), buffer(&[ROUND()])]);
        use_every_operation(&log);
        assert_eq!(log.survey().num_events(), 3, "length {stated}");
        assert!(codes(&log).contains(&"ML012"), "length {stated}");
    }
}

#[test]
fn bytes_between_buffers_are_skipped() {
    let log = log(&[
        buffer(&[ROUND()]),
        b"\x01LP something else \x01LPM".to_vec(),
        buffer(&[ROUND()]),
        vec![7; 99],
    ]);
    use_every_operation(&log);
    assert_eq!(log.survey().num_events(), 2);
    assert_eq!(codes(&log).iter().filter(|code| **code == "ML013").count(), 2);
}

#[test]
fn invalid_counts_allocate_nothing() {
    let huge = uleb(u64::MAX >> 1);
    let none: &[u8] = &[0];
    for event in [
        event(0x10, &[none, none, &[16], &huge]),
        event(0x31, &[&huge]),
        event(0x26, &[none, none, &[16, 0], &huge]),
        event(0x36, &[&huge]),
        event(0x07, &[none, &huge]),
        event(0x37, &[&huge]),
        [vec![0x81], vec![0x80; 11]].concat(),
    ] {
        let log = log(&[buffer(&[event, ROUND()])]);
        use_every_operation(&log);
        assert!(codes(&log).contains(&"ML014"));
    }
}

#[test]
fn a_repaired_log_has_no_damage() {
    let mut header = header();
    header[28] = 1;
    let cut = buffer(&[ROUND(), ROUND()]);
    let damaged =
        [buffer(&[ROUND(), vec![0x0b], ROUND()]), vec![1; 77], cut[..cut.len() - 1].to_vec()].concat();
    let log = open([header, damaged].concat());
    let events = log.survey().num_events();
    let after = open(repaired(&log));
    assert_eq!(after.survey().num_events(), events);
    let left = codes(&after);
    assert!(!left.iter().any(|code| LOSSES.contains(code) || *code == "ML001"), "{left:?}");
}

#[test]
fn events_of_a_snapshot_without_a_start_are_left_out() {
    let object = event(0x26, &[&[0], &[0], &[16, 0, 0]]);
    let (start, end, enter) = (event(0x06, &[]), event(0x16, &[]), event(0x23, &[&[5]]));
    let whole = [start, object.clone(), end.clone()].concat();
    let damaged = [enter.clone(), object, end, enter.clone(), whole.clone()];
    let once = repaired(&open([header(), buffer(&damaged)].concat()));
    // Three events later, and after a method of 0x1005.
    let mut rest = buffer_of(THREAD, TIME + 3, &[enter.clone(), whole]);
    rest[40..48].copy_from_slice(&0x1005u64.to_le_bytes());
    assert_eq!(once, [header(), buffer(&[enter]), rest].concat());
    let log = open(once.clone());
    assert!(!codes(&log).contains(&"ML060"));
    assert!(repaired(&log) == once);
}

#[test]
fn an_undamaged_log_is_not_changed() {
    for (name, bytes) in fixtures() {
        assert!(repaired(&open(bytes.clone())) == bytes, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn flipped_bytes(which in 0..100usize, flips in prop::collection::vec((0..2000usize, any::<u8>()), 1..5)) {
        let logs = small();
        let (_, mut bytes) = logs[which % logs.len()].clone();
        let first = open(bytes.clone()).header().size as usize;
        let len = bytes.len();
        for (at, flip) in flips {
            bytes[first + at % (len - first)] ^= flip;
        }
        let log = open(bytes);
        use_every_operation(&log);
        let after = open(repaired(&log));
        let (num, all) = (after.survey().num_events(), log.survey().num_events());
        let is_without = codes(&log).contains(&"ML060");
        prop_assert!(if is_without { num < all } else { num == all }, "{num} of {all} events");
    }
}

/// A file system stores zeros for what was never written. Five of them are encoded as an allocation of 0 bytes.
#[test]
fn what_was_never_written_is_not_an_allocation() {
    let alloc = || event(0x00, &[&[8], &[16], &[24]]);
    for zeros in [5, 64, 4096] {
        let log = log(&[buffer(&[alloc(), vec![0; zeros], alloc()]), buffer(&[alloc()])]);
        assert_eq!(log.survey().num_events(), 2, "{zeros}");
        assert!(codes(&log).contains(&"ML014"), "{zeros}");
        use_every_operation(&log);
    }
}
