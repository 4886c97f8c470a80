//! Dumps that grow: in whatever pieces their bytes arrive, the index is that of the whole dump.

use std::sync::Arc;

use perfuse_recording::Source;
use proptest::prelude::*;

use super::assemble::{Header, debug, dump, header, load, record};
use crate::JitDump;
use crate::growing::{GrowingIndex, Rest};
use crate::index::DumpIndex;

/// What look-ups use of an index, as text. Tiers and functions are given by name: their numbers are in order of discovery.
fn shown(index: &DumpIndex) -> Vec<String> {
    let code = |code: &crate::index::LoadedCode| {
        let name = index.functions.get(code.name.function).map(|function| function.linkage_name.clone());
        let tier = index.functions.tier(code.name.tier);
        format!(
            "{:?} {name:?} {tier:?} {}",
            crate::index::LoadedCode {
                name: crate::functions::InternedName { function: 0, tier: 0, stub: false },
                ..*code
            },
            code.name.stub
        )
    };
    let mut lines: Vec<String> = index.codes.iter().map(code).collect();
    lines.push(format!("{:?} {:?} {:?} {:?}", index.producer, index.skew, index.counts, index.span));
    lines.push(format!("{:?} {:?} {:?}", index.debug_records, index.moves, index.lost));
    lines.push(format!("{:?} {:?}", index.unwind_records, index.embedded_files));
    lines
}

/// The index of bytes that arrive in pieces of these sizes, again and again.
fn in_pieces(path: &str, bytes: &[u8], sizes: &[usize]) -> Vec<String> {
    let mut growing = GrowingIndex::new(path);
    let mut end = 0;
    for size in sizes.iter().cycle() {
        end = (end + size).min(bytes.len());
        growing.advance(&bytes[..end], Rest::MayFollow).unwrap();
        assert!(growing.offset() <= end as u64);
        if end == bytes.len() {
            break;
        }
    }
    growing.advance(bytes, Rest::Nothing).unwrap();
    assert_eq!(growing.offset(), bytes.len() as u64);
    shown(growing.index().unwrap())
}

fn whole(path: &str, bytes: &[u8]) -> Vec<String> {
    shown(JitDump::open(Arc::new(Source::from_bytes(path, bytes.to_vec()).unwrap())).unwrap().index())
}

/// Every kind of pairing, code that is replaced, late records, moves, an unknown kind, names of a JVM.
fn mixed() -> Vec<u8> {
    let moved = |at: u64, from: u64, to: u64, index: u64| {
        let fields = [to, from, to, 0x40, index].map(u64::to_le_bytes).concat();
        record(1, at, &[&77u32.to_le_bytes()[..], &77u32.to_le_bytes(), &fields].concat())
    };
    let mut all = vec![
        debug(5, 0x1000, &[(0x1040, 7, 1, b"a.js")]),
        load(10, 0x1000, 0x40, 1, "JS:*first a.js:7:1"),
        debug(11, 0x1000, &[(0x1040, 8, 1, b"late.js")]),
        record(4242, 12, &[1, 2, 3, 4]),
        load(20, 0x2000, 0x40, 2, "JS:+second b.js:1:1"),
        load(15, 0x1020, 0x40, 3, "JS:~third c.js:2:2"),
        debug(21, 0x9999, &[(0x9999, 1, 0, b"by-order.js")]),
        load(22, 0x3000, 0x40, 4, "fourth"),
        moved(30, 0x2000, 0x5000, 2),
        load(40, 0x5010, 0x10, 5, "fifth"),
        moved(41, 0x3000, 0x1020, 4),
        moved(42, 0x1020, 0x3000, 3),
    ];
    for number in 0..300u64 {
        let at = 0x10_000 + number % 40 * 0x100;
        all.push(debug(100 + number, at, &[(at + 0x40, number as u32, 2, b"many.js")]));
        all.push(load(100 + number, at, 0x80, 10 + number, &format!("JS:*many{} many.js:1:1", number % 7)));
    }
    [header(&Header::default()), all.concat()].concat()
}

