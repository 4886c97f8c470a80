//! Any cut and any flipped byte: no panic, an end, offsets inside the file, tables that can be made.

use proptest::prelude::*;

use super::*;
use crate::Position;

/// Does everything there is to do with a file.
fn exercise(bytes: Vec<u8>) {
    let len = bytes.len() as u64;
    let dump = match open(bytes) {
        Ok(dump) => dump,
        Err(error) => return assert!(error.offset <= len),
    };
    let mut sink = Diagnostics::with_limit(50);
    dump.check(&mut sink);
    for row in sink.rows() {
        assert!(row.offset <= len, "{row:?}");
    }
    let (mut at, mut num) = (Position::default(), 0);
    while let Some(view) = dump.next_record(&mut at) {
        assert!(view.offset < len);
        num += 1;
    }
    assert_eq!(num, dump.summary().counts.iter().map(|(_, count)| count).sum::<u64>());
    assert_eq!(num_rows(&dump, "code_objects"), dump.index().codes.len());
    for table in dump.format().tables {
        num_rows(&dump, table);
    }
}

#[test]
fn every_cut() {
    for len in 0..MCJIT.len() {
        exercise(MCJIT[..len].to_vec());
    }
}

#[test]
fn every_word_at_its_largest() {
    for at in (4..MCJIT.len() - 4).step_by(2) {
        let mut bytes = MCJIT.to_vec();
        bytes[at..at + 4].fill(0xff);
        exercise(bytes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = MCJIT.to_vec();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= value;
        }
        exercise(bytes);
    }
}

#[test]
fn a_cut_keeps_whole_records_and_says_where() {
    let dump = open(MCJIT[..MCJIT.len() - 1].to_vec()).unwrap();
    let mut sink = Diagnostics::default();
    dump.check(&mut sink);
    let cut = sink.rows().iter().find(|row| row.rule.code == "JD010").unwrap();
    let last = open(MCJIT.to_vec()).unwrap().index().codes[2].offset;
    assert_eq!(cut.offset, last);
    assert_eq!(num_rows(&dump, "code_objects"), 2);
}
