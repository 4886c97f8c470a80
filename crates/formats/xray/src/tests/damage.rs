//! Cuts and flipped bits: no panic, findings are inside the file, and repairs are clean.

use proptest::prelude::*;

use super::assemble::*;
use crate::XRay;
use perfuse_recording::{Placement, Position, Recording, TableRequest};

const FIXTURES: [&[u8]; 12] = [
    include_bytes!("../testdata/fdr5.xray"),
    include_bytes!("../testdata/fdr5-typed-cut.xray"),
    include_bytes!("../testdata/fdr5-empty-events.xray"),
    include_bytes!("../testdata/fdr5-copy.xray"),
    include_bytes!("../testdata/fdr5-big-endian.xray"),
    include_bytes!("../testdata/fdr1.xray"),
    include_bytes!("../testdata/fdr2.xray"),
    include_bytes!("../testdata/fdr3.xray"),
    include_bytes!("../testdata/fdr4.xray"),
    include_bytes!("../testdata/basic3-orphans.xray"),
    include_bytes!("../testdata/basic3-fork.xray"),
    include_bytes!("../testdata/profile.xray"),
];

/// Findings that remain after a repair, see the README of the crate.
const BEYOND_REPAIR: [&str; 9] =
    ["XR002", "XR003", "XR005", "XR015", "XR016", "XR027", "XR028", "XR055", "XR072"];

/// Uses everything that can be done with a log.
fn everything(log: &XRay) {
    let size = log.source().len() as u64;
    for found in checked(log).into_iter().chain(found(log)) {
        assert!(found.offset <= size, "{} at {:#x} of {size:#x}", found.rule.code, found.offset);
    }
    let mut at = Position::default();
    let mut offsets = Vec::new();
    while let Some(record) = log.next_record(&mut at) {
        assert!(record.offset < size);
        offsets.push(record.offset);
    }
    let records = offsets.len() as u64;
    for (index, &offset) in (0u64..).zip(&offsets).step_by(1 + offsets.len() / 16) {
        for mut found in [log.seek_index(index), log.seek_offset(offset).unwrap()] {
            let record = log.next_record(&mut found).unwrap();
            assert_eq!((record.index, record.offset), (index, offset));
        }
    }
    assert_eq!(log.seek_index(u64::MAX).index, records);
    let counted: u64 = log.summary().counts.iter().map(|(_, count)| count).sum();
    assert_eq!(records, counted, "every record is shown and counted");
    for name in log.format().tables {
        log.table(name, &Placement::alone(log), &TableRequest::default()).unwrap().for_each(drop);
    }
}

fn saved(log: &XRay) -> XRay {
    let repaired_log = repaired(log);
    let left = serious(&checked(&repaired_log));
    assert!(left.iter().all(|code| BEYOND_REPAIR.contains(code)), "{left:?} of {:?}", codes(&checked(log)));
    repaired_log
}

/// Function, kind and value of each call, without times and threads, which a repair may have to invent.
fn what_was_called(log: &XRay) -> Vec<(u32, String, Option<u64>)> {
    let mut rows: Vec<_> =
        calls(log).into_iter().map(|(_, _, kind, id, value)| (id, format!("{kind:?}"), value)).collect();
    rows.sort();
    rows
}

#[test]
fn a_cut_anywhere_loses_only_what_is_cut_off() {
    for whole in FIXTURES {
        let mut before = 0;
        // The end of the log of version 1 is all zeros.
        let len = whole.len().min(2100);
        for end in (32..=len).chain([whole.len()]) {
            let log = open(whole[..end].to_vec());
            everything(&log);
            let calls = calls(&log).len();
            // Copies are left out once they are complete.
            let repeats = ["XR016", "XR064"].iter().any(|code| serious(&found(&log)).contains(code));
            assert!(calls >= before || repeats, "a longer file has no fewer calls: {end} of {}", whole.len());
            before = calls;
            if end % 7 == 0 {
                saved(&log);
            }
        }
    }
}

#[test]
fn less_than_a_header_is_refused_with_its_place() {
    for whole in FIXTURES {
        for end in 0..32 {
            let source = perfuse_recording::Source::from_bytes("x", whole[..end].to_vec()).unwrap();
            let error = (crate::FORMAT.open)(std::sync::Arc::new(source)).err().unwrap();
            assert!(error.offset <= end as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_and_cuts(
        which in 0..FIXTURES.len(),
        flips in prop::collection::vec((32usize..2000, any::<u8>()), 1..6),
        cut in 0usize..64,
    ) {
        let mut bytes = FIXTURES[which].to_vec();
        for (at, value) in flips {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        bytes.truncate((bytes.len() - cut).max(32));
        let log = open(bytes);
        everything(&log);
        let repaired_log = saved(&log);
        everything(&repaired_log);
        let (mut kept, mut there) = (what_was_called(&repaired_log), what_was_called(&log));
        // Buffers that differed only by damage are copies after the repair.
        if codes(&checked(&repaired_log)).contains(&"XR016") {
            kept.dedup();
            there.dedup();
        }
        prop_assert_eq!(kept, there);
    }

    #[test]
    fn a_header_and_anything(version in 1u16..6, mode in 0u16..2, bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let log = open([header_of(version, mode, HZ, 64), bytes].concat());
        everything(&log);
        everything(&saved(&log));
    }

    #[test]
    fn records_in_any_order(version in 1u16..6, kinds in prop::collection::vec((0u8..12, any::<u8>()), 0..40)) {
        let records = kinds.iter().map(|&(kind, value)| match kind {
            0 => new_buffer(value.into()),
            1 => end_of_buffer(),
            2 => cpu(1, u64::from(value) << 8),
            3 => wrap(u64::from(value) << 8),
            4 => wall(1, value.into()),
            5 => custom(i32::from(value) - 99, b"event"),
            6 => argument(value.into()),
            7 => extents(u64::from(value)),
            8 => typed(i32::from(value), 3, b""),
            9 => pid(100),
            10 => function((value & 7).into(), 1, value.into()),
            _ => [preamble(value.into(), value.into(), u64::from(value) << 8), enter(1, 1)].concat(),
        });
        let log = open([header(version), records.collect::<Vec<_>>().concat()].concat());
        everything(&log);
        everything(&saved(&log));
    }
}
