//! Dialect A: SAMPLY_JIT_CODE_DEBUG_INFO2 as the gist of October 2023 lays it out, id 827346259.
//!
//! Six lists. The record has no address: it is about the next JIT_CODE_LOAD. Columns count from 0.

use perfuse_wire::{Cursor, Endian, ParseError, layout};

use super::entries::{self, invalid};
use super::strings::StringTable;
use super::tree::{Call, Declaration, InlineTree, Line};

layout! {
    /// Lines and inlined calls of the next JIT_CODE_LOAD.
    DebugInfo2Counts = "SAMPLY_JIT_CODE_DEBUG_INFO2", section "gist" {
        /// Number of strings in the file list.
        file_count: u32,
        /// Size in bytes of the file list, padded to a multiple of 4.
        file_list_size: u32,
        /// Number of strings in the function names list.
        function_names_count: u32,
        /// Size in bytes of the function names list, padded to a multiple of 4.
        function_names_list_size: u32,
        /// Number of function records; the first describes the outer function.
        function_count: u32,
        /// Number of inline call records.
        inline_call_record_count: u32,
        /// Number of ranges.
        range_count: u32,
        /// Number of line records.
        line_record_count: u32,
    } then {
        /// Paths.
        file_list: Array,
        /// Names.
        function_names_list: Array,
        /// Functions.
        function_list: Array,
        /// Calls, depth first.
        inline_call_list: Array,
        /// Ranges, in the order of the calls, each call taking its `range_count`.
        range_list: Array,
        /// Lines, by offset.
        line_record_list: Array,
    }

    /// A function that is, or was inlined into, the code.
    FunctionRecord = "FunctionRecord", section "gist" {
        /// Index into the function names list.
        function_name_index: u32,
        /// Index into the file list: where it is declared.
        file_index: u32,
        /// Line it starts at.
        start_line: u32,
        /// Column it starts at.
        start_column: u32,
        /// Meaning left open by the gist.
        flags: u32,
    }

    /// An inlined call.
    InlineCallRecord = "InlineCallRecord", section "gist" {
        /// 0 for a call from the outer function; at most the previous call's depth + 1.
        depth: u32,
        /// Ranges that are this call's, 1 or more.
        range_count: u32,
        /// Index of the called function.
        function_index: u32,
        /// Line of the call, in the caller's file.
        call_line_number: u32,
        /// Column of the call.
        call_column_number: u32,
    }

    /// Instructions of an inlined call.
    Range = "Range", section "gist" {
        /// Bytes from the start of the code.
        start_offset: u32,
        /// Length in bytes.
        size: u32,
    }

    /// A line, inside the deepest call at its offset.
    LineRecord = "LineRecord", section "gist" {
        /// Bytes from the start of the code.
        code_offset: u32,
        /// Index into the file list.
        file_index: u32,
        /// Line, from 1.
        line_number: u32,
        /// Column, from 0.
        column_number: u32,
    }
}

/// A record of dialect A.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DebugInfo2<'a> {
    /// Paths.
    pub files: StringTable<'a>,
    /// What pads the paths; written as zeros where its length does not fit.
    pub files_padding: &'a [u8],
    /// Names of functions.
    pub function_names: StringTable<'a>,
    /// What pads the names.
    pub function_names_padding: &'a [u8],
    /// Functions, the outer one first.
    pub functions: Vec<FunctionRecord>,
    /// Calls, depth first.
    pub inline_calls: Vec<InlineCallRecord>,
    /// Ranges, in the order of the calls.
    pub ranges: Vec<Range>,
    /// Lines.
    pub lines: Vec<LineRecord>,
    /// What pads the record.
    pub padding: &'a [u8],
}

/// Decodes a body that lies at `offset`.
///
/// # Errors
/// When sizes do not add up, an index is out of its list, or calls are not nested.
pub fn decode(body: &[u8], offset: u64, endian: Endian) -> Result<DebugInfo2<'_>, ParseError> {
    let mut at = Cursor::new(body, offset, endian);
    let counts = DebugInfo2Counts::read(&mut at)?;
    let (files, files_padding) = string_list(&mut at, counts.file_count, counts.file_list_size, "file_list")?;
    let names_size = counts.function_names_list_size;
    let (function_names, function_names_padding) =
        string_list(&mut at, counts.function_names_count, names_size, "function_names_list")?;
    let functions = list(&mut at, counts.function_count, FunctionRecord::SIZE, "function_list", |at| {
        let offset = at.offset();
        let function = FunctionRecord::read(at)?;
        entries::index(function.function_name_index, function_names.len(), offset, "function_name_index")?;
        entries::index(function.file_index, files.len(), offset, "file_index").map(|()| function)
    })?;
    let calls_offset = at.offset();
    let calls_count = counts.inline_call_record_count;
    let inline_calls =
        list(&mut at, calls_count, InlineCallRecord::SIZE, "inline_call_list", InlineCallRecord::read)?;
    nested(&inline_calls, &counts, calls_offset)?;
    let ranges = list(&mut at, counts.range_count, Range::SIZE, "range_list", Range::read)?;
    let lines = list(&mut at, counts.line_record_count, LineRecord::SIZE, "line_record_list", |at| {
        let offset = at.offset();
        let line = LineRecord::read(at)?;
        entries::index(line.file_index, files.len(), offset, "file_index").map(|()| line)
    })?;
    let padding = entries::padding(&at)?;
    Ok(DebugInfo2 {
        files,
        files_padding,
        function_names,
        function_names_padding,
        functions,
        inline_calls,
        ranges,
        lines,
        padding,
    })
}

