//! Dialect B: SAMPLY_JIT_CODE_DEBUG_INFO2 as samply's `support-inlines` branch reads it and WebKit's pull request 61093
//! writes it, id 827346260 (which the gist gives to JIT_TIER).
//!
//! Code offsets point to source positions, and those to the position of their caller. Lines and columns count from 1.

use perfuse_wire::{Cursor, Endian, ParseError, layout};

use super::entries::{self, MAX_DEPTH, invalid};
use super::strings::StringTable;
use super::tree::{Assembler, Declaration, Frame, InlineTree};

layout! {
    /// Lines and inlined calls of the code at an address.
    FramesCounts = "SAMPLY_JIT_CODE_DEBUG_INFO2 (frames)", section "samply support-inlines" {
        /// Address of the code.
        code_addr: u64,
        /// Number of code offsets.
        code_offset_count: u64,
        /// Number of source positions.
        source_position_count: u64,
        /// Number of strings.
        string_count: u64,
    } then {
        /// Code offsets, rising.
        code_offsets: Array,
        /// Source positions.
        source_positions: Array,
        /// Names and paths.
        strings: Array,
    }

    /// The code from here to the next offset is of one source position.
    CodeOffset = "CodeOffset", section "samply support-inlines" {
        /// Bytes from the start of the code.
        code_offset: u32,
        /// Index of the source position.
        source_position: u32,
    }

    /// A place in a source, called from another.
    SourcePosition = "SourcePosition", section "samply support-inlines" {
        /// Index of the position of the call this is inlined at; -1 in the outer function.
        caller_index: i32,
        /// String: name of the function.
        function_name: u32,
        /// String: file the function is declared in; -1 where unknown.
        file: i32,
        /// Line the function starts at; 0 where unknown.
        function_start_line: u32,
        /// Column the function starts at; 0 where unknown.
        function_start_column: u32,
        /// Line, from 1; 0 where unknown.
        line: u32,
        /// Column, from 1; 0 where unknown.
        column: u32,
    }
}

/// A record of dialect B.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frames<'a> {
    /// Address of the code.
    pub code_addr: u64,
    /// Where each source position begins.
    pub code_offsets: Vec<CodeOffset>,
    /// Source positions.
    pub source_positions: Vec<SourcePosition>,
    /// Names and paths.
    pub strings: StringTable<'a>,
    /// What pads the record.
    pub padding: &'a [u8],
}

/// Decodes a body that lies at `offset`.
///
/// # Errors
/// When sizes do not add up, an index is out of its list, or a chain of callers does not end.
pub fn decode(body: &[u8], offset: u64, endian: Endian) -> Result<Frames<'_>, ParseError> {
    let mut at = Cursor::new(body, offset, endian);
    let counts = FramesCounts::read(&mut at)?;
    let code_offsets =
        entries::list(&mut at, counts.code_offset_count, CodeOffset::SIZE, "code_offsets", |at| {
            let offset = at.offset();
            let entry = CodeOffset::read(at)?;
            let known = u64::from(entry.source_position) < counts.source_position_count;
            let expected = "an index into source_positions";
            if known {
                Ok(entry)
            } else {
                Err(invalid(entry.source_position.into(), expected, offset, "source_position"))
            }
        })?;
    let positions_offset = at.offset();
    let count = counts.source_position_count;
    let source_positions =
        entries::list(&mut at, count, SourcePosition::SIZE, "source_positions", SourcePosition::read)?;
    let strings = StringTable::read(&mut at, counts.string_count, "strings")?;
    for (position, number) in source_positions.iter().zip(0u64..) {
        let offset = positions_offset.saturating_add(number.saturating_mul(SourcePosition::SIZE));
        entries::index(position.function_name, strings.len(), offset, "function_name")?;
        if position.file != -1 {
            entries::index(position.file as u32, strings.len(), offset, "file")?;
        }
    }
    callers_end(&source_positions, positions_offset)?;
    let padding = entries::padding(&at)?;
    Ok(Frames { code_addr: counts.code_addr, code_offsets, source_positions, strings, padding })
}

