//! Dialect D: JIT_CODE_INLINE_INFO, id 5, the second of its two abandoned layouts (January 2026).
//!
//! One record an address: the inline stack of the code from there to the next record's address, innermost frame first.
//! Lines and columns count from 1.

use perfuse_wire::{Cursor, Endian, ParseError, layout};

use super::entries::{self, MAX_DEPTH, invalid};
use super::tree::{Assembler, Declaration, Frame, InlineTree};

layout! {
    /// The inline stack at an address.
    InlineInfo2Counts = "JIT_CODE_INLINE_INFO (stack)", section "linux-perf-data, January 23, 2026" {
        /// Address the stack holds from.
        code_addr: u64,
        /// Number of frames.
        nr_entry: u64,
    } then {
        /// Frames, innermost first.
        entries: Array,
    }

    /// A frame.
    InlineEntry2Fixed = "inline frame", section "linux-perf-data, January 23, 2026" {
        /// Line, from 1.
        line: u32,
        /// Column, from 1; 0 where unknown.
        column: u32,
    } then {
        /// Function.
        func_name: CString,
        /// File.
        file_path: CString,
    }
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineEntry2<'a> {
    /// Line and column.
    pub fixed: InlineEntry2Fixed,
    /// Function.
    pub func_name: &'a [u8],
    /// File.
    pub file_path: &'a [u8],
}

/// A record of dialect D.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InlineInfo2<'a> {
    /// Address the stack holds from.
    pub code_addr: u64,
    /// Frames, innermost first.
    pub entries: Vec<InlineEntry2<'a>>,
    /// What pads the record.
    pub padding: &'a [u8],
}

/// Decodes a body that lies at `offset`.
///
/// # Errors
/// When sizes do not add up, or the stack is deeper than compilers inline.
pub fn decode(body: &[u8], offset: u64, endian: Endian) -> Result<InlineInfo2<'_>, ParseError> {
    let mut at = Cursor::new(body, offset, endian);
    let counts = InlineInfo2Counts::read(&mut at)?;
    if counts.nr_entry > MAX_DEPTH.into() {
        return Err(invalid(counts.nr_entry, "a stack of believable depth", offset, "nr_entry"));
    }
    let least = InlineEntry2Fixed::SIZE.saturating_add(2);
    let entries = entries::walk(&mut at, counts.nr_entry, least, "entries", |at| {
        let fixed = InlineEntry2Fixed::read(at)?;
        Ok(InlineEntry2 { fixed, func_name: at.c_string("func_name")?, file_path: at.c_string("file_path")? })
    })?;
    let padding = entries::padding(&at)?;
    Ok(InlineInfo2 { code_addr: counts.code_addr, entries, padding })
}

/// Encodes a body. What follows a NUL in a name would be misread, so names must hold none.
#[must_use]
pub fn encode(info: &InlineInfo2<'_>, endian: Endian) -> Vec<u8> {
    let mut out = Vec::new();
    InlineInfo2Counts { code_addr: info.code_addr, nr_entry: info.entries.len() as u64 }
        .write(&mut out, endian);
    for entry in &info.entries {
        entry.fixed.write(&mut out, endian);
        for text in [entry.func_name, entry.file_path] {
            out.extend(text);
            out.push(0);
        }
    }
    out.extend(info.padding);
    out
}

impl<'a> InlineInfo2<'a> {
    /// The frames, outermost first.
    pub(super) fn stack(&self) -> impl Iterator<Item = Frame<'a>> {
        self.entries.iter().rev().map(|entry| Frame {
            function: Declaration { name: entry.func_name, path: entry.file_path, ..Declaration::default() },
            path: entry.file_path,
            line: entry.fixed.line,
            column: entry.fixed.column,
        })
    }
}

/// All records about the code at `code_addr` in the shape all dialects share; the last stack holds to `code_size`.
///
/// # Errors
/// When the records unfold into far more calls than their number warrants.
pub fn tree<'a>(
    records: &[InlineInfo2<'a>],
    code_addr: u64,
    code_size: u64,
) -> Result<InlineTree<'a>, ParseError> {
    let mut order: Vec<&InlineInfo2<'a>> = records.iter().collect();
    order.sort_by_key(|record| record.code_addr);
    let outer = order.iter().find_map(|record| record.stack().next()).map(|frame| frame.function);
    let mut assembler = Assembler::new(outer.unwrap_or_default());
    for record in order {
        let stack: Vec<Frame<'a>> = record.stack().collect();
        assembler.range(record.code_addr.saturating_sub(code_addr), &stack)?;
    }
    Ok(assembler.finish(code_size))
}
