//! Each rule is violated by hand-made bytes, and none by what producers write.

use std::collections::BTreeSet;
use std::io::{Read, Seek};
use std::sync::Arc;

use perfuse_wire::{Diagnostics, Severity};

use super::corpus::{bytes, files, open};
use super::hand_made;
use crate::SFrame;
use perfuse_recording::{Recording, Source};

/// Codes of at least a warning.
fn codes(file: &SFrame) -> BTreeSet<&'static str> {
    let mut sink = Diagnostics::default();
    file.check(&mut sink);
    sink.rows().iter().filter(|row| row.rule.severity >= Severity::Warning).map(|row| row.rule.code).collect()
}

/// A section with some of its bytes changed.
fn changed(mut section: Vec<u8>, changes: &[(usize, u8)]) -> SFrame {
    for (at, value) in changes {
        section[*at] = *value;
    }
    open(section, Some(0))
}

/// Offsets in the hand-made section of version 3: entries, then attributes and rows.
const ENTRIES: usize = 28;
const ROWS: usize = ENTRIES + 4 * 16;

#[test]
fn each_departure_has_its_code() {
    let third = hand_made::version3;
    let second = || hand_made::version2(2, 2);
    let cases: Vec<(SFrame, &[&str])> = vec![
        (open(third(), Some(0)), &[]),
        (open(second(), Some(0)), &[]),
        (changed(third(), &[(2, 9)]), &["SF002"]),
        (changed(third(), &[(3, 0x0d)]), &["SF003"]),
        (changed(second(), &[(4, 77)]), &["SF004"]),
        (changed(second(), &[(0, 0xde), (1, 0xe2)]), &["SF005"]),
        (changed(second(), &[(8, 3)]), &["SF007", "SF009"]),
        (changed(second(), &[(18, 1)]), &["SF008"]),
        (changed(second(), &[(12, 9)]), &["SF010"]),
        (changed(second(), &[(28, 0x80)]), &["SF020"]),
        (changed(second(), &[(3, 0), (28, 0x80)]), &["SF021"]),
        (changed(second(), &[(28 + 10, 1)]), &["SF010", "SF022"]),
        (changed(second(), &[(28 + 16, 7)]), &["SF010", "SF023"]),
        (changed(third(), &[(ROWS + 3, 2)]), &["SF024"]),
        (changed(third(), &[(ROWS + 2, 0x40)]), &["SF025"]),
        (changed(third(), &[(ROWS + 39, 0)]), &["SF026", "SF044"]),
        (changed(second(), &[(28 + 12, 0)]), &["SF010", "SF028"]),
        (changed(second(), &[(28 + 4, 17)]), &["SF029"]),
        (changed(second(), &[(68 + 10, 0x63)]), &["SF010", "SF041"]),
        (changed(third(), &[(ROWS + 44, 0x1f)]), &["SF010", "SF040"]),
        (changed(third(), &[(ROWS + 6, 0x1b)]), &["SF042", "SF043"]),
        (changed(third(), &[(ROWS + 19, 0)]), &["SF042"]),
        (changed(second(), &[(68 + 6, 0)]), &["SF043"]),
        (changed(second(), &[(68 + 6, 99)]), &["SF044"]),
        (changed(second(), &[(68, 1), (68 + 6, 2)]), &["SF045"]),
        (changed(second(), &[(68 + 4, 0x83)]), &["SF048"]),
    ];
    let wrong = cases.iter().enumerate().filter_map(|(number, (file, expected))| {
        let found = codes(file);
        (found != expected.iter().copied().collect()).then_some((number, found, expected))
    });
    assert_eq!(wrong.collect::<Vec<_>>(), []);
}

#[test]
fn producers_write_valid_sections_except_for_known_defects() {
    let mut wrong = Vec::new();
    for path in files(|path| path.ends_with(".elf") || path.ends_with(".so") || path.ends_with(".o")) {
        let name = path.to_string_lossy().into_owned();
        if name.contains("/bad/") {
            continue;
        }
        let expected: &[&str] = match () {
            () if name.contains("/concat/") => &["SF021", "SF060"],
            () if name.contains("ld_r_broken") => &["SF013", "SF063", "SF064"],
            () => &[],
        };
        let found = codes(&open(bytes(&path), None));
        if !found.is_subset(&expected.iter().copied().collect()) {
            wrong.push((name, found));
        }
    }
    assert_eq!(wrong, []);
}

fn repaired(file: &SFrame) -> (SFrame, usize) {
    let path = std::env::temp_dir().join(format!("perfuse-sframe-{:?}", std::thread::current().id()));
    let mut out = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .expect("opens");
    std::fs::remove_file(&path).expect("is there");
    let done = file.repair(&mut out).expect("is written");
    let mut bytes = Vec::new();
    out.rewind().expect("rewinds");
    out.read_to_end(&mut bytes).expect("reads");
    let source = Source::from_bytes("repaired", bytes).expect("no file is needed");
    let again = SFrame::open(Arc::new(source)).expect("has a section");
    (again, done.changes.len())
}

#[test]
fn without_a_change_the_bytes_stay() {
    // The bytes after the section are left out, which is a change.
    let path = files(|path| path.ends_with("ld_r_broken.o.sframe"));
    for path in path.iter().chain(&files(|path| path.contains("/bad/"))) {
        let before = bytes(path);
        let Ok(file) =
            SFrame::open(Arc::new(Source::from_bytes("bad", before.clone()).expect("no file is needed")))
        else {
            continue;
        };
        let (once, changes) = repaired(&file);
        assert!(changes > 0 || once.source()[..] == before[..], "{}", path.display());
        let (twice, again) = repaired(&once);
        assert_eq!(again, 0, "{}", path.display());
        assert!(twice.source()[..] == once.source()[..], "{}", path.display());
    }
}

#[test]
fn repaired_files_are_clean() {
    let mut wrong = Vec::new();
    for path in files(|path| path.contains("/bad/") || path.contains("/concat/") && path.ends_with(".so")) {
        let name = path.to_string_lossy().into_owned();
        let Ok(file) =
            SFrame::open(Arc::new(Source::from_bytes("bad", bytes(&path)).expect("no file is needed")))
        else {
            continue;
        };
        // An unknown version or ABI cannot be repaired.
        if ["_ver_", "abi", "magic_swapped"].iter().any(|what| name.contains(what)) {
            continue;
        }
        let before = codes(&file);
        let (again, changes) = repaired(&file);
        // Only the producer can repair these: code without rows, or functions outside of code.
        let accepted = ["SF025", "SF028", "SF029", "SF030", "SF045"];
        let after: BTreeSet<_> = codes(&again).into_iter().filter(|code| !accepted.contains(code)).collect();
        if !after.is_empty() || (changes == 0 && !before.is_empty()) {
            wrong.push((name, before, after));
        }
    }
    assert_eq!(wrong, []);
}
