//! Peculiarities of producers.

use super::assemble::*;
use crate::index::Pairing;
use crate::producer::Producer;
use perfuse_recording::Recording;

const V8: u32 = 0xDEAD_BEEF;

fn v8(records: &[Vec<u8>]) -> Vec<u8> {
    [header(&Header { pad1: V8, ..Header::default() }), records.concat()].concat()
}

#[test]
fn a_correct_dump_has_no_diagnostics() {
    let dump = dump(&[
        debug(1001, 0x1000, &[(0x1000, 3, 0, b"a.c")]),
        load(1002, 0x1000, 8, 0, "f"),
        record(3, 1003, &[]),
    ]);
    assert_eq!(codes(&dump), [""; 0]);
    assert_eq!(lines(&dump), [(0, 0, 3, None, "a.c".into())]);
    let counts = dump.summary().counts;
    assert_eq!(
        counts,
        [("JIT_CODE_DEBUG_INFO".into(), 1), ("JIT_CODE_LOAD".into(), 1), ("JIT_CODE_CLOSE".into(), 1)]
    );
}

#[test]
fn header_sizes_versions_and_flags() {
    for (total_size, version, flags, extra, expected) in [
        (8, 2, 0, 0, vec!["JD001", "JD002"]),
        (48, 1, 0, 8, vec!["JD002"]),
        (120, 1, 0, 80, vec!["JD002"]),
        (48, 1, 0, 0, vec!["JD002"]),
        (u32::MAX, 1, 0, 0, vec!["JD002"]),
        (40, 1, 0x6775_6265_642e_0102, 0, vec!["JD003"]),
        (40, 1, 1, 0, vec!["JD004"]),
    ] {
        let mut bytes = header(&Header { total_size, version, flags, ..Header::default() });
        bytes.extend(vec![0; extra]);
        bytes.extend(load(1001, 0x1000, 8, 0, "f"));
        let dump = open(bytes);
        assert_eq!(codes(&dump), expected, "header size {total_size}");
        assert_eq!(dump.index().codes.len(), 1, "header size {total_size}");
    }
}

#[test]
fn skew_of_v8_is_subtracted_and_columns_remain() {
    let dump = open(v8(&[
        debug(1, 0x1000, &[(0x1040, 10, 5, b"/w/a.js"), (0x1048, 11, 1, b"/w/a.js")]),
        load(2, 0x1000, 16, 0, "JS:*f /w/a.js:10:1"),
    ]));
    assert_eq!(dump.index().producer, Producer::V8);
    assert_eq!(lines(&dump), [(0, 0, 10, Some(5), "/w/a.js".into()), (0, 8, 11, Some(1), "/w/a.js".into())]);
    assert!(codes(&dump).contains(&"JD052"));
}

/// Its writer is V8's, with the same header and the same skew.
#[test]
fn dart_is_recognized_by_its_first_stubs() {
    let dump = open(v8(&[
        load(1, 0x1000, 16, 0, "JumpToFrame"),
        debug(2, 0x2000, &[(0x2040, 1, 0, b"/tmp/jit-7-1.cmts"), (0x204f, 2, 0, b"/tmp/jit-7-1.cmts")]),
        load(2, 0x2000, 16, 1, "*::_alpha"),
    ]));
    assert_eq!(dump.index().producer, Producer::Dart);
    let path = || "/tmp/jit-7-1.cmts".into();
    assert_eq!(lines(&dump), [(1, 0, 1, None, path()), (1, 15, 2, None, path())]);
}

#[test]
fn lines_of_baseline_code_of_v8_are_omitted() {
    let entries: [(u64, u32, u32, &[u8]); 2] = [(0x1040, 10, 5, b"/w/a.js"), (0x1048, 11, 1, b"/w/a.js")];
    let dump = open(v8(&[debug(1, 0x1000, &entries), load(2, 0x1000, 64, 0, "JS:^f /w/a.js:10:1")]));
    assert_eq!(lines(&dump), []);
    assert!(codes(&dump).contains(&"JD067"));
}

