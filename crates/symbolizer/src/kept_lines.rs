//! Decoded lines and inlined calls, kept for the next look-up in the same code.

use std::sync::{Arc, Mutex, PoisonError};

use perfuse_addresses::inlined::{CallExtent, calls_at};
use perfuse_jitdump::code_lines::{debug_lines, with_inline_tree};
use perfuse_jitdump::index::{DumpIndex, LoadedCode};
use rustc_hash::{FxHashMap, FxHashSet};

/// Largest number of rows that are kept, of all code together: about 50 MB.
const MOST_ROWS: usize = 1 << 20;

/// A position in a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinePosition {
    pub path: Option<Arc<str>>,
    pub line: Option<u32>,
    pub column: Option<u32>,
}

/// A row of lines, or the position of a call.
#[derive(Clone, Debug)]
struct KeptLine {
    code_offset: u64,
    path: Option<Arc<str>>,
    line: u32,
    column: u32,
}

impl KeptLine {
    fn position(&self) -> LinePosition {
        let nonzero = |value: u32| (value != 0).then_some(value);
        LinePosition { path: self.path.clone(), line: nonzero(self.line), column: nonzero(self.column) }
    }
}

#[derive(Clone, Debug)]
struct KeptCall {
    range: CallExtent,
    function: u32,
    call: KeptLine,
}

/// Lines and inlined calls of a piece of code.
#[derive(Debug, Default)]
pub struct DecodedLines {
    lines: Vec<KeptLine>,
    calls: Vec<KeptCall>,
}

impl DecodedLines {
    /// The source position at an offset.
    pub fn position(&self, code_offset: u64) -> LinePosition {
        let after = self.lines.partition_point(|row| row.code_offset <= code_offset);
        let row = after.checked_sub(1).and_then(|at| self.lines.get(at));
        row.filter(|row| row.line != 0).map(KeptLine::position).unwrap_or_default()
    }

    /// The calls that are inlined at an offset, outermost first: index of the function, and where it is called.
    pub fn calls(&self, code_offset: u64) -> Vec<(u32, LinePosition)> {
        if self.calls.is_empty() {
            return Vec::new();
        }
        let nothing = CallExtent { start: 0, size: 0, depth: 0 };
        let range = |row: usize| self.calls.get(row).map_or(nothing, |call| call.range);
        let rows = calls_at(0..self.calls.len(), code_offset, range).into_iter();
        rows.filter_map(|row| self.calls.get(row)).map(|row| (row.function, row.call.position())).collect()
    }
}

/// The rows of code that was looked up, up to a limit.
#[derive(Debug, Default)]
pub struct KeptLines(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_code: FxHashMap<u32, Arc<DecodedLines>>,
    num_rows: usize,
    paths: FxHashSet<Arc<str>>,
}

impl KeptLines {
    /// Forgets all rows.
    pub fn clear(&mut self) {
        *self.0.get_mut().unwrap_or_else(PoisonError::into_inner) = Kept::default();
    }

    /// The rows of the code with this index.
    pub fn of(&self, data: &[u8], index: &DumpIndex, id: u32, code: &LoadedCode) -> Arc<DecodedLines> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = kept.by_code.get(&id) {
            return Arc::clone(rows);
        }
        let rows = Arc::new(decode(data, index, code, &mut kept.paths));
        let num_rows = rows.lines.len().saturating_add(rows.calls.len()).saturating_add(1);
        if kept.num_rows.saturating_add(num_rows) > MOST_ROWS {
            *kept = Kept::default();
        }
        kept.num_rows = kept.num_rows.saturating_add(num_rows);
        kept.by_code.insert(id, Arc::clone(&rows));
        rows
    }
}

fn decode(
    data: &[u8],
    index: &DumpIndex,
    code: &LoadedCode,
    paths: &mut FxHashSet<Arc<str>>,
) -> DecodedLines {
    let mut rows = DecodedLines::default();
    let mut last: (&[u8], Option<Arc<str>>) = (&[], None);
    let mut path_of = |raw: &[u8]| -> Option<Arc<str>> {
        let text = String::from_utf8_lossy(raw);
        if text.is_empty() {
            return None;
        }
        if let Some(known) = paths.get(&*text) {
            return Some(Arc::clone(known));
        }
        let text: Arc<str> = text.into();
        paths.insert(Arc::clone(&text));
        Some(text)
    };
    with_inline_tree(data, index, code, |_, tree| {
        rows.lines.extend(tree.lines.iter().map(|line| KeptLine {
            code_offset: line.code_offset,
            path: path_of(line.path),
            line: line.line,
            column: line.column,
        }));
        rows.calls.extend(tree.calls.iter().filter_map(|call| {
            let range = CallExtent { start: call.start_offset, size: call.size, depth: call.depth };
            let function = index.functions.find_declared(&call.function)?;
            let position = KeptLine {
                code_offset: call.start_offset,
                path: path_of(call.call_path),
                line: call.call_line,
                column: call.call_column,
            };
            Some(KeptCall { range, function, call: position })
        }));
    });
    if rows.lines.is_empty() {
        let mut lines = Vec::new();
        debug_lines(data, index, code, &mut lines);
        let columns = index.producer.writes_columns();
        rows.lines.reserve_exact(lines.len());
        for line in &lines {
            if last.0 != line.name {
                last = (line.name, path_of(line.name));
            }
            rows.lines.push(KeptLine {
                code_offset: line.code_offset,
                path: last.1.clone(),
                line: line.line,
                column: if columns { line.discrim } else { 0 },
            });
        }
    }
    rows
}
