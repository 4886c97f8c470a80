//! Truncated and damaged dumps.

use proptest::prelude::*;

use super::assemble::*;
use crate::JitDump;
use perfuse_recording::{Placement, Position, Recording, TableRequest};

const MCJIT: &[u8] = include_bytes!("../testdata/llvm14-mcjit.dump");
const ORC: &[u8] = include_bytes!("../testdata/llvm19-orc.dump");

/// Exercises all operations on a dump; all reported offsets must be inside the file.
fn exercise(dump: &JitDump) {
    let size = dump.bytes().len() as u64;
    for found in diagnostics(dump) {
        assert!(found.offset <= size, "{} at {:#x} of {size:#x}", found.rule.code, found.offset);
    }
    let mut at = Position::default();
    let mut records = 0u64;
    while let Some(record) = dump.next_record(&mut at) {
        assert!(record.offset < size);
        records += 1;
    }
    assert_eq!(records, dump.summary().counts.iter().map(|(_, count)| count).sum::<u64>());
    assert!(records <= size);
    let request = TableRequest { with_bytes: true, ..TableRequest::default() };
    for name in dump.format().tables.iter().copied().chain(["records"]) {
        dump.table(name, &Placement::alone(dump), &request).unwrap().for_each(drop);
    }
}

/// The dump after a repair.
fn repaired(dump: &JitDump) -> JitDump {
    let path = std::env::temp_dir().join(format!("perfuse-repair-{:?}.dump", std::thread::current().id()));
    dump.repair(&mut std::fs::File::create(&path).unwrap()).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    open(bytes)
}

/// The bytes after a repair, and the codes of its changes.
fn repair(bytes: &[u8]) -> (Vec<u8>, Vec<&'static str>) {
    let mut out = Vec::new();
    let done = crate::repair::repair(&open(bytes.to_vec()), &mut out).unwrap();
    (out, done.changes.iter().map(|change| change.rule.code).collect())
}

/// A repaired dump is not changed by a repair.
fn repaired_once(bytes: &[u8], changes: &[&str]) -> JitDump {
    let (once, found) = repair(bytes);
    assert_eq!(found, changes);
    let (twice, again) = repair(&once);
    assert_eq!(again, [""; 0]);
    assert!(twice == once);
    open(once)
}

#[test]
fn a_skew_is_subtracted_once() {
    // The first entries are at least twice the skew after the start of their code.
    let entries: [(u64, u32, u32, &[u8]); 2] = [(0x10a0, 10, 5, b"/w/a.js"), (0x10c0, 11, 1, b"/w/a.js")];
    let v8 = header(&Header { pad1: 0xdead_beef, ..Header::default() });
    let dump = [v8, debug(1, 0x1000, &entries), load(2, 0x1000, 0x100, 0, "JS:*f /w/a.js:10:1")].concat();
    let before = lines(&open(dump.clone()));
    let repaired_dump = repaired_once(&dump, &["JD052"]);
    assert!(!codes(&repaired_dump).contains(&"JD052"));
    // An entry of no line shows that nothing is to be subtracted.
    let after = lines(&repaired_dump);
    assert_eq!(after[0], (0, 0, 0, None, "/w/a.js".into()));
    assert_eq!(after[1..], before[..]);
}

#[test]
fn a_repair_states_every_change() {
    let file: &[u8] = b"/w/a.c";
    let mut padded = debug(1, 0x1000, &[(0x1000, 1, 0, file)]);
    padded.extend([0; 24]);
    let size = padded.len() as u32;
    padded[4..8].copy_from_slice(&size.to_le_bytes());
    let name = b"\x01\x02\x03456789abcdef\x04\x05/w/a.js";
    let lost = debug(1, 0x1000, &[(0x1000, 1, 0, name)]);
    let mut other_order = header(&Header { elf_mach: 22, ..Header::default() });
    other_order.extend(load(2, 0x1000, 8, 0, "f"));
    assert!(repaired_once(&other_order, &[]).bytes()[..] == other_order[..], "the byte order stays");
    let code = load(2, 0x1000, 8, 0, "f");
    let close = record(3, 9, &[1, 2, 3, 4]);
    let plain = header(&Header::default());
    repaired_once(&[&plain[..], &padded, &code, &close].concat(), &["JD065"]);
    let v8 = header(&Header { pad1: 0xdead_beef, ..Header::default() });
    repaired_once(&[&v8[..], &lost, &code].concat(), &["JD054"]);
}

