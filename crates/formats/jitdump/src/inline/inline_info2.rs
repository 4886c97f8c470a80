//! Dialect D: JIT_CODE_INLINE_INFO, id 5, the second of its two abandoned layouts (January 2026).
//!
//! One record for each address: the inline stack of the code from there to the next record's address, innermost frame first.
//! Lines and columns count from 1.

use perfuse_wire::{Cursor, Endian, ParseError, Value, layout};

use super::entries::{self, MAX_DEPTH, invalid};
use super::tree::{DeclaredFunction, InlineFrame, InlineTree, TreeBuilder};

layout! {
    /// The inline stack at an address.
    InlineInfo2Counts = "JIT_CODE_INLINE_INFO (stack)", section "linux-perf-data, January 23, 2026" {
        /// Address from which the stack applies.
        code_addr: u64 as Hex,
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
        /// Column, from 1; 0 if unknown.
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
    /// Address from which the stack applies.
    pub code_addr: u64,
    /// Frames, innermost first.
    pub entries: Vec<InlineEntry2<'a>>,
    /// Padding of the record.
    pub padding: &'a [u8],
}

/// Decodes a body at an absolute offset.
///
/// # Errors
/// When sizes do not add up, or the stack has more than `MAX_DEPTH` frames.
pub fn decode(body: &[u8], offset: u64, endian: Endian) -> Result<InlineInfo2<'_>, ParseError> {
    let mut at = Cursor::new(body, offset, endian);
    let counts = InlineInfo2Counts::read(&mut at)?;
    if counts.nr_entry > MAX_DEPTH.into() {
        return Err(invalid(counts.nr_entry, "a stack of believable depth", offset, "nr_entry"));
    }
    let least = InlineEntry2Fixed::SIZE.saturating_add(2);
    let entries = entries::read_entries(&mut at, counts.nr_entry, least, "entries", |at| {
        let fixed = InlineEntry2Fixed::read(at)?;
        Ok(InlineEntry2 { fixed, func_name: at.c_string("func_name")?, file_path: at.c_string("file_path")? })
    })?;
    let padding = entries::read_padding(&at)?;
    Ok(InlineInfo2 { code_addr: counts.code_addr, entries, padding })
}

/// Encodes a body. Names must not contain NULs, at which readers end them.
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
    /// Names and values of the fields.
    pub(super) fn fields(&self) -> Vec<(&'static str, Value<'a>)> {
        let entries = self.entries.iter().map(|entry| {
            let mut fields: Vec<(&str, Value<'a>)> = entry.fixed.values();
            fields.push(("func_name", Value::text(entry.func_name)));
            fields.push(("file_path", Value::text(entry.file_path)));
            fields
        });
        vec![("code_addr", Value::Hex(self.code_addr)), ("entries", Value::Entries(entries.collect()))]
    }

    /// The frames, outermost first.
    pub(super) fn stack(&self) -> impl Iterator<Item = InlineFrame<'a>> {
        self.entries.iter().rev().map(|entry| InlineFrame {
            function: DeclaredFunction {
                name: entry.func_name,
                path: entry.file_path,
                ..DeclaredFunction::default()
            },
            path: entry.file_path,
            line: entry.fixed.line,
            column: entry.fixed.column,
        })
    }
}

/// All records of the code at `code_addr` as a tree, the form common to all dialects; the last stack applies up to `code_size`.
///
/// # Errors
/// When the records expand to more calls than their number allows.
pub fn tree<'a>(
    records: &[InlineInfo2<'a>],
    code_addr: u64,
    code_size: u64,
) -> Result<InlineTree<'a>, ParseError> {
    let mut order: Vec<&InlineInfo2<'a>> = records.iter().collect();
    order.sort_by_key(|record| record.code_addr);
    let outer = order.iter().find_map(|record| record.stack().next()).map(|frame| frame.function);
    let mut builder = TreeBuilder::new(outer.unwrap_or_default());
    for record in order {
        let stack: Vec<InlineFrame<'a>> = record.stack().collect();
        builder.add_range(record.code_addr.saturating_sub(code_addr), &stack)?;
    }
    Ok(builder.finish(code_size))
}
