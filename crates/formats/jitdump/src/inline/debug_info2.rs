//! Dialect A: SAMPLY_JIT_CODE_DEBUG_INFO2 in the layout of samply's document (a gist of October 2023), id 827346259.
//!
//! Six lists. The record contains no address: it describes the next JIT_CODE_LOAD. Columns count from 0.

use perfuse_wire::{Cursor, Endian, ParseError, Value, layout};

use super::entries::{self, invalid};
use super::strings::StringList;
use super::tree::{DeclaredFunction, InlineCall, InlineTree, SourceLine};

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

    /// The function of the code, or a function inlined into it.
    FunctionRecord = "FunctionRecord", section "gist" {
        /// Index into the function names list.
        function_name_index: u32,
        /// Index into the file list: the file that declares it.
        file_index: u32,
        /// Line at which it starts.
        start_line: u32,
        /// Column at which it starts.
        start_column: u32,
        /// The document does not define a meaning.
        flags: u32,
    }

    /// An inlined call.
    InlineCallRecord = "InlineCallRecord", section "gist" {
        /// 0 for a call from the outer function; at most the previous call's depth + 1.
        depth: u32,
        /// Number of ranges of this call, 1 or more.
        range_count: u32,
        /// Index of the called function.
        function_index: u32,
        /// Line of the call, in the caller's file.
        call_line_number: u32,
        /// Column of the call.
        call_column_number: u32,
    }

    /// A range of instructions of an inlined call.
    Range = "Range", section "gist" {
        /// Offset from the start of the code, in bytes.
        start_offset: u32,
        /// Length in bytes.
        size: u32,
    }

    /// A source line; it belongs to the deepest call at its offset.
    LineRecord = "LineRecord", section "gist" {
        /// Offset from the start of the code, in bytes.
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
    pub files: StringList<'a>,
    /// Padding of the paths; the encoder writes zeros up to a multiple of 4 where it is empty.
    pub files_padding: &'a [u8],
    /// Names of functions.
    pub function_names: StringList<'a>,
    /// Padding of the names.
    pub function_names_padding: &'a [u8],
    /// Functions, the outer one first.
    pub functions: Vec<FunctionRecord>,
    /// Calls, depth first.
    pub inline_calls: Vec<InlineCallRecord>,
    /// Ranges, in the order of the calls.
    pub ranges: Vec<Range>,
    /// Lines.
    pub lines: Vec<LineRecord>,
    /// Padding of the record.
    pub padding: &'a [u8],
}

/// Decodes a body at an absolute offset.
///
/// # Errors
/// When sizes do not add up, an index is out of its list, or calls are not nested.
pub fn decode(body: &[u8], offset: u64, endian: Endian) -> Result<DebugInfo2<'_>, ParseError> {
    let mut at = Cursor::new(body, offset, endian);
    let counts = DebugInfo2Counts::read(&mut at)?;
    let (files, files_padding) =
        read_string_list(&mut at, counts.file_count, counts.file_list_size, "file_list")?;
    let names_size = counts.function_names_list_size;
    let (function_names, function_names_padding) =
        read_string_list(&mut at, counts.function_names_count, names_size, "function_names_list")?;
    let functions = read_list(&mut at, counts.function_count, FunctionRecord::SIZE, "function_list", |at| {
        let offset = at.offset();
        let function = FunctionRecord::read(at)?;
        entries::check_index(
            function.function_name_index,
            function_names.len(),
            offset,
            "function_name_index",
        )?;
        entries::check_index(function.file_index, files.len(), offset, "file_index").map(|()| function)
    })?;
    let calls_offset = at.offset();
    let calls_count = counts.inline_call_record_count;
    let inline_calls =
        read_list(&mut at, calls_count, InlineCallRecord::SIZE, "inline_call_list", InlineCallRecord::read)?;
    check_calls(&inline_calls, &counts, calls_offset)?;
    let ranges = read_list(&mut at, counts.range_count, Range::SIZE, "range_list", Range::read)?;
    let lines = read_list(&mut at, counts.line_record_count, LineRecord::SIZE, "line_record_list", |at| {
        let offset = at.offset();
        let line = LineRecord::read(at)?;
        entries::check_index(line.file_index, files.len(), offset, "file_index").map(|()| line)
    })?;
    let padding = entries::read_padding(&at)?;
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

/// Reads `count` entries of `size` bytes each.
fn read_list<'a, T>(
    at: &mut Cursor<'a>,
    count: u32,
    size: u64,
    field: &'static str,
    read: impl Fn(&mut Cursor<'a>) -> Result<T, ParseError>,
) -> Result<Vec<T>, ParseError> {
    entries::read_list(at, count.into(), size, field, read)
}