#[test]
fn entries_of_jvms_are_at_the_end_of_their_code() {
    let entries: [(u64, u32, u32, &[u8]); 3] =
        [(0x1010, 3, 0, b"W.java"), (0x1020, 4, 0, b"W.java"), (0x1030, 5, 0, b"W.java")];
    let dump = dump(&[debug(1, 0x1000, &entries), load(2, 0x1000, 0x80, 0, "LW;main([I)V")]);
    let rows: Vec<_> = lines(&dump).into_iter().map(|row| (row.1, row.2)).collect();
    assert_eq!(rows, [(0, 3), (0x11, 4), (0x21, 5)]);
}

#[test]
fn correct_addresses_do_not_change() {
    // First entries of JVMTI and JavaScriptCore may be at offsets above 0x40, but not at the end of the code.
    let entries: [(u64, u32, u32, &[u8]); 2] = [(0x1059, 3, 0, b"W.java"), (0x105c, 4, 0, b"W.java")];
    let dump = dump(&[debug(1, 0x1000, &entries), load(2, 0x1000, 0x80, 0, "LW;main([I)V")]);
    assert_eq!(lines(&dump)[1], (0, 0x5a, 4, None, "W.java".into()));
    assert_eq!(dump.index().functions.rows()[0].name(), "W.main(int[])");
}

/// V8 in node 20 to 24: the first 16 bytes of each name are overwritten by malloc, NULs included.
#[test]
fn names_from_freed_memory_are_restored() {
    let damage = b"\x27\xcd\x03\0\0\0\0\0q+3`\xd5\xac\xd5>";
    let corrupt = [&damage[..], b"cts/app/a.js"].concat();
    let entries: Vec<(u64, u32, u32, &[u8])> =
        (0..3).map(|n| (0x1040 + 4 * u64::from(n), 10 + n, 1, &corrupt[..])).collect();
    let dump = open(v8(&[
        debug(1, 0x1000, &entries),
        load(2, 0x1000, 16, 0, "JS:*f /home/me/projects/app/a.js:10:1"),
    ]));
    let path = "/home/me/projects/app/a.js";
    let rows: Vec<_> =
        lines(&dump).into_iter().map(|(_, offset, line, _, file)| (offset, line, file)).collect();
    assert_eq!(rows, [(0, 10, path.into()), (4, 11, path.into()), (8, 12, path.into())]);
    assert!(codes(&dump).contains(&"JD053"), "{:?}", codes(&dump));
}

#[test]
fn batched_records_of_orc_are_paired_by_address() {
    let dump = dump(&[
        debug(1, 0x1000, &[(0x1000, 1, 0, b"a.c")]),
        debug(2, 0x2000, &[(0x2000, 2, 0, b"b.c")]),
        load(3, 0x1000, 8, 0, "a"),
        load(4, 0x2000, 8, 1, "b"),
    ]);
    let files: Vec<_> = lines(&dump).into_iter().map(|row| (row.0, row.4)).collect();
    assert_eq!(files, [(0, "a.c".into()), (1, "b.c".into())]);
    assert_eq!(codes(&dump), ["JD055"]);
}

#[test]
fn debug_information_after_its_code_or_without_code() {
    let dump = dump(&[
        load(1, 0x1000, 8, 0, "a"),
        debug(2, 0x1000, &[(0x1000, 1, 0, b"a.c")]),
        debug(3, 0x9000, &[(0x9000, 1, 0, b"z.c")]),
    ]);
    assert_eq!(lines(&dump).len(), 1);
    let pairings: Vec<_> = dump.index().debug_records.iter().map(|debug| debug.pairing).collect();
    assert_eq!(pairings, [Pairing::Before, Pairing::Orphan]);
    assert_eq!(codes(&dump), ["JD056", "JD057"]);
}

#[test]
fn repeated_names_end_marks_and_lines_before_the_code() {
    let entries: [(u64, u32, u32, &[u8]); 4] =
        [(0x0fd0, 3, 0, b"m.erl"), (0x1004, 4, 0, b"\xff"), (0x1002, 9, 0, b"\xff"), (0x1008, 0, 0, b"")];
    let dump = dump(&[debug(1, 0x1000, &entries), load(2, 0x1000, 8, 0, "m:f/1")]);
    let rows: Vec<_> =
        lines(&dump).into_iter().map(|(_, offset, line, _, file)| (offset, line, file)).collect();
    assert_eq!(rows, [(0, 3, "m.erl".into()), (2, 9, "m.erl".into()), (4, 4, "m.erl".into())]);
    assert_eq!(codes(&dump), ["JD058", "JD060", "JD061", "JD063"]);
}

