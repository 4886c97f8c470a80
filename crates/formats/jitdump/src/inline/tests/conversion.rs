//! Conversions between dialects.

use perfuse_wire::Endian;

use super::layouts::{STACKS, show};
use super::{dialect_a, dialect_b};
use crate::inline::convert::{UnsupportedCounts, to_debug_info2, to_frames};
use crate::inline::{DeclaredFunction, InlineCall, InlineTree, SourceLine, debug_info2, frames};

const LE: Endian = Endian::Little;

#[test]
fn a_to_b_and_back_keeps_every_stack() {
    let body = dialect_a(LE);
    let a = debug_info2::decode(&body, 0, LE).unwrap();
    let (b, unsupported) = to_frames(&a.tree(), 0x7000);
    assert!(unsupported.is_empty(), "{unsupported:?}");
    let bytes = frames::encode(&b, LE);
    let b = frames::decode(&bytes, 0, LE).unwrap();
    let tree = b.tree(0x40).unwrap();
    let (back, unsupported) = to_debug_info2(&tree);
    assert!(unsupported.is_empty(), "{unsupported:?}");
    let bytes = debug_info2::encode(&back, LE);
    let back = debug_info2::decode(&bytes, 0, LE).unwrap();
    for (offset, expected) in STACKS {
        assert_eq!(show(&tree.frames_at(offset)), expected);
        assert_eq!(show(&back.tree().frames_at(offset)), expected);
    }
}

#[test]
fn b_through_the_tree_is_b() {
    let body = dialect_b(LE);
    let b = frames::decode(&body, 0, LE).unwrap();
    let tree = b.tree(0x40).unwrap();
    let (again, _) = to_frames(&tree, 0x7000);
    assert_eq!(again.tree(0x40).unwrap(), tree);
    assert_eq!(again.source_positions.len(), b.source_positions.len(), "each position once");
}

#[test]
fn unsupported_items_are_counted() {
    let function = DeclaredFunction { name: b"f", path: b"f.c", line: 1, column: 0 };
    let call = InlineCall {
        start_offset: 4,
        size: 4,
        depth: 0,
        function,
        call_path: b"x.h",
        call_line: 7,
        call_column: 2,
    };
    let tree = InlineTree {
        outer: DeclaredFunction { name: b"o", path: b"o.c", line: 0, column: 0 },
        lines: vec![
            SourceLine { code_offset: 0, path: b"o.c", line: 3, column: 0 },
            SourceLine { code_offset: 5, path: b"g.c", line: 4, column: 1 },
            SourceLine { code_offset: 1 << 32, path: b"o.c", line: 5, column: 1 },
        ],
        calls: vec![call],
    };
    let (a, unsupported) = to_debug_info2(&tree);
    assert_eq!(unsupported, UnsupportedCounts { offsets: 1, unknown_columns: 2, paths: 1, added_ranges: 0 });
    assert_eq!((a.lines.len(), a.inline_calls.len()), (2, 1));
    let (b, unsupported) = to_frames(&tree, 0);
    // Called from x.h, not o.c; at 4 still a line of o.c, at 5 one of g.c, both in a function of f.c; at 8 g.c in o.
    assert_eq!(unsupported, UnsupportedCounts { offsets: 1, unknown_columns: 0, paths: 4, added_ranges: 2 });
    assert_eq!(b.code_offsets.len(), 4);
}
