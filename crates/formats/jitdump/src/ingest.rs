//! Rows of the common tables: modules, functions, code objects and moves, lines, inlined calls, embedded files and records.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, PoisonError};

use arrow_array::RecordBatch;
use perfuse_workers::{in_call, install, num_threads};
use rayon::prelude::*;

use perfuse_tables::{
    BATCH_ROWS, Identities, Offsets, code_moves, code_objects, embedded_files, functions, inline_calls,
    line_rows, modules, records,
};

use super::code_lines::{debug_lines, with_inline_tree};
use super::consts::RecordTag;
use super::dump::{DumpContents, JitDump};
use super::functions::NO_INDEX;
use super::index::LoadedCode;
use super::inline::{self, Extension, InlineTree, nonzero};
use super::lines::DebugLine;
use super::reader::{Reader, ReaderStep};
use super::records::LoadRecord;
use perfuse_recording::{BatchStream, ClockMap, Placement, Source, TableRequest, one_batch};

/// One table of a dump, in batches; `None` for a table that dumps do not have.
pub fn table(
    dump: &JitDump,
    name: &str,
    placement: &Placement,
    request: &TableRequest,
) -> Option<BatchStream> {
    Some(match name {
        "modules" => modules(dump, placement),
        "functions" => functions(dump, placement, request),
        "code_objects" => code_objects(dump, placement, request),
        "code_moves" => code_moves(dump, placement),
        "line_rows" => line_rows(dump, placement, request),
        "records" => records(dump, placement),
        "inline_calls" => inline_calls(dump, placement, request),
        "embedded_files" => embedded_files(dump, placement),
        _ => return None,
    })
}

fn modules(dump: &JitDump, placement: &Placement) -> BatchStream {
    let mut table = modules::Builder::new();
    let name = format!("[jit] {}", dump.index().producer);
    table.push(placement.first.module, &name, "jit", None);
    one_batch(table.finish())
}

fn functions(dump: &JitDump, placement: &Placement, request: &TableRequest) -> BatchStream {
    let functions = &dump.index().functions;
    let mut table = functions::Builder::new();
    for (row, id) in functions.rows().iter().zip(placement.first.function..) {
        if !is_requested(request.functions.as_deref(), id) {
            continue;
        }
        table.push(
            id,
            None,
            row.name(),
            &row.linkage_name,
            Some(placement.first.module),
            row.path(),
            row.line,
            row.column,
        );
    }
    one_batch(table.finish())
}

fn code_objects(dump: &JitDump, placement: &Placement, request: &TableRequest) -> BatchStream {
    let todo = selected_codes(dump, placement, request, |_| true);
    let (placement, with_bytes) = (placement.clone(), request.with_bytes);
    Box::new(CodeObjectBatches { dump: dump.share(), placement, with_bytes, todo, next: 0 })
}

/// Batches of code objects. A batch with machine code ends after `BATCH_CODE_BYTES` of it.
struct CodeObjectBatches {
    dump: Arc<DumpContents>,
    placement: Placement,
    with_bytes: bool,
    /// Numbers of code in the dump.
    todo: Vec<u32>,
    next: usize,
}

/// Bytes of machine code in a batch.
const BATCH_CODE_BYTES: usize = 16 << 20;

impl Iterator for CodeObjectBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.next >= self.todo.len() && self.next > 0 {
            return None;
        }
        let mut table = code_objects::Builder::new();
        let mut num_bytes = 0usize;
        let first = self.offset_of_next().unwrap_or(0);
        let identities = Arc::clone(&self.placement.identities);
        let mut identities = identities.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((number, code)) = code_of(&self.dump, self.todo.get(self.next)) {
            let machine_code = self.with_bytes.then(|| self.machine_code(code)).flatten();
            num_bytes = num_bytes.saturating_add(machine_code.map_or(0, <[u8]>::len));
            self.push(number, code, machine_code, &mut identities, &mut table);
            self.next = self.next.saturating_add(1);
            if table.len() >= BATCH_ROWS || num_bytes >= BATCH_CODE_BYTES {
                break;
            }
        }
        if self.with_bytes {
            let end = self.offset_of_next().unwrap_or(self.dump.source.len());
            self.dump.source.release(first..end);
        }
        // An empty table has one batch, for its schema.
        self.next = self.next.max(1);
        Some(table.finish())
    }
}

