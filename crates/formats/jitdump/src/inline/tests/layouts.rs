//! Recognition, decoding and encoding of all dialects.

use perfuse_wire::Endian;

use super::*;
use crate::consts::RecordTag;
use crate::inline::{Extension, ExtensionDialect, InlineFrame, decode, dialect, inline_info2};

/// Every hand-made body with its id and its dialect.
pub fn bodies(endian: Endian) -> Vec<(u32, Vec<u8>, ExtensionDialect)> {
    vec![
        (827_346_259, dialect_a(endian), ExtensionDialect::DebugInfo2),
        (827_346_260, dialect_b(endian), ExtensionDialect::Frames),
        (5, dialect_c(endian), ExtensionDialect::InlineInfo1),
        (5, dialect_d(endian), ExtensionDialect::InlineInfo2),
        (827_346_260, tier(endian), ExtensionDialect::Tier),
        (827_346_261, embedded(endian), ExtensionDialect::EmbeddedFile),
    ]
}

#[test]
fn structure_determines_the_dialect_in_both_byte_orders() {
    for endian in BOTH {
        for (id, body, expected) in bodies(endian) {
            assert_eq!(dialect(RecordTag(id), &body, endian), expected);
            let padded = [&body[..], &[0xAA; 7]].concat();
            assert_eq!(dialect(RecordTag(id), &padded, endian), expected, "7 bytes of padding");
            let too_much = [&body[..], &[0; 8]].concat();
            assert_eq!(
                dialect(RecordTag(id), &too_much, endian),
                ExtensionDialect::Unknown,
                "8 bytes are not padding"
            );
        }
    }
}

#[test]
fn a_dialect_is_recognized_with_the_id_of_another() {
    assert_eq!(
        dialect(RecordTag(827_346_259), &dialect_b(Endian::Little), Endian::Little),
        ExtensionDialect::Frames
    );
    assert_eq!(
        dialect(RecordTag(827_346_260), &dialect_a(Endian::Little), Endian::Little),
        ExtensionDialect::DebugInfo2
    );
}

#[test]
fn encoding_restores_the_bytes_and_padding() {
    for endian in BOTH {
        for (id, mut body, _) in bodies(endian) {
            for _ in 0..8 {
                let decoded = decode(RecordTag(id), &body, 0, endian).unwrap();
                assert_eq!(decoded.encode(endian), body);
                body.push(0xBB);
            }
        }
    }
}

#[test]
fn encoding_in_the_other_byte_order() {
    for (little, big) in bodies(Endian::Little).into_iter().zip(bodies(Endian::Big)) {
        let decoded = decode(RecordTag(little.0), &little.1, 0, Endian::Little).unwrap();
        assert_eq!(decoded.encode(Endian::Big), big.1);
    }
}

/// `function path:line:column`, innermost first.
pub fn show(frames: &[InlineFrame<'_>]) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let frame =
        |f: &InlineFrame<'_>| format!("{} {}:{}:{}", text(f.function.name), text(f.path), f.line, f.column);
    frames.iter().map(frame).collect::<Vec<_>>().join(" < ")
}

pub const STACKS: [(u64, &str); 6] = [
    (0x0f, "outer a.js:10:1"),
    (0x10, "mid a.js:20:1 < outer a.js:11:3"),
    (0x1f, "leaf b.js:30:1 < mid a.js:21:5 < outer a.js:11:3"),
    (0x20, "mid a.js:22:1 < outer a.js:11:3"),
    (0x28, "leaf b.js:31:2 < mid a.js:21:5 < outer a.js:11:3"),
    (0x30, "outer a.js:12:1"),
];

#[test]
fn a_and_b_contain_the_same_stacks() {
    for endian in BOTH {
        let (a, b) = (dialect_a(endian), dialect_b(endian));
        let a = decode(RecordTag(827_346_259), &a, 0, endian).unwrap();
        let b = decode(RecordTag(827_346_260), &b, 0, endian).unwrap();
        let (Extension::DebugInfo2(a), Extension::Frames(b)) = (&a, &b) else { panic!("{a:?} {b:?}") };
        let (a, b) = (a.tree(), b.tree(0x40).unwrap());
        for (offset, expected) in STACKS {
            assert_eq!(show(&a.frames_at(offset)), expected);
            assert_eq!(show(&b.frames_at(offset)), expected);
        }
        assert_eq!(a.calls, b.calls);
        assert_eq!(a.lines, b.lines);
        assert_eq!((a.outer.line, a.outer.column), (9, 1));
    }
}

#[test]
fn c_contains_calls_without_lines() {
    let body = dialect_c(Endian::Big);
    let Ok(Extension::InlineInfo1(c)) = decode(RecordTag(5), &body, 0, Endian::Big) else { panic!() };
    let tree = c.tree();
    assert!(tree.lines.is_empty());
    assert_eq!(show(&tree.frames_at(0x1c)), "leaf :0:0 < mid a.js:21:5 <  a.js:11:3");
    assert_eq!(show(&tree.frames_at(0x30)), " :0:0");
}

#[test]
fn records_of_d_become_one_tree() {
    let bodies: Vec<Vec<u8>> = [(0x7000, 1), (0x7018, 3), (0x7020, 2)].into_iter().map(d_record).collect();
    let records: Vec<_> =
        bodies.iter().map(|b| inline_info2::decode(b, 0, Endian::Little).unwrap()).collect();
    let tree = inline_info2::tree(&records, 0x7000, 0x40).unwrap();
    assert_eq!(show(&tree.frames_at(0)), "outer a.js:11:3");
    assert_eq!(show(&tree.frames_at(0x18)), "leaf b.js:30:1 < mid a.js:21:5 < outer a.js:11:3");
    assert_eq!(show(&tree.frames_at(0x3f)), "mid a.js:21:5 < outer a.js:11:3");
    let calls: Vec<_> = tree.calls.iter().map(|c| (c.start_offset, c.size, c.depth)).collect();
    assert_eq!(calls, [(0x18, 0x28, 0), (0x18, 8, 1)], "a call across two ranges is one call");
}

/// The outermost `depth` of three frames.
fn d_record((address, depth): (u64, usize)) -> Vec<u8> {
    let frames = [([30, 1], "leaf\0b.js\0"), ([21, 5], "mid\0a.js\0"), ([11, 3], "outer\0a.js\0")];
    let head = Bytes::new(Endian::Little).u64(&[address, depth as u64]);
    frames[3 - depth..].iter().fold(head, |bytes, (place, text)| bytes.u32(place).text(text)).0
}