fn list<'a, T>(
    at: &mut Cursor<'a>,
    count: u32,
    size: u64,
    field: &'static str,
    read: impl Fn(&mut Cursor<'a>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    entries::list(at, count.into(), size, field, read)
}

fn string_list<'a>(
    at: &mut Cursor<'a>,
    count: u32,
    size: u32,
    field: &'static str,
) -> Result<(StringTable<'a>, &'a [u8]), ParseError> {
    let mut region = at.split(size.into(), field)?;
    let strings = StringTable::read(&mut region, count.into(), field)?;
    let padding = region.rest();
    if padding.len() > 3 || !size.is_multiple_of(4) {
        return Err(invalid(size.into(), "its strings, padded to a multiple of 4", region.offset(), field));
    }
    Ok((strings, padding))
}

/// Depths rise by one at most, functions exist, and the calls take all ranges.
fn nested(calls: &[InlineCallRecord], counts: &DebugInfo2Counts, offset: u64) -> Result<(), ParseError> {
    let mut previous = None;
    let mut ranges = 0u64;
    for (call, number) in calls.iter().zip(0u64..) {
        let offset = offset.saturating_add(number.saturating_mul(InlineCallRecord::SIZE));
        entries::depth(previous, call.depth, offset)?;
        entries::index(call.function_index, counts.function_count, offset, "function_index")?;
        previous = Some(call.depth);
        ranges = ranges.saturating_add(call.range_count.into());
    }
    if ranges != u64::from(counts.range_count) {
        return Err(invalid(ranges, "the sum of the calls' range_count", offset, "range_count"));
    }
    Ok(())
}

/// Encodes a body; counts and sizes are computed.
#[must_use]
pub fn encode(info: &DebugInfo2<'_>, endian: Endian) -> Vec<u8> {
    let files = padded(&info.files, info.files_padding);
    let names = padded(&info.function_names, info.function_names_padding);
    let mut out = Vec::new();
    DebugInfo2Counts {
        file_count: info.files.len(),
        file_list_size: files.len() as u32,
        function_names_count: info.function_names.len(),
        function_names_list_size: names.len() as u32,
        function_count: info.functions.len() as u32,
        inline_call_record_count: info.inline_calls.len() as u32,
        range_count: info.ranges.len() as u32,
        line_record_count: info.lines.len() as u32,
    }
    .write(&mut out, endian);
    out.extend(files);
    out.extend(names);
    info.functions.iter().for_each(|function| function.write(&mut out, endian));
    info.inline_calls.iter().for_each(|call| call.write(&mut out, endian));
    info.ranges.iter().for_each(|range| range.write(&mut out, endian));
    info.lines.iter().for_each(|line| line.write(&mut out, endian));
    out.extend(info.padding);
    out
}

/// The padding as it was read, or zeros up to a multiple of 4 where there was none to keep.
fn padded(strings: &StringTable<'_>, padding: &[u8]) -> Vec<u8> {
    let mut out = strings.as_bytes().to_vec();
    out.extend(padding);
    if padding.is_empty() {
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

impl DebugInfo2<'_> {
    /// The record in the shape all dialects share.
    #[must_use]
    pub fn tree(&self) -> InlineTree<'_> {
        let mut tree = InlineTree { outer: self.declaration(0), ..InlineTree::default() };
        tree.lines.extend(self.lines.iter().map(|line| Line {
            code_offset: line.code_offset.into(),
            path: self.files.get(line.file_index).unwrap_or_default(),
            line: line.line_number,
            column: from_one(line.line_number, line.column_number),
        }));
        let mut ranges = self.ranges.iter();
        let mut callers: Vec<&[u8]> = vec![tree.outer.path];
        for call in &self.inline_calls {
            let function = self.declaration(call.function_index);
            callers.truncate((call.depth as usize).saturating_add(1));
            let call_path = callers.last().copied().unwrap_or_default();
            callers.push(function.path);
            tree.calls.extend(ranges.by_ref().take(call.range_count as usize).map(|range| Call {
                start_offset: range.start_offset.into(),
                size: range.size.into(),
                depth: call.depth,
                function,
                call_path,
                call_line: call.call_line_number,
                call_column: from_one(call.call_line_number, call.call_column_number),
            }));
        }
        tree.sort();
        tree
    }

    /// A function of the function list; nothing where there is none of that number.
    pub(super) fn declaration(&self, function: u32) -> Declaration<'_> {
        let Some(function) = self.functions.get(function as usize) else { return Declaration::default() };
        Declaration {
            name: self.function_names.get(function.function_name_index).unwrap_or_default(),
            path: self.files.get(function.file_index).unwrap_or_default(),
            line: function.start_line,
            column: from_one(function.start_line, function.start_column),
        }
    }
}

/// The gist counts a line's columns from 0 and says nothing of other columns; they are read the same way. Where there
/// is no line there is no column.
fn from_one(line: u32, column: u32) -> u32 {
    if line == 0 { 0 } else { column.saturating_add(1) }
}