impl CodeObjectBatches {
    fn offset_of_next(&self) -> Option<usize> {
        code_of(&self.dump, self.todo.get(self.next)).map(|(_, code)| code.offset as usize)
    }

    fn push(
        &self,
        number: u32,
        code: &LoadedCode,
        machine_code: Option<&[u8]>,
        identities: &mut Identities,
        table: &mut code_objects::Builder,
    ) {
        let Placement { first, clock, source_id, .. } = self.placement;
        let pid = self.pid_of(code);
        let process = self.placement.process(pid);
        // The thread id belongs to the recorder's pid namespace only if the process id does.
        let is_own_tid = pid == code.pid as i32 && code.tid != 0;
        table.push(
            first.code_object.saturating_add(number),
            first.function.saturating_add(code.name.function),
            identities.process(process),
            is_own_tid.then(|| identities.thread(process, code.tid as i32)),
            if code.name.stub { "stub" } else { "jit" },
            self.dump.index().functions.tier(code.name.tier),
            clock.ns(code.timestamp),
            (code.retired != u64::MAX).then(|| clock.ns(code.retired)),
            code.start,
            code.size,
            machine_code,
            code.code_index,
            source_id,
            code.offset,
        );
    }

    /// Pid of the process that made a piece of code. A forked child may write to the dump of its parent; where that one has another pid
    /// outside of its namespace, so has the child, which is not known.
    fn pid_of(&self, code: &LoadedCode) -> i32 {
        let (own, header) = (code.pid as i32, self.dump.index().header.pid as i32);
        self.placement.pid.filter(|&pid| pid != header || own == 0).unwrap_or(own)
    }

    fn machine_code(&self, code: &LoadedCode) -> Option<&[u8]> {
        let record = self.dump.index().record_at(&self.dump.source, code.offset, code.index)?;
        Some(LoadRecord::decode(record.cursor()).ok()?.code)
    }
}

fn code_moves(dump: &JitDump, placement: &Placement) -> BatchStream {
    let mut table = code_moves::Builder::new();
    for moved in &dump.index().moves {
        table.push(
            placement.first.code_object.saturating_add(moved.code),
            placement.clock.ns(moved.timestamp),
            moved.old,
            moved.new,
            placement.source_id,
            moved.offset,
        );
    }
    one_batch(table.finish())
}

/// Numbers of the requested code for which a condition holds, in file order.
fn selected_codes(
    dump: &JitDump,
    placement: &Placement,
    request: &TableRequest,
    condition: impl Fn(&LoadedCode) -> bool,
) -> Vec<u32> {
    let first = placement.first.code_object;
    let codes = dump.index().codes.iter().zip(0u32..);
    let selected = codes.filter(|(code, number)| {
        is_requested(request.code_objects.as_deref(), first.saturating_add(*number)) && condition(code)
    });
    selected.map(|(_, number)| number).collect()
}

/// Whether a row is requested, by its key; `keys` are sorted.
fn is_requested(keys: Option<&[u32]>, key: u32) -> bool {
    keys.is_none_or(|keys| keys.binary_search(&key).is_ok())
}

/// Code of a dump, with its number.
fn code_of<'a>(dump: &'a DumpContents, number: Option<&u32>) -> Option<(u32, &'a LoadedCode)> {
    let number = *number?;
    Some((number, dump.index().codes.get(number as usize)?))
}

fn line_rows(dump: &JitDump, placement: &Placement, request: &TableRequest) -> BatchStream {
    let todo =
        selected_codes(dump, placement, request, |code| code.debug != NO_INDEX || code.inline != NO_INDEX);
    Box::new(LineRowBatches {
        dump: dump.share(),
        source_id: placement.source_id,
        first_code: placement.first.code_object,
        todo,
        next: 0,
        done: VecDeque::new(),
        released: 0,
        started: false,
    })
}