/// Reads a list of strings and its padding.
fn read_string_list<'a>(
    at: &mut Cursor<'a>,
    count: u32,
    size: u32,
    field: &'static str,
) -> Result<(StringList<'a>, &'a [u8]), ParseError> {
    let mut region = at.split(size.into(), field)?;
    let strings = StringList::read(&mut region, count.into(), field)?;
    let padding = region.rest();
    if padding.len() > 3 || !size.is_multiple_of(4) {
        return Err(invalid(size.into(), "its strings, padded to a multiple of 4", region.offset(), field));
    }
    Ok((strings, padding))
}

/// Checks that depths increase by at most 1, function indices are valid, and the calls use all ranges.
fn check_calls(calls: &[InlineCallRecord], counts: &DebugInfo2Counts, offset: u64) -> Result<(), ParseError> {
    let mut previous = None;
    let mut ranges = 0u64;
    for (call, number) in calls.iter().zip(0u64..) {
        let offset = offset.saturating_add(number.saturating_mul(InlineCallRecord::SIZE));
        entries::check_depth(previous, call.depth, offset)?;
        entries::check_index(call.function_index, counts.function_count, offset, "function_index")?;
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
    let files = with_padding(&info.files, info.files_padding);
    let names = with_padding(&info.function_names, info.function_names_padding);
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

/// The strings with their padding as read, or with zeros up to a multiple of 4 where there is none.
fn with_padding(strings: &StringList<'_>, padding: &[u8]) -> Vec<u8> {
    let mut out = strings.as_bytes().to_vec();
    out.extend(padding);
    if padding.is_empty() {
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out
}

impl DebugInfo2<'_> {
    /// Names and values of the fields.
    pub(super) fn fields<'v>(&self) -> Vec<(&'static str, Value<'v>)> {
        vec![
            ("file_list", self.files.value()),
            ("function_names_list", self.function_names.value()),
            ("function_list", Value::Entries(self.functions.iter().map(FunctionRecord::values).collect())),
            (
                "inline_call_list",
                Value::Entries(self.inline_calls.iter().map(InlineCallRecord::values).collect()),
            ),
            ("range_list", Value::Entries(self.ranges.iter().map(Range::values).collect())),
            ("line_record_list", Value::Entries(self.lines.iter().map(LineRecord::values).collect())),
        ]
    }

    /// The record as a tree, the form common to all dialects.
    #[must_use]
    pub fn tree(&self) -> InlineTree<'_> {
        let mut tree = InlineTree { outer: self.declaration(0), ..InlineTree::default() };
        tree.lines.extend(self.lines.iter().map(|line| SourceLine {
            code_offset: line.code_offset.into(),
            path: self.files.get(line.file_index).unwrap_or_default(),
            line: line.line_number,
            column: column_from_one(line.line_number, line.column_number),
        }));
        let mut ranges = self.ranges.iter();
        let mut callers: Vec<&[u8]> = vec![tree.outer.path];
        for call in &self.inline_calls {
            let function = self.declaration(call.function_index);
            callers.truncate((call.depth as usize).saturating_add(1));
            let call_path = callers.last().copied().unwrap_or_default();
            callers.push(function.path);
            tree.calls.extend(ranges.by_ref().take(call.range_count as usize).map(|range| InlineCall {
                start_offset: range.start_offset.into(),
                size: range.size.into(),
                depth: call.depth,
                function,
                call_path,
                call_line: call.call_line_number,
                call_column: column_from_one(call.call_line_number, call.call_column_number),
            }));
        }
        tree.sort();
        tree
    }

    /// A function of the function list; empty for an index outside of it.
    pub(super) fn declaration(&self, function: u32) -> DeclaredFunction<'_> {
        let Some(function) = self.functions.get(function as usize) else {
            return DeclaredFunction::default();
        };
        DeclaredFunction {
            name: self.function_names.get(function.function_name_index).unwrap_or_default(),
            path: self.files.get(function.file_index).unwrap_or_default(),
            line: function.start_line,
            column: column_from_one(function.start_line, function.start_column),
        }
    }
}

/// A column counted from 1. The document counts columns of lines from 0 and does not define other columns, which are read
/// the same way. Without a line the column is 0, for unknown.
fn column_from_one(line: u32, column: u32) -> u32 {
    if line == 0 { 0 } else { column.saturating_add(1) }
}