#[test]
fn code_is_retired_by_overlapping_code() {
    let dump = dump(&[
        load(10, 0x1000, 16, 0, "a"),
        load(20, 0x1008, 16, 1, "b"),
        load(15, 0x3000, 16, 2, "c"),
        load(30, 0x0ff8, 9, 3, "d"),
    ]);
    let retired: Vec<_> = dump.index().codes.iter().map(|code| code.retired).collect();
    assert_eq!(retired, [20, u64::MAX, u64::MAX, u64::MAX]);
    assert_eq!(codes(&dump), ["JD014", "JD029"]);
}

/// A JIT_CODE_MOVE of 16 bytes.
fn moved(timestamp: u64, old: u64, new: u64, code_index: u64) -> Vec<u8> {
    let fields = [new, old, new, 16, code_index].map(u64::to_le_bytes).concat();
    record(1, timestamp, &[&PID.to_le_bytes()[..], &78u32.to_le_bytes(), &fields].concat())
}

#[test]
fn moves_of_code() {
    let dump = dump(&[
        load(1, 0x1000, 16, 5, "f"),
        moved(2, 0x1000, 0x2000, 5),
        load(3, 0x1000, 16, 6, "g"),
        moved(4, 0x1000, 0x2000, 9),
    ]);
    let [moved] = dump.index().moves[..] else { panic!("one move has known code") };
    assert_eq!((moved.code, moved.old, moved.new), (0, 0x1000, 0x2000));
    assert_eq!(dump.index().codes[0].retired, u64::MAX, "its old address was free when g was loaded");
    assert_eq!(codes(&dump), ["JD040"]);
}

#[test]
fn code_that_moves_after_its_place_was_taken_was_not_overwritten() {
    let loads = [load(1, 0x1000, 16, 0, "f"), load(2, 0x2000, 16, 1, "g"), load(3, 0x3000, 16, 2, "h")];
    let moves = [moved(10, 0x1000, 0x2000, 0), moved(11, 0x2000, 0x3000, 1), moved(12, 0x3000, 0x1000, 2)];
    let later = [load(20, 0x3000, 16, 3, "i"), load(21, 0x2000, 16, 4, "j")];
    let dump = dump(&[&loads[..], &moves, &later].concat());
    let retired: Vec<_> = dump.index().codes.iter().map(|code| code.retired).collect();
    assert_eq!(retired, [21, 20, u64::MAX, u64::MAX, u64::MAX]);
}

#[test]
fn code_leaves_the_address_where_it_is_whatever_a_move_states() {
    let dump = dump(&[
        load(1, 0x1000, 16, 0, "f"),
        load(2, 0x2000, 16, 1, "g"),
        moved(3, 0x2000, 0x3000, 0),
        load(4, 0x1000, 16, 2, "h"),
        load(5, 0x2000, 16, 3, "i"),
    ]);
    let retired: Vec<_> = dump.index().codes.iter().map(|code| code.retired).collect();
    assert_eq!(retired, [u64::MAX, 5, u64::MAX, u64::MAX], "h is where f was, i is where g is");
    assert_eq!(codes(&dump), ["JD029", "JD041"]);
}

#[test]
fn a_thread_id_of_64_bits_of_cpython_on_macos() {
    let mut body = [&PID.to_le_bytes()[..], &[0; 4], &0x1_2345_6789u64.to_le_bytes()].concat();
    for field in [0x1000u64, 0x1000, 8, 3] {
        body.extend(field.to_le_bytes());
    }
    body.extend(b"py::f:a.py\0");
    body.extend([0xcc; 8]);
    let dump = dump(&[record(0, 1001, &body)]);
    let code = dump.index().codes[0];
    assert_eq!((code.start, code.size, code.code_index), (0x1000, 8, 3));
    assert_eq!(codes(&dump), ["JD030"]);
}

#[test]
fn a_dump_appended_to_an_older_one() {
    let old = [header(&Header::default()), load(1001, 0x1000, 8, 0, "old")].concat();
    let dump = open([old, header(&Header::default()), load(2001, 0x1000, 8, 0, "new")].concat());
    assert_eq!(dump.index().codes.len(), 2);
    assert_eq!(codes(&dump), ["JD009", "JD028", "JD029"]);
}