/// Batches of line rows. One batch for each processor is decoded at a time, and the pages read are released.
struct LineRowBatches {
    dump: Arc<DumpContents>,
    source_id: u32,
    first_code: u32,
    /// Numbers of code in the dump.
    todo: Vec<u32>,
    next: usize,
    done: VecDeque<RecordBatch>,
    released: usize,
    started: bool,
}

/// Largest distance in the file between the first and the last code of a batch of lines, in bytes.
const BATCH_SPAN_BYTES: u64 = 4 << 20;

impl Iterator for LineRowBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.done.is_empty() {
            let groups: Vec<_> = (0..num_threads()).map_while(|_| self.next_group()).collect();
            let table = |group: &Range<usize>| self.table(self.todo.get(group.clone())?);
            self.done = install(|| groups.par_iter().map(in_call(table)).collect::<Option<_>>())?;
            if !std::mem::replace(&mut self.started, true) && self.done.is_empty() {
                // An empty table has one batch, for its schema.
                self.done.push_back(line_rows::Builder::new().finish());
            }
            let next = code_of(&self.dump, self.todo.get(self.next));
            let end = next.map_or(self.dump.source.len(), |(_, code)| code.offset as usize);
            self.dump.source.release(self.released..end);
            self.released = end;
        }
        self.done.pop_front()
    }
}

impl LineRowBatches {
    /// The next range of code whose records are close together.
    fn next_group(&mut self) -> Option<Range<usize>> {
        let start = self.next;
        let (_, first) = code_of(&self.dump, self.todo.get(start))?;
        let limit = first.offset.saturating_add(BATCH_SPAN_BYTES);
        let rest = self.todo.get(start..)?.iter();
        let is_near =
            |number: &&u32| code_of(&self.dump, Some(number)).is_some_and(|(_, code)| code.offset < limit);
        let len = rest.take_while(is_near).count().max(1);
        self.next = start.saturating_add(len);
        Some(start..self.next)
    }

    fn table(&self, todo: &[u32]) -> Option<RecordBatch> {
        let mut table = line_rows::Builder::new();
        let mut rows = Vec::new();
        let mut path = PathText::default();
        for (number, code) in todo.iter().filter_map(|number| code_of(&self.dump, Some(number))) {
            let id = self.first_code.saturating_add(number);
            self.push(id, code, &mut rows, &mut path, &mut table);
        }
        Some(table.finish())
    }

    fn push<'a>(
        &'a self,
        id: u32,
        code: &LoadedCode,
        rows: &mut Vec<DebugLine<'a>>,
        path: &mut PathText<'a>,
        table: &mut line_rows::Builder,
    ) {
        let dump = &*self.dump;
        let index = dump.index();
        let has_inline_lines = with_inline_tree(&dump.source, index, code, |offset, tree| {
            for line in &tree.lines {
                let (path, column) = (String::from_utf8_lossy(line.path), nonzero(line.column));
                table.push(id, line.code_offset, &path, line.line, column, None, self.source_id, offset);
            }
            !tree.lines.is_empty()
        });
        if has_inline_lines == Some(true) {
            return;
        }
        let Some(offset) = debug_lines(&dump.source, index, code, rows) else { return };
        let columns = index.producer.writes_columns();
        for row in rows.iter() {
            let value = nonzero(row.discrim);
            let (column, discriminator) = if columns { (value, None) } else { (None, value) };
            let path = path.of(row.name);
            table.push(id, row.code_offset, path, row.line, column, discriminator, self.source_id, offset);
        }
    }
}

/// A file name as text. The rows of one file share one slice, which is converted once.
#[derive(Default)]
struct PathText<'a> {
    raw: &'a [u8],
    text: Cow<'a, str>,
}

impl<'a> PathText<'a> {
    fn of(&mut self, raw: &'a [u8]) -> &str {
        if !std::ptr::eq(raw, self.raw) {
            self.raw = raw;
            self.text = String::from_utf8_lossy(raw);
        }
        &self.text
    }
}

