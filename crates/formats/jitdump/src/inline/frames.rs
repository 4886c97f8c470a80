//! Dialect B: SAMPLY_JIT_CODE_DEBUG_INFO2 as samply's `support-inlines` branch reads it and WebKit's pull request 61093
//! writes it, id 827346260 (which samply's document assigns to JIT_TIER).
//!
//! Code offsets point to source positions, and those to the position of their caller. Lines and columns count from 1.

use perfuse_wire::{Cursor, Endian, ParseError, Value, layout};

use super::entries::{self, MAX_DEPTH, invalid};
use super::strings::StringList;
use super::tree::{DeclaredFunction, InlineFrame, InlineTree, TreeBuilder};

layout! {
    /// Lines and inlined calls of the code at an address.
    FramesCounts = "SAMPLY_JIT_CODE_DEBUG_INFO2 (frames)", section "samply support-inlines" {
        /// Address of the code.
        code_addr: u64 as Hex,
        /// Number of code offsets.
        code_offset_count: u64,
        /// Number of source positions.
        source_position_count: u64,
        /// Number of strings.
        string_count: u64,
    } then {
        /// Code offsets in ascending order.
        code_offsets: Array,
        /// Source positions.
        source_positions: Array,
        /// Names and paths.
        strings: Array,
    }

    /// The source position of the code from an offset to the next one.
    CodeOffset = "CodeOffset", section "samply support-inlines" {
        /// Offset from the start of the code, in bytes.
        code_offset: u32,
        /// Index of the source position.
        source_position: u32,
    }

    /// A source position, with the position of its caller.
    SourcePosition = "SourcePosition", section "samply support-inlines" {
        /// Index of the position of the call that was inlined; -1 in the outer function.
        caller_index: i32,
        /// Index of a string: name of the function.
        function_name: u32,
        /// Index of a string: file that declares the function; -1 if unknown.
        file: i32,
        /// Line at which the function starts; 0 if unknown.
        function_start_line: u32,
        /// Column at which the function starts; 0 if unknown.
        function_start_column: u32,
        /// Line, from 1; 0 if unknown.
        line: u32,
        /// Column, from 1; 0 if unknown.
        column: u32,
    }
}

/// A record of dialect B.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FramesRecord<'a> {
    /// Address of the code.
    pub code_addr: u64,
    /// Offsets at which source positions begin.
    pub code_offsets: Vec<CodeOffset>,
    /// Source positions.
    pub source_positions: Vec<SourcePosition>,
    /// Names and paths.
    pub strings: StringList<'a>,
    /// Padding of the record.
    pub padding: &'a [u8],
}

/// Decodes a body at an absolute offset.
///
/// # Errors
/// When sizes do not add up, an index is out of its list, or a chain of callers does not end.
pub fn decode(body: &[u8], offset: u64, endian: Endian) -> Result<FramesRecord<'_>, ParseError> {
    let mut at = Cursor::new(body, offset, endian);
    let counts = FramesCounts::read(&mut at)?;
    let code_offsets =
        entries::read_list(&mut at, counts.code_offset_count, CodeOffset::SIZE, "code_offsets", |at| {
            let offset = at.offset();
            let entry = CodeOffset::read(at)?;
            let is_valid = u64::from(entry.source_position) < counts.source_position_count;
            let expected = "an index into source_positions";
            if is_valid {
                Ok(entry)
            } else {
                Err(invalid(entry.source_position.into(), expected, offset, "source_position"))
            }
        })?;
    let positions_offset = at.offset();
    let count = counts.source_position_count;
    let source_positions =
        entries::read_list(&mut at, count, SourcePosition::SIZE, "source_positions", SourcePosition::read)?;
    let strings = StringList::read(&mut at, counts.string_count, "strings")?;
    for (position, number) in source_positions.iter().zip(0u64..) {
        let offset = positions_offset.saturating_add(number.saturating_mul(SourcePosition::SIZE));
        entries::check_index(position.function_name, strings.len(), offset, "function_name")?;
        if position.file != -1 {
            entries::check_index(position.file as u32, strings.len(), offset, "file")?;
        }
    }
    check_caller_chains(&source_positions, positions_offset)?;
    let padding = entries::read_padding(&at)?;
    Ok(FramesRecord { code_addr: counts.code_addr, code_offsets, source_positions, strings, padding })
}

/// Whether a body begins with the counts of this dialect: none is larger than the body has bytes, and there are positions
/// with names.
pub(super) fn has_plausible_counts(body: &[u8], endian: Endian) -> bool {
    FramesCounts::read(&mut Cursor::new(body, 0, endian)).is_ok_and(|counts| {
        let lists = [counts.code_offset_count, counts.source_position_count, counts.string_count];
        counts.code_addr != 0 && lists.iter().all(|count| (1..=body.len() as u64).contains(count))
    })
}

/// Checks that every chain of callers ends within `MAX_DEPTH` positions. Visits each position once.
fn check_caller_chains(positions: &[SourcePosition], offset: u64) -> Result<(), ParseError> {
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
        for visited in path.drain(..).rev() {
            depth = depth.saturating_add(1);
            if let Some(known_depth) = depths.get_mut(visited) {
                *known_depth = depth;
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
pub fn encode(frames: &FramesRecord<'_>, endian: Endian) -> Vec<u8> {
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

impl FramesRecord<'_> {
    /// Names and values of the fields.
    pub(super) fn fields<'v>(&self) -> Vec<(&'static str, Value<'v>)> {
        vec![
            ("code_addr", Value::Hex(self.code_addr)),
            ("code_offsets", Value::Entries(self.code_offsets.iter().map(CodeOffset::values).collect())),
            (
                "source_positions",
                Value::Entries(self.source_positions.iter().map(SourcePosition::values).collect()),
            ),
            ("strings", self.strings.value()),
        ]
    }

    /// The record as a tree, the form common to all dialects; the last range ends at `code_size`.
    ///
    /// # Errors
    /// When the record expands to more calls than its size allows.
    pub fn tree(&self, code_size: u64) -> Result<InlineTree<'_>, ParseError> {
        let mut order: Vec<&CodeOffset> = self.code_offsets.iter().collect();
        order.sort_by_key(|entry| entry.code_offset);
        let outermost = self.source_positions.iter().find(|position| position.caller_index == -1);
        let mut builder = TreeBuilder::new(outermost.map(|p| self.frame(p).function).unwrap_or_default());
        let mut stack = Vec::new();
        for entry in order {
            stack.clear();
            let mut at = self.source_positions.get(entry.source_position as usize);
            while let Some(position) = at.filter(|_| stack.len() <= MAX_DEPTH as usize) {
                stack.push(self.frame(position));
                at = usize::try_from(position.caller_index).ok().and_then(|at| self.source_positions.get(at));
            }
            stack.reverse();
            builder.add_range(entry.code_offset.into(), &stack)?;
        }
        Ok(builder.finish(code_size))
    }

    /// A source position with its strings.
    pub(super) fn frame(&self, position: &SourcePosition) -> InlineFrame<'_> {
        let path =
            u32::try_from(position.file).ok().and_then(|file| self.strings.get(file)).unwrap_or_default();
        InlineFrame {
            function: DeclaredFunction {
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