/// Every chain of callers ends, within a believable depth. Each position is walked once.
fn callers_end(positions: &[SourcePosition], offset: u64) -> Result<(), ParseError> {
    let mut depths = vec![0u16; positions.len()];
    let mut path: Vec<usize> = Vec::new();
    for (first, number) in (0..positions.len()).zip(0u64..) {
        let offset = offset.saturating_add(number.saturating_mul(SourcePosition::SIZE));
        let mut at = first;
        let mut depth = loop {
            let (Some(position), Some(&depth)) = (positions.get(at), depths.get(at)) else {
                return Err(invalid(
                    at as u64,
                    "an index into source_positions, or -1",
                    offset,
                    "caller_index",
                ));
            };
            if depth > 0 {
                break depth;
            }
            path.push(at);
            if path.len() > MAX_DEPTH as usize {
                return Err(invalid(first as u64, "a chain of callers that ends", offset, "caller_index"));
            }
            match position.caller_index {
                -1 => break 0,
                caller => at = usize::try_from(caller).unwrap_or(usize::MAX),
            }
        };
        for passed in path.drain(..).rev() {
            depth = depth.saturating_add(1);
            if let Some(known) = depths.get_mut(passed) {
                *known = depth;
            }
        }
        if u32::from(depth) > MAX_DEPTH {
            return Err(invalid(first as u64, "a shorter chain of callers", offset, "caller_index"));
        }
    }
    Ok(())
}

/// Encodes a body; counts are computed.
#[must_use]
pub fn encode(frames: &Frames<'_>, endian: Endian) -> Vec<u8> {
    let mut out = Vec::new();
    FramesCounts {
        code_addr: frames.code_addr,
        code_offset_count: frames.code_offsets.len() as u64,
        source_position_count: frames.source_positions.len() as u64,
        string_count: frames.strings.len().into(),
    }
    .write(&mut out, endian);
    frames.code_offsets.iter().for_each(|entry| entry.write(&mut out, endian));
    frames.source_positions.iter().for_each(|position| position.write(&mut out, endian));
    out.extend(frames.strings.as_bytes());
    out.extend(frames.padding);
    out
}

impl Frames<'_> {
    /// The record in the shape all dialects share; the last range ends at `code_size`.
    ///
    /// # Errors
    /// When the record unfolds into far more calls than its size warrants.
    pub fn tree(&self, code_size: u64) -> Result<InlineTree<'_>, ParseError> {
        let mut order: Vec<&CodeOffset> = self.code_offsets.iter().collect();
        order.sort_by_key(|entry| entry.code_offset);
        let outermost = self.source_positions.iter().find(|position| position.caller_index == -1);
        let mut assembler = Assembler::new(outermost.map(|p| self.frame(p).function).unwrap_or_default());
        let mut stack = Vec::new();
        for entry in order {
            stack.clear();
            let mut at = self.source_positions.get(entry.source_position as usize);
            while let Some(position) = at.filter(|_| stack.len() <= MAX_DEPTH as usize) {
                stack.push(self.frame(position));
                at = usize::try_from(position.caller_index).ok().and_then(|at| self.source_positions.get(at));
            }
            stack.reverse();
            assembler.range(entry.code_offset.into(), &stack)?;
        }
        Ok(assembler.finish(code_size))
    }

    /// A source position with its strings.
    pub(super) fn frame(&self, position: &SourcePosition) -> Frame<'_> {
        let path =
            u32::try_from(position.file).ok().and_then(|file| self.strings.get(file)).unwrap_or_default();
        Frame {
            function: Declaration {
                name: self.strings.get(position.function_name).unwrap_or_default(),
                path,
                line: position.function_start_line,
                column: position.function_start_column,
            },
            path,
            line: position.line,
            column: position.column,
        }
    }
}
