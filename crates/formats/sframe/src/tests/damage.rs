//! Any bytes: no panic, bounded work, and offsets inside the file.

use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_wire::Diagnostics;
use proptest::prelude::*;

use super::corpus::{bytes, files};
use super::hand_made;
use crate::readelf::{Dump, Style};
use crate::writer::SectionContents;
use crate::{FORMAT, SFrame, look_up};
use perfuse_recording::{Placement, Position, Recording, Source, TableRequest};

/// Opens, checks, reads and converts a file; returns the codes of its findings.
pub fn exercise(bytes: Vec<u8>) -> Vec<&'static str> {
    let len = bytes.len() as u64;
    let source = Source::from_bytes("test", bytes).expect("no file is needed");
    let file = match SFrame::open(Arc::new(source)) {
        Ok(file) => file,
        Err(error) => {
            assert!(error.offset <= len, "{error}");
            return vec!["unreadable"];
        }
    };
    let counted: u64 = file.summary().counts.iter().map(|(_, count)| count).sum();
    let (mut at, mut num, mut before) = (Position::default(), 0, None);
    while let Some(record) = file.next_record(&mut at) {
        assert!(record.offset <= len && record.index == num);
        assert!(Some((at.offset, at.inner)) > before, "the walk stands still");
        (before, num) = (Some((at.offset, at.inner)), num + 1);
    }
    assert_eq!(num, counted);
    let mut sink = Diagnostics::default();
    file.check(&mut sink);
    assert!(sink.rows().iter().all(|row| row.offset <= len), "{:?}", sink.rows());
    for table in FORMAT.tables {
        let stream = file.table(table, &Placement::alone(&file), &TableRequest::default());
        stream.expect("is filled").for_each(drop);
    }
    for (_, style) in Style::ALL {
        Dump::of(&file, style, 0).into_iter().flatten().for_each(drop);
    }
    for view in file.views() {
        let addresses: Vec<u64> =
            view.functions().take(100).map(|function| function.start.wrapping_add(3)).collect();
        addresses.iter().for_each(|address| {
            let _ = file.find(*address);
        });
        let found: usize = look_up(&file, &addresses).iter().map(RecordBatch::num_rows).sum();
        assert_eq!(found, addresses.len());
        let contents = SectionContents::of(view);
        (1..=3).for_each(|version| drop(contents.convert(version, None)));
    }
    sink.rows().iter().map(|row| row.rule.code).collect()
}

#[test]
fn every_malformed_file_has_findings() {
    for path in files(|path| path.contains("/bad/")) {
        let codes = exercise(bytes(&path));
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let worst = codes.iter().any(|code| *code < "SF060" || *code == "unreadable");
        assert!(worst, "{name}: {codes:?}");
    }
}

/// Object files in which one changed byte made another part of the program panic.
#[test]
fn files_with_one_changed_byte_are_handled() {
    for path in
        perfuse_corpus::files(&["found/sframe"]).into_iter().filter(|path| !path.ends_with("README.md"))
    {
        let name = path.display().to_string();
        let codes = exercise(bytes(&path));
        assert_ne!(codes, ["unreadable"], "{name}");
    }
}

#[test]
fn any_cut_is_handled() {
    let whole = hand_made::elf(&hand_made::version3());
    for len in 0..whole.len() {
        exercise(whole[..len].to_vec());
    }
}

#[test]
fn functions_that_share_all_rows_come_to_an_end() {
    let codes = exercise(hand_made::version2(2_000, 2_000));
    assert!(codes.contains(&"SF031"), "{codes:?}");
}

proptest! {
    #[test]
    fn any_changed_bytes_are_handled(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), which in 0..3usize) {
        let mut bytes = match which {
            0 => hand_made::version3(),
            1 => hand_made::version2(3, 5),
            _ => hand_made::elf(&hand_made::version3()),
        };
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        exercise(bytes);
    }
}