#[test]
fn records_after_another_header_are_those_of_its_producer() {
    // Only V8 damages names so; the records before the header of V8 are left out, and those after it read as V8's.
    let name = b"\x01\x02\x03456789abcdef\x04\x05/w/a.js";
    let code = load(2, 0x1000, 8, 0, "f");
    let v8 = header(&Header { pad1: 0xdead_beef, ..Header::default() });
    let dump =
        [header(&Header::default()), code.clone(), v8, debug(1, 0x1000, &[(0x1000, 1, 0, name)]), code];
    repaired_once(&dump.concat(), &["JD009", "JD054"]);
}

#[test]
fn moves_of_code_that_is_left_out_are_left_out() {
    let moved: Vec<u8> = [[0x2000u64, 0x1000, 0x2000, 8, 0].map(u64::to_le_bytes).concat()].concat();
    let moved = record(1, 3, &[&PID.to_le_bytes()[..], &78u32.to_le_bytes(), &moved].concat());
    let dump = [header(&Header::default()), load(1, 0x1000, 8, 0, "f")].concat();
    let second = [header(&Header::default()), moved, load(4, 0x3000, 8, 1, "g")].concat();
    repaired_once(&[dump, second].concat(), &["JD009", "JD040"]);
}

#[test]
fn a_wrong_size_loses_no_other_record() {
    // Wherever the damaged record ends: in code of zeros or not, between records, in what looks like one, at the end, in zeros after it.
    for tail in [Vec::new(), record(3, 9, &[]), vec![0; 300]] {
        let codes: Vec<_> = (0..5u32)
            .map(|nth| load(2, 0x1000 * u64::from(nth + 1), 70, nth.into(), &format!("f{nth}")))
            .collect();
        let start = 40 + codes[0].len();
        let whole = [header(&Header::default()), codes.concat(), tail].concat();
        for size in 16..=whole.len() - start {
            let mut bytes = whole.clone();
            bytes[start + 4..start + 8].copy_from_slice(&(size as u32).to_le_bytes());
            // Bytes of the damaged record may look like further ones.
            let intact = ["f0\0", "f2\0", "f3\0", "f4\0"];
            let names = |dump: &JitDump| -> Vec<String> {
                let name = |at: usize| dump.bytes().get(at + 56..at + 59).unwrap_or_default();
                let codes = dump.index().codes.iter();
                let names =
                    codes.map(|code| String::from_utf8_lossy(name(code.offset as usize)).into_owned());
                names.filter(|name| intact.contains(&&**name)).collect()
            };
            let dump = open(bytes.clone());
            assert_eq!(names(&dump), intact, "size {size}");
            if size != codes[1].len() {
                assert!(!diagnostics(&dump).is_empty(), "size {size}");
            }
            assert_eq!(names(&open(repair(&bytes).0)), intact, "repaired, size {size}");
        }
    }
}

#[test]
fn a_truncation_loses_only_later_records() {
    for whole in [MCJIT, ORC] {
        let all = open(whole.to_vec()).index().codes.len();
        let mut previous = 0;
        for end in 40..=whole.len() {
            let dump = open(whole[..end].to_vec());
            exercise(&dump);
            let codes = dump.index().codes.len();
            assert!(codes >= previous, "a longer file has no fewer functions");
            previous = codes;
        }
        assert_eq!(previous, all);
    }
}

#[test]
fn a_record_of_an_unknown_kind_stays_before_one_that_is_cut() {
    let unwind: Vec<u8> = [4u64, 2, 0].iter().flat_map(|field| field.to_le_bytes()).chain(*b"fFhH").collect();
    for last in
        [load(3, 0x2000, 32, 1, "g"), debug(3, 0x2000, &[(0x2000, 1, 0, b"a.c")]), record(4, 3, &unwind)]
    {
        let whole =
            [header(&Header::default()), load(1, 0x1000, 8, 0, "f"), record(77, 2, b"hello"), last.clone()]
                .concat();
        let start = whole.len() - last.len();
        for end in start + 1..whole.len() {
            let dump = open(whole[..end].to_vec());
            let kinds: Vec<_> =
                dump.summary().counts.into_iter().map(|(kind, count)| (kind.to_string(), count)).collect();
            assert_eq!(
                kinds,
                [("JIT_CODE_LOAD".to_owned(), 1), ("Unknown RecordTag 77".to_owned(), 1)],
                "{end}"
            );
            let cut = diagnostics(&dump).into_iter().find(|found| found.rule.code == "JD010").unwrap();
            assert_eq!((cut.offset, cut.record_index), (start as u64, Some(2)), "{end}");
            assert_eq!(repaired(&dump).bytes()[..], whole[..start]);
        }
    }
}

