//! Properties: encoding and decoding are inverse, conversions keep stacks, damage causes no panic.

use perfuse_wire::Endian;
use proptest::collection::vec;
use proptest::prelude::*;

use super::layouts::{bodies, show};
use crate::consts::RecordTag;
use crate::inline::convert::{to_debug_info2, to_frames};
use crate::inline::{
    DeclaredFunction, Extension, InlineCall, InlineTree, SourceLine, debug_info2, decode, frames,
};

/// Code of this many bytes.
const SIZE: u64 = 256;

const NAMES: [&[u8]; 4] = [b"alpha", b"beta", "gr\u{fc}n".as_bytes(), b"delta"];

/// Each function is declared in its own file, as both dialects assume.
fn declaration(which: usize) -> DeclaredFunction<'static> {
    let files: [&[u8]; 4] = [b"a.js", b"b.js", b"c.js", b"d.js"];
    DeclaredFunction { name: NAMES[which], path: files[which], line: 1 + which as u32, column: 1 }
}

/// Nested calls, and a line at every offset where the stack changes.
fn tree() -> impl Strategy<Value = InlineTree<'static>> {
    vec((0u64..SIZE, 1u64..64, 0usize..4, 1u32..100, 1u32..100), 0..12).prop_map(|raw| {
        let mut tree = InlineTree { outer: declaration(0), ..InlineTree::default() };
        let mut open: Vec<InlineCall<'static>> = Vec::new();
        let mut raw = raw;
        raw.sort_unstable();
        for (start_offset, size, function, call_line, call_column) in raw {
            open.retain(|call| call.covers(start_offset));
            // Siblings do not overlap: a new call is nested in the open ones.
            let depth = open.len() as u32;
            let room = open.last().map_or(SIZE, |call| call.start_offset + call.size) - start_offset;
            let caller = open.last().map_or(tree.outer, |call| call.function);
            let call = InlineCall {
                start_offset,
                size: size.min(room),
                depth,
                function: declaration(function),
                call_path: caller.path,
                call_line,
                call_column,
            };
            open.push(call);
            tree.calls.push(call);
        }
        tree.sort();
        let bare = tree.clone();
        bare.visit_ranges(|start, stack| {
            let path = stack.last().map_or(&b""[..], |frame| frame.function.path);
            tree.lines.push(SourceLine { code_offset: start, path, line: 1 + start as u32, column: 2 });
        });
        tree
    })
}

fn stacks(tree: &InlineTree<'_>) -> Vec<String> {
    let first = tree.lines.first().map_or(SIZE, |line| line.code_offset);
    (first..SIZE).map(|offset| show(&tree.frames_at(offset))).collect()
}

proptest! {
    #[test]
    fn dialect_a_keeps_every_tree(tree in tree(), big in any::<bool>()) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let (info, unsupported) = to_debug_info2(&tree);
        prop_assert!(unsupported.is_empty());
        let bytes = debug_info2::encode(&info, endian);
        let decoded = debug_info2::decode(&bytes, 0, endian).unwrap();
        prop_assert_eq!(decoded.tree(), tree);
        prop_assert_eq!(debug_info2::encode(&decoded, endian), bytes);
    }

    #[test]
    fn dialect_b_keeps_every_stack(tree in tree(), big in any::<bool>()) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let (info, unsupported) = to_frames(&tree, 0x7000);
        prop_assert!(unsupported.is_empty());
        let bytes = frames::encode(&info, endian);
        let decoded = frames::decode(&bytes, 0, endian).unwrap();
        prop_assert_eq!(stacks(&decoded.tree(SIZE).unwrap()), stacks(&tree));
        prop_assert_eq!(frames::encode(&decoded, endian), bytes);
    }

    #[test]
    fn ranges_and_frames_at_agree(tree in tree()) {
        let mut all = Vec::new();
        tree.visit_ranges(|start, stack| all.push((start, stack.iter().rev().copied().collect::<Vec<_>>())));
        for (start, stack) in all {
            prop_assert_eq!(tree.frames_at(start), stack);
        }
    }

    #[test]
    fn damage_is_rejected_or_encoded_unchanged(
        which in 0usize..6,
        flips in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
        keep in any::<bool>(),
    ) {
        let (id, mut body, _) = bodies(Endian::Little).swap_remove(which);
        for (at, byte) in flips {
            let at = at.index(body.len());
            body[at] = byte;
        }
        if !keep {
            body.truncate(cut.index(body.len()));
        }
        match decode(RecordTag(id), &body, 64, Endian::Little) {
            Ok(extension) => {
                extension.visit_inlined_functions(|_| {});
                if let Extension::DebugInfo2(info) = &extension {
                    let _ = info.tree().frames_at(0x1c);
                }
                if let Extension::Frames(info) = &extension && let Ok(tree) = info.tree(0x40) {
                    let _ = tree.frames_at(0x1c);
                }
                prop_assert_eq!(extension.encode(Endian::Little), body);
            }
            Err(error) => prop_assert!(error.offset >= 64 && error.offset <= 64 + body.len() as u64),
        }
    }

    #[test]
    fn random_bytes_cause_no_panic(body in vec(any::<u8>(), 0..512), id in prop::sample::select(vec![5u32, 827_346_259, 827_346_260, 827_346_261])) {
        let _ = decode(RecordTag(id), &body, 0, Endian::Big);
    }
}
