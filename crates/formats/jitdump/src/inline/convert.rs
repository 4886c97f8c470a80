//! Converts trees into the dialects that perfuse writes, A and B, and counts items that a dialect does not support.

use rustc_hash::FxHashMap;

use super::debug_info2::{DebugInfo2, FunctionRecord, InlineCallRecord, LineRecord, Range};
use super::frames::{CodeOffset, FramesRecord, SourcePosition};
use super::strings::StringList;
use super::tree::{DeclaredFunction, InlineFrame, InlineTree};

/// Numbers of items that a dialect does not support.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsupportedCounts {
    /// Lines and calls with offsets or sizes of more than 32 bits.
    pub offsets: u64,
    /// Unknown columns, which dialect A writes as column 1.
    pub unknown_columns: u64,
    /// Files of calls that differ from the caller's file (A), files of lines that differ from their function's file (B).
    pub paths: u64,
    /// Ranges that dialect B needs where an inline stack begins or ends without a line.
    pub added_ranges: u64,
}

impl UnsupportedCounts {
    /// Whether the dialect supports every item.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// An offset or size in 32 bits; counts it and returns `None` if it has more.
    fn offset(&mut self, value: u64) -> Option<u32> {
        let narrow = u32::try_from(value);
        self.offsets = self.offsets.saturating_add(u64::from(narrow.is_err()));
        narrow.ok()
    }

    /// Converts a column counted from 1 to a column counted from 0.
    fn column_from_zero(&mut self, line: u32, column: u32) -> u32 {
        self.unknown_columns = self.unknown_columns.saturating_add(u64::from(line != 0 && column == 0));
        column.saturating_sub(1)
    }
}

/// Assigns an index to each distinct string.
#[derive(Default)]
struct StringInterner<'t> {
    table: StringList<'static>,
    indices: FxHashMap<&'t [u8], u32>,
}

impl<'t> StringInterner<'t> {
    fn intern(&mut self, text: &'t [u8]) -> u32 {
        let Self { table, indices } = self;
        *indices.entry(text).or_insert_with(|| table.push(text))
    }
}

/// Converts a tree to dialect A. The record describes the next JIT_CODE_LOAD.
#[must_use]
pub fn to_debug_info2(tree: &InlineTree<'_>) -> (DebugInfo2<'static>, UnsupportedCounts) {
    let mut out = DebugInfo2Builder::default();
    out.function(tree.outer);
    let mut calls: Vec<_> = tree.calls.iter().collect();
    calls.sort_by_key(|call| (call.start_offset, call.depth));
    let mut callers = vec![tree.outer.path];
    for call in calls {
        let (Some(start_offset), Some(size)) =
            (out.unsupported.offset(call.start_offset), out.unsupported.offset(call.size))
        else {
            continue;
        };
        // Depths must not skip a level: a call whose caller was left out becomes a call of the nearest one.
        let depth = call.depth.min((callers.len() as u32).saturating_sub(1));
        callers.truncate((depth as usize).saturating_add(1));
        let differs = callers.last().is_some_and(|caller| *caller != call.call_path);
        out.unsupported.paths = out.unsupported.paths.saturating_add(u64::from(differs));
        callers.push(call.function.path);
        let function_index = out.function(call.function);
        let call_column_number = out.unsupported.column_from_zero(call.call_line, call.call_column);
        let call_line_number = call.call_line;
        out.calls.push(InlineCallRecord {
            depth,
            range_count: 1,
            function_index,
            call_line_number,
            call_column_number,
        });
        out.ranges.push(Range { start_offset, size });
    }
    for line in &tree.lines {
        let Some(code_offset) = out.unsupported.offset(line.code_offset) else { continue };
        let file_index = out.files.intern(line.path);
        let column_number = out.unsupported.column_from_zero(line.line, line.column);
        out.lines.push(LineRecord { code_offset, file_index, line_number: line.line, column_number });
    }
    out.finish()
}

/// A dialect A record under construction.
#[derive(Default)]
struct DebugInfo2Builder<'t> {
    files: StringInterner<'t>,
    names: StringInterner<'t>,
    indices: FxHashMap<DeclaredFunction<'t>, u32>,
    functions: Vec<FunctionRecord>,
    calls: Vec<InlineCallRecord>,
    ranges: Vec<Range>,
    lines: Vec<LineRecord>,
    unsupported: UnsupportedCounts,
}

impl<'t> DebugInfo2Builder<'t> {
    /// The index of a function; adds it where it is new.
    fn function(&mut self, function: DeclaredFunction<'t>) -> u32 {
        if let Some(&index) = self.indices.get(&function) {
            return index;
        }
        let number = self.functions.len() as u32;
        self.functions.push(FunctionRecord {
            function_name_index: self.names.intern(function.name),
            file_index: self.files.intern(function.path),
            start_line: function.line,
            start_column: self.unsupported.column_from_zero(function.line, function.column),
            flags: 0,
        });
        self.indices.insert(function, number);
        number
    }

    fn finish(self) -> (DebugInfo2<'static>, UnsupportedCounts) {
        let info = DebugInfo2 {
            files: self.files.table,
            function_names: self.names.table,
            functions: self.functions,
            inline_calls: self.calls,
            ranges: self.ranges,
            lines: self.lines,
            ..DebugInfo2::default()
        };
        (info, self.unsupported)
    }
}

/// Converts a tree to dialect B. The record describes the code at `code_addr`.
#[must_use]
pub fn to_frames(tree: &InlineTree<'_>, code_addr: u64) -> (FramesRecord<'static>, UnsupportedCounts) {
    let mut strings = StringInterner::default();
    let mut positions: FxHashMap<(i32, InlineFrame<'_>), i32> = FxHashMap::default();
    let mut out = FramesRecord { code_addr, ..FramesRecord::default() };
    let mut unsupported = UnsupportedCounts::default();
    tree.visit_ranges(|start, stack| {
        let Some(code_offset) = unsupported.offset(start) else { return };
        let mut caller_index = -1;
        for frame in stack {
            caller_index = *positions.entry((caller_index, *frame)).or_insert_with(|| {
                let function = &frame.function;
                let path = if frame.path.is_empty() { function.path } else { frame.path };
                let differs = path != function.path && !function.path.is_empty();
                unsupported.paths = unsupported.paths.saturating_add(u64::from(differs));
                let file = if path.is_empty() { -1 } else { strings.intern(path) as i32 };
                out.source_positions.push(SourcePosition {
                    caller_index,
                    function_name: strings.intern(function.name),
                    file,
                    function_start_line: function.line,
                    function_start_column: function.column,
                    line: frame.line,
                    column: frame.column,
                });
                (out.source_positions.len() as i32).saturating_sub(1)
            });
        }
        let at_line = tree.line_at(start).is_some_and(|line| line.code_offset == start);
        unsupported.added_ranges = unsupported.added_ranges.saturating_add(u64::from(!at_line));
        out.code_offsets.push(CodeOffset { code_offset, source_position: caller_index as u32 });
    });
    out.strings = strings.table;
    (out, unsupported)
}
