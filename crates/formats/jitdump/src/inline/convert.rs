//! From the shared shape into the dialects that are written: A and B. What a dialect has no room for is counted.

use rustc_hash::FxHashMap;

use super::debug_info2::{DebugInfo2, FunctionRecord, InlineCallRecord, LineRecord, Range};
use super::frames::{CodeOffset, Frames, SourcePosition};
use super::strings::StringTable;
use super::tree::{Declaration, Frame, InlineTree};

/// What did not fit into a dialect: how many values of each kind were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misfits {
    /// Lines and calls at offsets of more than 32 bits, and sizes of more.
    pub offsets: u64,
    /// Unknown columns, which dialect A can only write as the first.
    pub unknown_columns: u64,
    /// Files of calls that are not the caller's own (A), files of lines that are not their function's (B).
    pub paths: u64,
    /// Lines that dialect B has to make up: none is known where an inline stack begins or ends.
    pub added_ranges: u64,
}

impl Misfits {
    /// Whether everything fitted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn offset(&mut self, value: u64) -> Option<u32> {
        let fits = u32::try_from(value);
        self.offsets = self.offsets.saturating_add(u64::from(fits.is_err()));
        fits.ok()
    }

    /// A column counted from 1, counted from 0.
    fn column_from_zero(&mut self, line: u32, column: u32) -> u32 {
        self.unknown_columns = self.unknown_columns.saturating_add(u64::from(line != 0 && column == 0));
        column.saturating_sub(1)
    }
}

/// Numbers strings, each once.
#[derive(Default)]
struct Interner<'t> {
    table: StringTable<'static>,
    known: FxHashMap<&'t [u8], u32>,
}

impl<'t> Interner<'t> {
    fn intern(&mut self, text: &'t [u8]) -> u32 {
        let Self { table, known } = self;
        *known.entry(text).or_insert_with(|| table.push(text))
    }
}

/// A tree as dialect A. The record is about the next JIT_CODE_LOAD.
#[must_use]
pub fn to_debug_info2(tree: &InlineTree<'_>) -> (DebugInfo2<'static>, Misfits) {
    let mut out = Converter::default();
    out.function(tree.outer);
    let mut calls: Vec<_> = tree.calls.iter().collect();
    calls.sort_by_key(|call| (call.start_offset, call.depth));
    let mut callers = vec![tree.outer.path];
    for call in calls {
        let (Some(start_offset), Some(size)) =
            (out.misfits.offset(call.start_offset), out.misfits.offset(call.size))
        else {
            continue;
        };
        // A call whose caller was left out hangs on the nearest one that is there: depths may not jump.
        let depth = call.depth.min((callers.len() as u32).saturating_sub(1));
        callers.truncate((depth as usize).saturating_add(1));
        let foreign = callers.last().is_some_and(|caller| *caller != call.call_path);
        out.misfits.paths = out.misfits.paths.saturating_add(u64::from(foreign));
        callers.push(call.function.path);
        let function_index = out.function(call.function);
        let call_column_number = out.misfits.column_from_zero(call.call_line, call.call_column);
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
        let Some(code_offset) = out.misfits.offset(line.code_offset) else { continue };
        let file_index = out.files.intern(line.path);
        let column_number = out.misfits.column_from_zero(line.line, line.column);
        out.lines.push(LineRecord { code_offset, file_index, line_number: line.line, column_number });
    }
    out.finish()
}

#[derive(Default)]
struct Converter<'t> {
    files: Interner<'t>,
    names: Interner<'t>,
    known: FxHashMap<Declaration<'t>, u32>,
    functions: Vec<FunctionRecord>,
    calls: Vec<InlineCallRecord>,
    ranges: Vec<Range>,
    lines: Vec<LineRecord>,
    misfits: Misfits,
}

impl<'t> Converter<'t> {
    fn function(&mut self, function: Declaration<'t>) -> u32 {
        if let Some(&known) = self.known.get(&function) {
            return known;
        }
        let number = self.functions.len() as u32;
        self.functions.push(FunctionRecord {
            function_name_index: self.names.intern(function.name),
            file_index: self.files.intern(function.path),
            start_line: function.line,
            start_column: self.misfits.column_from_zero(function.line, function.column),
            flags: 0,
        });
        self.known.insert(function, number);
        number
    }

    fn finish(self) -> (DebugInfo2<'static>, Misfits) {
        let info = DebugInfo2 {
            files: self.files.table,
            function_names: self.names.table,
            functions: self.functions,
            inline_calls: self.calls,
            ranges: self.ranges,
            lines: self.lines,
            ..DebugInfo2::default()
        };
        (info, self.misfits)
    }
}

/// A tree as dialect B, about the code at `code_addr`.
#[must_use]
pub fn to_frames(tree: &InlineTree<'_>, code_addr: u64) -> (Frames<'static>, Misfits) {
    let mut strings = Interner::default();
    let mut known: FxHashMap<(i32, Frame<'_>), i32> = FxHashMap::default();
    let mut out = Frames { code_addr, ..Frames::default() };
    let mut misfits = Misfits::default();
    tree.ranges(|start, stack| {
        let Some(code_offset) = misfits.offset(start) else { return };
        let mut caller_index = -1;
        for frame in stack {
            caller_index = *known.entry((caller_index, *frame)).or_insert_with(|| {
                let function = &frame.function;
                let path = if frame.path.is_empty() { function.path } else { frame.path };
                let foreign = path != function.path && !function.path.is_empty();
                misfits.paths = misfits.paths.saturating_add(u64::from(foreign));
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
        misfits.added_ranges = misfits.added_ranges.saturating_add(u64::from(!at_line));
        out.code_offsets.push(CodeOffset { code_offset, source_position: caller_index as u32 });
    });
    out.strings = strings.table;
    (out, misfits)
}
