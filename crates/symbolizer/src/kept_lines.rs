//! Decoded lines and inlined calls, kept for the next look-up in the same code.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use perfuse_addresses::inlined::{CallExtent, calls_at};
use perfuse_jitdump::code_lines::{debug_lines, with_inline_tree};
use perfuse_jitdump::functions::NO_INDEX;
use perfuse_jitdump::index::{DumpIndex, LoadedCode};
use rustc_hash::{FxHashMap, FxHashSet};

/// Largest number of rows that are kept, of all code together: 64 MB.
const MOST_ROWS: usize = 1 << 22;

/// A position in a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinePosition {
    pub path: Option<Arc<str>>,
    pub line: Option<u32>,
    pub column: Option<u32>,
}

/// A row of lines, or the position of a call. Records are smaller than 4 GiB, and with them the code in them.
#[derive(Clone, Copy, Debug)]
struct KeptLine {
    code_offset: u32,
    /// Index of the path, or `NO_INDEX`.
    path: u32,
    line: u32,
    column: u32,
}

#[derive(Clone, Copy, Debug)]
struct KeptCall {
    extent: CallExtent,
    function: u32,
    call: KeptLine,
}

/// Lines and inlined calls of a piece of code.
#[derive(Debug, Default)]
pub struct DecodedLines {
    lines: Box<[KeptLine]>,
    calls: Box<[KeptCall]>,
    paths: Vec<Arc<str>>,
}

impl DecodedLines {
    /// The source position at an offset.
    pub fn position(&self, code_offset: u64) -> LinePosition {
        let after = self.lines.partition_point(|row| u64::from(row.code_offset) <= code_offset);
        let row = after.checked_sub(1).and_then(|at| self.lines.get(at));
        row.filter(|row| row.line != 0).map(|row| self.position_of(row)).unwrap_or_default()
    }

    /// The calls that are inlined at an offset, outermost first: index of the function, and where it is called.
    pub fn calls(&self, code_offset: u64) -> Vec<(u32, LinePosition)> {
        if self.calls.is_empty() {
            return Vec::new();
        }
        let nothing = CallExtent { start: 0, size: 0, depth: 0 };
        let extent = |row: usize| self.calls.get(row).map_or(nothing, |call| call.extent);
        let rows = calls_at(0..self.calls.len(), code_offset, extent).into_iter();
        rows.filter_map(|row| self.calls.get(row))
            .map(|row| (row.function, self.position_of(&row.call)))
            .collect()
    }

    fn position_of(&self, row: &KeptLine) -> LinePosition {
        let nonzero = |value: u32| (value != 0).then_some(value);
        LinePosition {
            path: self.paths.get(row.path as usize).cloned(),
            line: nonzero(row.line),
            column: nonzero(row.column),
        }
    }

    fn num_rows(&self) -> usize {
        self.lines.len().saturating_add(self.calls.len().saturating_mul(3)).saturating_add(4)
    }
}

/// The rows of code that was looked up, up to a limit: then those that were decoded first make room.
#[derive(Debug, Default)]
pub struct KeptLines(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    by_code: FxHashMap<u32, Arc<DecodedLines>>,
    in_order: VecDeque<u32>,
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
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(rows) = lock().by_code.get(&id) {
            return Arc::clone(rows);
        }
        // Decoded without the lock, so that other threads find what is kept.
        let rows = decode(data, index, code);
        lock().keep(id, rows)
    }
}

impl Kept {
    fn keep(&mut self, id: u32, mut rows: DecodedLines) -> Arc<DecodedLines> {
        if let Some(known) = self.by_code.get(&id) {
            return Arc::clone(known);
        }
        for path in &mut rows.paths {
            match self.paths.get(path) {
                Some(known) => *path = Arc::clone(known),
                None => drop(self.paths.insert(Arc::clone(path))),
            }
        }
        let rows = Arc::new(rows);
        self.num_rows = self.num_rows.saturating_add(rows.num_rows());
        while self.num_rows > MOST_ROWS
            && let Some(first) = self.in_order.pop_front()
        {
            let num_rows = self.by_code.remove(&first).map_or(0, |rows| rows.num_rows());
            self.num_rows = self.num_rows.saturating_sub(num_rows);
            if self.in_order.is_empty() {
                self.paths.clear();
            }
        }
        self.by_code.insert(id, Arc::clone(&rows));
        self.in_order.push_back(id);
        rows
    }
}

/// The paths of a piece of code, as they are collected.
#[derive(Default)]
struct CollectedPaths<'a> {
    found: Vec<Arc<str>>,
    by_bytes: FxHashMap<&'a [u8], u32>,
    last: Option<(&'a [u8], u32)>,
}

impl<'a> CollectedPaths<'a> {
    fn index_of(&mut self, raw: &'a [u8]) -> u32 {
        if raw.is_empty() {
            return NO_INDEX;
        }
        // Most lines are of the file of the line before.
        if let Some((_, index)) = self.last.filter(|(last, _)| *last == raw) {
            return index;
        }
        let next = self.found.len() as u32;
        let index = *self.by_bytes.entry(raw).or_insert(next);
        if index == next {
            self.found.push(String::from_utf8_lossy(raw).into());
        }
        self.last = Some((raw, index));
        index
    }
}

fn decode(data: &[u8], index: &DumpIndex, code: &LoadedCode) -> DecodedLines {
    let short = |offset: u64| u32::try_from(offset).unwrap_or(u32::MAX);
    let rows = with_inline_tree(data, index, code, |_, tree| {
        let mut paths = CollectedPaths::default();
        let lines = tree.lines.iter().map(|line| KeptLine {
            code_offset: short(line.code_offset),
            path: paths.index_of(line.path),
            line: line.line,
            column: line.column,
        });
        let lines = lines.collect();
        let calls = tree.calls.iter().filter_map(|call| {
            Some(KeptCall {
                extent: CallExtent { start: call.start_offset, size: call.size, depth: call.depth },
                function: index.functions.find_declared(&call.function)?,
                call: KeptLine {
                    code_offset: short(call.start_offset),
                    path: paths.index_of(call.call_path),
                    line: call.call_line,
                    column: call.call_column,
                },
            })
        });
        DecodedLines { lines, calls: calls.collect(), paths: paths.found }
    });
    let mut rows = rows.unwrap_or_default();
    if rows.lines.is_empty() {
        let mut lines = Vec::new();
        debug_lines(data, index, code, &mut lines);
        let mut paths =
            CollectedPaths { found: std::mem::take(&mut rows.paths), ..CollectedPaths::default() };
        let columns = index.producer.writes_columns();
        rows.lines = lines
            .iter()
            .map(|line| KeptLine {
                code_offset: short(line.code_offset),
                path: paths.index_of(line.name),
                line: line.line,
                column: if columns { line.discrim } else { 0 },
            })
            .collect();
        rows.paths = paths.found;
    }
    rows
}