#[test]
fn bytes_of_no_record_before_the_end_are_no_truncation() {
    let dump = dump(&[load(1, 0x1000, 8, 0, "f"), record(0x4141_4141, 2, b"hello"), vec![0x41; 40]]);
    assert_eq!(codes(&dump), ["JD011"]);
    assert_eq!(repair(dump.bytes()).1, ["JD011"]);
}

#[test]
fn an_incomplete_header_is_an_error_with_its_offset() {
    for end in 0..40 {
        let source = perfuse_recording::Source::from_bytes("x", MCJIT[..end].to_vec()).unwrap();
        let error = (crate::FORMAT.open)(std::sync::Arc::new(source)).err().unwrap();
        assert!(error.offset <= end as u64);
    }
}

#[test]
fn reading_continues_after_a_record_with_a_wrong_size() {
    for size in [0u32, 15, 17, 200, u32::MAX] {
        let mut bad = load(2, 0x2000, 64, 1, "lost");
        bad[4..8].copy_from_slice(&size.to_le_bytes());
        let dump = dump(&[load(1, 0x1000, 64, 0, "before"), bad, load(3, 0x3000, 64, 2, "after")]);
        let functions = dump.index().functions.rows();
        let names: Vec<_> = functions.iter().map(|f| &*f.linkage_name).collect();
        assert_eq!((names[0], names[names.len() - 1]), ("before", "after"), "size {size}");
        exercise(&dump);
        assert!(diagnostics(&dump).iter().any(|d| ["JD011", "JD012"].contains(&d.rule.code)), "size {size}");
    }
}

#[test]
fn impossible_sizes_are_reduced_to_the_bytes_present() {
    for size in [9, 5000, 0x7fff_ffff, u64::MAX - 63] {
        let dump =
            dump(&[record(0, 1, &load_body(0x1000, size, 0, b"f", &[0xcc; 8])), load(2, 0x2000, 8, 1, "g")]);
        assert_eq!(dump.index().codes.iter().map(|code| code.size).collect::<Vec<_>>(), [8, 8]);
        assert_eq!(codes(&dump), ["JD022"]);
        assert_eq!(codes(&repaired(&dump)), [""; 0]);
    }
    for count in [3, 1 << 31, 1 << 61, u64::MAX] {
        let mut info = debug(1, 0x1000, &[(0x1000, 1, 0, b"a.c"), (0x1004, 2, 0, b"a.c")]);
        info[24..32].copy_from_slice(&count.to_le_bytes());
        let dump = dump(&[info, load(2, 0x1000, 8, 0, "f")]);
        assert_eq!(lines(&dump).len(), 2);
        assert_eq!(codes(&dump), ["JD051"]);
        assert_eq!(codes(&repaired(&dump)), [""; 0]);
    }
}

#[test]
fn a_name_without_a_nul_ends_at_the_code() {
    let mut body = load_body(0x1000, 4, 0, b"hot", &[0xcc; 4]);
    body.remove(40 + 3);
    let dump = dump(&[record(0, 1, &body)]);
    assert_eq!(&*dump.index().functions.rows()[0].linkage_name, "hot");
    assert_eq!(codes(&dump), ["JD021"]);
    assert_eq!(codes(&repaired(&dump)), [""; 0]);
}

#[test]
fn a_repaired_dump_has_no_warnings() {
    for bytes in [MCJIT, ORC] {
        let whole = open(bytes.to_vec());
        let repaired_dump = repaired(&whole);
        let findings: Vec<_> = diagnostics(&repaired_dump)
            .into_iter()
            .filter(|d| d.rule.severity != perfuse_wire::Severity::Info)
            .collect();
        assert_eq!(findings, []);
        assert_eq!(lines(&repaired_dump), lines(&whole));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_and_truncations(orc: bool, flips in prop::collection::vec((40usize..2300, any::<u8>()), 1..6), cut in 0usize..2300) {
        let mut bytes = if orc { ORC } else { MCJIT }.to_vec();
        for (at, value) in flips {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
        bytes.truncate(bytes.len() - (cut % 64).min(bytes.len() - 40));
        let dump = open(bytes);
        exercise(&dump);
        exercise(&repaired(&dump));
    }

    #[test]
    fn a_header_and_random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        exercise(&open([header(&Header::default()), bytes].concat()));
    }
}
