//! Dialect C: JIT_CODE_INLINE_INFO, id 5, the first of its two abandoned layouts (January 2026, a patch to V8).
//!
//! Ranges of inlined calls; lines remain in JIT_CODE_DEBUG_INFO. Lines and columns count from 1.

use perfuse_wire::{Cursor, Endian, ParseError, Value, layout};

use super::entries::{self, invalid};
use super::tree::{DeclaredFunction, InlineCall, InlineTree};

layout! {
    /// Inlined calls of the code at an address.
    InlineInfo1Counts = "JIT_CODE_INLINE_INFO (calls)", section "linux-perf-data, January 14, 2026" {
        /// Address of the code.
        code_addr: u64 as Hex,
        /// Number of entries.
        nr_entry: u64,
    } then {
        /// Calls.
        entries: Array,
    }

    /// An inlined call.
    InlineEntry1Fixed = "inline entry", section "linux-perf-data, January 14, 2026" {
        /// First address of its instructions.
        start_addr: u64 as Hex,
        /// Address after its last instruction.
        end_addr: u64 as Hex,
        /// Offset of the caller's file name; `call_file_name` contains the same name.
        call_file: u32,
        /// Line of the call, from 1.
        call_line: u32,
        /// Column of the call, from 1; 0 if unknown.
        call_column: u32,
        /// 0 for a call from the outer function.
        inline_depth: u32,
    } then {
        /// Name of the inlined function.
        func_name: CString,
        /// File of the call.
        call_file_name: CString,
    }
}

/// An inlined call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineEntry1<'a> {
    /// Fixed fields.
    pub fixed: InlineEntry1Fixed,
    /// Name of the inlined function.
    pub func_name: &'a [u8],
    /// File of the call.
    pub call_file_name: &'a [u8],
}

/// A record of dialect C.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlineInfo1<'a> {
    /// Address of the code.
    pub code_addr: u64,
    /// Calls, depth first.
    pub entries: Vec<InlineEntry1<'a>>,
    /// Padding of the record.
    pub padding: &'a [u8],
}

/// Decodes a body at an absolute offset.
///
/// # Errors
/// When sizes do not add up, a range ends before it starts, or calls are not nested.
pub fn decode(body: &[u8], offset: u64, endian: Endian) -> Result<InlineInfo1<'_>, ParseError> {
    let mut at = Cursor::new(body, offset, endian);
    let counts = InlineInfo1Counts::read(&mut at)?;
    let least = InlineEntry1Fixed::SIZE.saturating_add(2);
    let entries = entries::read_entries(&mut at, counts.nr_entry, least, "entries", |at| {
        let offset = at.offset();
        let fixed = InlineEntry1Fixed::read(at)?;
        if fixed.start_addr < counts.code_addr || fixed.end_addr < fixed.start_addr {
            return Err(invalid(
                fixed.start_addr,
                "a range that starts in the code and ends later",
                offset,
                "start_addr",
            ));
        }
        Ok(InlineEntry1 {
            fixed,
            func_name: at.c_string("func_name")?,
            call_file_name: at.c_string("call_file_name")?,
        })
    })?;
    let mut previous = None;
    for entry in &entries {
        entries::check_depth(previous, entry.fixed.inline_depth, offset)?;
        previous = Some(entry.fixed.inline_depth);
    }
    let padding = entries::read_padding(&at)?;
    Ok(InlineInfo1 { code_addr: counts.code_addr, entries, padding })
}

/// Encodes a body. Names must not contain NULs, at which readers end them.
#[must_use]
pub fn encode(info: &InlineInfo1<'_>, endian: Endian) -> Vec<u8> {
    let mut out = Vec::new();
    InlineInfo1Counts { code_addr: info.code_addr, nr_entry: info.entries.len() as u64 }
        .write(&mut out, endian);
    for entry in &info.entries {
        entry.fixed.write(&mut out, endian);
        for text in [entry.func_name, entry.call_file_name] {
            out.extend(text);
            out.push(0);
        }
    }
    out.extend(info.padding);
    out
}

impl<'a> InlineInfo1<'a> {
    /// Names and values of the fields.
    pub(super) fn fields(&self) -> Vec<(&'static str, Value<'a>)> {
        let entries = self.entries.iter().map(|entry| {
            let mut fields: Vec<(&str, Value<'a>)> = entry.fixed.values();
            fields.push(("func_name", Value::text(entry.func_name)));
            fields.push(("call_file_name", Value::text(entry.call_file_name)));
            fields
        });
        vec![("code_addr", Value::Hex(self.code_addr)), ("entries", Value::Entries(entries.collect()))]
    }

    /// The record as a tree, the form common to all dialects.
    #[must_use]
    pub fn tree(&self) -> InlineTree<'a> {
        let mut tree = InlineTree::default();
        tree.calls.extend(self.entries.iter().map(|entry| InlineCall {
            start_offset: entry.fixed.start_addr.saturating_sub(self.code_addr),
            size: entry.fixed.end_addr.saturating_sub(entry.fixed.start_addr),
            depth: entry.fixed.inline_depth,
            function: DeclaredFunction { name: entry.func_name, ..DeclaredFunction::default() },
            call_path: entry.call_file_name,
            call_line: entry.fixed.call_line,
            call_column: entry.fixed.call_column,
        }));
        tree.sort();
        tree
    }
}
