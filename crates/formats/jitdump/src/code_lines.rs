//! Lines and inlined calls of a piece of code, from whichever of its records describe them.

use super::functions::NO_INDEX;
use super::index::{DumpIndex, LoadedCode};
use super::inline::inline_info2::{self, InlineInfo2};
use super::inline::{self, Extension, InlineTree};
use super::lines::{self, DebugLine};

/// Calls `use_tree` with the inline tree of a piece of code and the offset of its (first) record; `None` where the file has
/// none. Lines and calls outside the code are removed.
pub fn with_inline_tree<R>(
    data: &[u8],
    index: &DumpIndex,
    code: &LoadedCode,
    use_tree: impl FnOnce(u64, &InlineTree<'_>) -> R,
) -> Option<R> {
    let debug = *index.debug_records.get(code.inline as usize)?;
    let record = index.record_at(data, debug.offset, debug.index)?;
    let extension = inline::extension(&record)?;
    let tree = match &extension {
        Extension::DebugInfo2(info) => Ok(info.tree()),
        Extension::Frames(info) => info.tree(code.size),
        Extension::InlineInfo1(info) => Ok(info.tree()),
        Extension::InlineInfo2(_) => {
            inline_info2::tree(&inline_stacks(data, index, code), code.start, code.size)
        }
        Extension::Tier(_) | Extension::EmbeddedFile(_) => return None,
    };
    let mut tree = tree.ok()?;
    tree.lines.retain(|line| line.code_offset < code.size);
    tree.calls.retain_mut(|call| {
        call.size = call.size.min(code.size.saturating_sub(call.start_offset));
        call.size > 0
    });
    Some(use_tree(debug.offset, &tree))
}

/// All records of dialect D that describe a piece of code: they are between the previous load and its own.
fn inline_stacks<'a>(data: &'a [u8], index: &DumpIndex, code: &LoadedCode) -> Vec<InlineInfo2<'a>> {
    let Some(first) = index.debug_records.get(code.inline as usize) else { return Vec::new() };
    let following = index.debug_records.get(code.inline as usize..).unwrap_or_default();
    let own = following
        .iter()
        .take_while(|debug| debug.index < code.index)
        .filter(|debug| debug.code == first.code);
    own.filter_map(|debug| {
        let record = index.record_at(data, debug.offset, debug.index)?;
        match inline::extension(&record)? {
            Extension::InlineInfo2(info) => Some(info),
            _ => None,
        }
    })
    .collect()
}

/// Decodes the lines in the JIT_CODE_DEBUG_INFO of a piece of code into `rows`, in order of their offsets, after removing what
/// `rows` contained; the result is the offset of the record. `None` where the code has no such record, or one that does not
/// describe its machine code.
pub fn debug_lines<'a>(
    data: &'a [u8],
    index: &'a DumpIndex,
    code: &LoadedCode,
    rows: &mut Vec<DebugLine<'a>>,
) -> Option<u64> {
    if code.debug == NO_INDEX || index.has_bytecode_offsets(code) {
        return None;
    }
    let (debug, info) = index.debug_info(data, code)?;
    lines::decode(&info, &index.described_code(code), rows);
    if index.producer.entries_end_lines() {
        lines::move_to_starts(rows);
    }
    Some(debug.offset)
}