#[test]
fn pieces_of_any_size_give_the_same_index() {
    let java = |path: &str, names: &[&str]| {
        let loads = (0u64..).zip(names).map(|(at, name)| load(at, 0x1000 + at * 0x100, 0x40, at, name));
        (path.to_owned(), [header(&Header::default()), loads.collect::<Vec<_>>().concat()].concat())
    };
    let of_jvm = |number: u64| load(number, 0x1000 + number * 0x100, 0x40, number, "Lcom/a/B;run()V");
    let jvm =
        [header(&Header::default()), load(0, 0x900, 0x40, 900, "stub"), (1..250).flat_map(of_jvm).collect()];
    let later = |total_size| header(&Header { pad1: 0xdead_beef, total_size, ..Header::default() });
    let other = load(900, 0x90_000, 0x40, 901, "other");
    let dumps = [
        ("jit-77.dump".to_owned(), mixed()),
        // Another program's dump follows; in the second case after a header with an absurd size.
        ("two.dump".to_owned(), [jvm.concat(), later(40), other.clone()].concat()),
        ("two.dump".to_owned(), [jvm.concat(), later(u32::MAX), other].concat()),
        // The path says JVM, and a later name that it is not.
        java("java-jit-1.dump", &["Interpreter", "vtable stub", "Lcom/a/B;run()V", "other"]),
        java("java-jit-2.dump", &["one", "two", "py::f:/a.py", "three"]),
    ];
    for (path, bytes) in &dumps {
        let expected = whole(path, bytes);
        for sizes in [&[1][..], &[7], &[16], &[40, 1], &[1000], &[usize::MAX >> 1]] {
            assert_eq!(in_pieces(path, bytes, sizes), expected, "{path} in pieces of {sizes:?}");
        }
    }
}

#[test]
fn dumps_of_producers_grow_in_pieces() {
    for path in perfuse_corpus::files(&["jitdump/produced", "jitdump/fetched"]) {
        let name = path.to_string_lossy().into_owned();
        let Ok(source) = Source::open(&name) else { continue };
        if JitDump::open(Arc::new(Source::from_bytes(&name, source.to_vec()).unwrap())).is_err()
            || source.len() > 8 << 20
        {
            continue;
        }
        let piece = source.len() / 37 + 1;
        assert_eq!(in_pieces(&name, &source, &[piece, 3, piece * 2]), whole(&name, &source), "{name}");
    }
}

#[test]
fn a_record_is_added_when_it_is_complete() {
    let bytes =
        [header(&Header::default()), load(10, 0x1000, 0x40, 1, "a"), load(20, 0x2000, 8, 2, "b")].concat();
    let mut growing = GrowingIndex::new("");
    let mut nums = Vec::new();
    for end in 0..=bytes.len() {
        if let Some(advanced) = growing.advance(&bytes[..end], Rest::MayFollow).unwrap() {
            nums.push((end, advanced.num_records));
        }
    }
    let second = load(20, 0x2000, 8, 2, "b").len();
    assert_eq!(nums, [(bytes.len() - second, 1), (bytes.len(), 1)]);
}

#[test]
fn a_file_that_was_extended_with_zeros_is_filled_later() {
    let bytes =
        [header(&Header::default()), load(10, 0x1000, 0x40, 1, "a"), load(20, 0x2000, 8, 2, "b")].concat();
    let mut zeros = bytes[..40].to_vec();
    zeros.resize(bytes.len() + 1000, 0);
    let mut growing = GrowingIndex::new("");
    assert_eq!(growing.advance(&zeros, Rest::MayFollow).unwrap(), None);
    let mut filled = zeros.clone();
    filled[..bytes.len()].copy_from_slice(&bytes);
    assert_eq!(
        growing.advance(&filled, Rest::MayFollow).unwrap().map(|advanced| advanced.num_records),
        Some(2)
    );
    growing.advance(&filled, Rest::Nothing).unwrap();
    assert_eq!(growing.index().unwrap().lost.len(), 1);
}

#[test]
fn reading_resumes_after_damage_once_a_record_follows() {
    let first = [header(&Header::default()), load(10, 0x1000, 0x40, 1, "a"), vec![0xee; 100]].concat();
    let mut growing = GrowingIndex::new("");
    growing.advance(&first, Rest::Follows).unwrap();
    growing.advance(&first, Rest::MayFollow).unwrap();
    assert_eq!(growing.index().unwrap().codes.len(), 1);
    let later = [first, load(20, 0x2000, 0x400, 2, "b"), load(30, 0x3000, 0x400, 3, "c")].concat();
    growing.advance(&later, Rest::MayFollow).unwrap();
    assert_eq!(growing.index().unwrap().codes.len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_changed_bytes_in_any_pieces_are_read_to_their_end(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        sizes in proptest::collection::vec(1usize..4000, 1..6),
    ) {
        let mut bytes = mixed();
        bytes.truncate(6000);
        for (at, value) in changes {
            let at = at.index(bytes.len());
            if at >= 16 { bytes[at] = value; }
        }
        in_pieces("", &bytes, &sizes);
    }
}

#[test]
fn what_is_no_dump_is_an_error_at_once() {
    assert!(GrowingIndex::new("").advance(b"ELF?", Rest::MayFollow).is_err());
    assert_eq!(GrowingIndex::new("").advance(b"DT", Rest::MayFollow).unwrap(), None);
    assert!(GrowingIndex::new("").advance(b"DTiJ", Rest::MayFollow).unwrap().is_none());
    assert!(GrowingIndex::new("").advance(b"DTiJ", Rest::Nothing).is_err());
    assert_eq!(dump(&[]).index().codes.len(), 0);
}