fn records(dump: &JitDump, placement: &Placement) -> BatchStream {
    let start = dump.start();
    let source = Arc::clone(dump.bytes());
    Box::new(RecordTableBatches {
        source,
        endian: start.endian,
        offset: start.first_record,
        index: 0,
        previous: None,
        source_id: placement.source_id,
        clock: placement.clock,
        done: false,
    })
}

/// Batches of the `records` table.
struct RecordTableBatches {
    source: Arc<Source>,
    endian: perfuse_wire::Endian,
    offset: u64,
    index: u64,
    previous: Option<u64>,
    source_id: u32,
    clock: ClockMap,
    done: bool,
}

impl Iterator for RecordTableBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.done {
            return None;
        }
        let mut table = records::Builder::new();
        let mut name = (RecordTag(u32::MAX), String::new());
        let mut reader =
            Reader::new(&self.source, self.endian, self.offset, self.index).with_previous(self.previous);
        while table.len() < BATCH_ROWS {
            match reader.next() {
                Some(ReaderStep::Record(record)) => {
                    let tag = inline::effective_tag(&record);
                    if tag != name.0 {
                        name = (tag, tag.to_string());
                    }
                    let size = record.prefix.total_size.into();
                    let ts_ns = Some(self.clock.ns(record.prefix.timestamp));
                    table.push(self.source_id, record.index, record.offset, size, &name.1, ts_ns);
                }
                Some(_) => {}
                None => {
                    self.done = true;
                    break;
                }
            }
        }
        self.source.release(self.offset as usize..reader.offset() as usize);
        (self.offset, self.index, self.previous) = (reader.offset(), reader.index(), reader.previous());
        Some(table.finish())
    }
}

fn inline_calls(dump: &JitDump, placement: &Placement, request: &TableRequest) -> BatchStream {
    Box::new(InlineCallBatches {
        dump: dump.share(),
        source_id: placement.source_id,
        first: placement.first,
        todo: selected_codes(dump, placement, request, |code| code.inline != NO_INDEX).into_iter(),
        started: false,
    })
}

/// Batches of inlined calls.
struct InlineCallBatches {
    dump: Arc<DumpContents>,
    source_id: u32,
    first: Offsets,
    /// Numbers of code in the dump.
    todo: std::vec::IntoIter<u32>,
    started: bool,
}

impl Iterator for InlineCallBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let mut table = inline_calls::Builder::new();
        while table.len() < BATCH_ROWS {
            let Some(number) = self.todo.next() else { break };
            let (data, index) = (&self.dump.source, self.dump.index());
            let Some(code) = index.codes.get(number as usize) else { continue };
            let id = self.first.code_object.saturating_add(number);
            with_inline_tree(data, index, code, |offset, tree| self.push(id, offset, tree, &mut table));
        }
        // An empty table has one batch, for its schema.
        let batch = !self.started || !table.is_empty();
        self.started = true;
        batch.then(|| table.finish())
    }
}

impl InlineCallBatches {
    fn push(&self, id: u32, offset: u64, tree: &InlineTree<'_>, table: &mut inline_calls::Builder) {
        let functions = &self.dump.index().functions;
        for call in &tree.calls {
            let Some(function) = functions.find_declared(&call.function) else { continue };
            let path = String::from_utf8_lossy(call.call_path);
            table.push(
                id,
                call.start_offset,
                call.size,
                call.depth,
                self.first.function.saturating_add(function),
                (!path.is_empty()).then_some(&*path),
                nonzero(call.call_line),
                nonzero(call.call_column),
                self.source_id,
                offset,
            );
        }
    }
}

fn embedded_files(dump: &JitDump, placement: &Placement) -> BatchStream {
    let index = dump.index();
    let mut table = embedded_files::Builder::new();
    for &(offset, record_index) in &index.embedded_files {
        if let Some(record) = index.record_at(dump.bytes(), offset, record_index)
            && let Some(Extension::EmbeddedFile(file)) = inline::extension(&record)
        {
            table.push(&String::from_utf8_lossy(file.path), file.text, placement.source_id, offset);
        }
    }
    one_batch(table.finish())
}
