//! Rows of the common tables from a dump.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use rayon::prelude::*;

use perfuse_tables::{Identities, code_moves, code_objects, functions, line_rows, modules, records};

use super::consts::RecordTag;
use super::index::{Code, NONE};
use super::inline::known;
use super::lines::{self, LineRow};
use super::reader::{Reader, Step};
use super::records::Load;
use super::{JitDump, Shared};
use perfuse_recording::{BatchStream, ClockMap, Placement, Recording, Source, TableRequest, one_batch};

/// Rows of a batch.
const BATCH: usize = 1 << 16;

/// One table of a dump, in batches.
pub fn table(
    dump: &JitDump,
    name: &str,
    placement: &Placement,
    request: &TableRequest,
) -> Option<BatchStream> {
    Some(match name {
        "modules" => modules(dump, placement),
        "functions" => functions(dump, placement),
        "code_objects" => code_objects(dump, placement, request),
        "code_moves" => code_moves(dump, placement),
        "line_rows" => line_rows(dump, placement, request),
        "records" => records(dump, placement),
        _ => return super::inline::table(dump, name, placement, request),
    })
}

fn modules(dump: &JitDump, placement: &Placement) -> BatchStream {
    let mut table = modules::Builder::new();
    let name = format!("[jit] {}", dump.index().producer);
    table.push(placement.first.module, &name, "jit", None);
    one_batch(table.finish())
}

fn functions(dump: &JitDump, placement: &Placement) -> BatchStream {
    let functions = &dump.index().functions;
    let mut table = functions::Builder::new();
    for (row, id) in functions.rows().iter().zip(0u32..) {
        table.push(
            placement.first.function.saturating_add(id),
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
    let todo = wanted(dump, placement, request).map(|(id, code)| (id, *code)).collect();
    let (placement, with_bytes) = (placement.clone(), request.with_bytes);
    Box::new(CodeBatches { dump: dump.share(), placement, with_bytes, todo, next: 0 })
}

/// Code objects, made as they are pulled; a batch with machine code ends after so many bytes of it.
struct CodeBatches {
    dump: Arc<Shared>,
    placement: Placement,
    with_bytes: bool,
    todo: Vec<(u32, Code)>,
    next: usize,
}

/// Machine code in a batch.
const BATCH_BYTES: usize = 16 << 20;

impl Iterator for CodeBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.next >= self.todo.len() && self.next > 0 {
            return None;
        }
        let mut table = code_objects::Builder::new();
        let mut num_bytes = 0usize;
        let first = self.todo.get(self.next).map_or(0, |(_, code)| code.offset);
        let identities = Arc::clone(&self.placement.identities);
        let mut identities = identities.lock().ok()?;
        while let Some((id, code)) = self.todo.get(self.next) {
            let machine_code = self.with_bytes.then(|| self.machine_code(code)).flatten();
            num_bytes = num_bytes.saturating_add(machine_code.map_or(0, <[u8]>::len));
            self.push(*id, code, machine_code, &mut identities, &mut table);
            self.next = self.next.saturating_add(1);
            if table.len() >= BATCH || num_bytes >= BATCH_BYTES {
                break;
            }
        }
        if self.with_bytes {
            let end =
                self.todo.get(self.next).map_or(self.dump.source.len(), |(_, code)| code.offset as usize);
            self.dump.source.release(first as usize..end);
        }
        // An empty table still has one batch, so that its schema is seen.
        self.next = self.next.max(1);
        Some(table.finish())
    }
}

impl CodeBatches {
    fn push(
        &self,
        id: u32,
        code: &Code,
        machine_code: Option<&[u8]>,
        identities: &mut Identities,
        table: &mut code_objects::Builder,
    ) {
        let Placement { first, clock, source_id, .. } = self.placement;
        let pid = self.placement.pid.unwrap_or(code.pid as i32);
        // A thread id is only the recorder's where the pid is.
        let own = pid == code.pid as i32 && code.tid != 0;
        table.push(
            id,
            first.function.saturating_add(code.named.function),
            identities.process(pid),
            own.then(|| identities.thread(pid, code.tid as i32)),
            if code.named.stub { "stub" } else { "jit" },
            self.dump.index().functions.tier(code.named.tier),
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

    fn machine_code(&self, code: &Code) -> Option<&[u8]> {
        let record = self.dump.index().record_at(&self.dump.source, code.offset, code.index)?;
        Some(Load::decode(record.cursor()).ok()?.code)
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

/// Codes in file order, with their keys as placed.
pub(super) fn wanted<'a>(
    dump: &'a JitDump,
    placement: &Placement,
    request: &TableRequest,
) -> impl Iterator<Item = (u32, &'a Code)> {
    let first = placement.first.code_object;
    let chosen = request.code_objects.clone();
    let numbered = dump.index().codes.iter().zip(first..).map(|(code, id)| (id, code));
    numbered.filter(move |(id, _)| chosen.as_ref().is_none_or(|chosen| chosen.binary_search(id).is_ok()))
}

fn line_rows(dump: &JitDump, placement: &Placement, request: &TableRequest) -> BatchStream {
    let told = wanted(dump, placement, request).filter(|(_, code)| code.debug != NONE || code.inline != NONE);
    let todo: Vec<(u32, Code)> = told.map(|(id, code)| (id, *code)).collect();
    let dump = dump.share();
    let source_id = placement.source_id;
    Box::new(LineBatches {
        dump,
        source_id,
        todo,
        next: 0,
        done: VecDeque::new(),
        released: 0,
        started: false,
    })
}

/// Line rows, decoded some batches ahead on all processors; pages behind are given back.
struct LineBatches {
    dump: Arc<Shared>,
    source_id: u32,
    todo: Vec<(u32, Code)>,
    next: usize,
    done: VecDeque<RecordBatch>,
    released: usize,
    started: bool,
}

/// Bytes of the file between the first and the last code of a batch of lines.
const BATCH_SPAN: u64 = 4 << 20;

impl Iterator for LineBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.done.is_empty() {
            let groups: Vec<_> = (0..rayon::current_num_threads()).map_while(|_| self.group()).collect();
            let tables = groups.par_iter().map(|group| self.table(self.todo.get(group.clone())?));
            self.done = tables.collect::<Option<_>>()?;
            if !std::mem::replace(&mut self.started, true) && self.done.is_empty() {
                // An empty table still has one batch, so that its schema is seen.
                self.done.push_back(line_rows::Builder::new().finish());
            }
            let end =
                self.todo.get(self.next).map_or(self.dump.source.len(), |(_, code)| code.offset as usize);
            self.dump.source.release(self.released..end);
            self.released = end;
        }
        self.done.pop_front()
    }
}

impl LineBatches {
    /// The next run of code whose records lie close together.
    fn group(&mut self) -> Option<Range<usize>> {
        let start = self.next;
        let (_, first) = self.todo.get(start)?;
        let limit = first.offset.saturating_add(BATCH_SPAN);
        let rest = self.todo.get(start..)?;
        let len = rest.iter().take_while(|(_, code)| code.offset < limit).count().max(1);
        self.next = start.saturating_add(len);
        Some(start..self.next)
    }

    fn table(&self, todo: &[(u32, Code)]) -> Option<RecordBatch> {
        let mut table = line_rows::Builder::new();
        let mut rows = Vec::new();
        let mut path = PathText::default();
        for (id, code) in todo {
            self.push(*id, code, &mut rows, &mut path, &mut table);
        }
        Some(table.finish())
    }

    fn push<'a>(
        &'a self,
        id: u32,
        code: &Code,
        rows: &mut Vec<LineRow<'a>>,
        path: &mut PathText<'a>,
        table: &mut line_rows::Builder,
    ) {
        let dump = &*self.dump;
        let told = super::inline::with_tree(dump, code, |offset, tree| {
            for line in &tree.lines {
                let (path, column) = (String::from_utf8_lossy(line.path), known(line.column));
                table.push(id, line.code_offset, &path, line.line, column, None, self.source_id, offset);
            }
            !tree.lines.is_empty()
        });
        if told == Some(true) {
            return;
        }
        let index = dump.index();
        let Some((about, info)) = index.debug_info(&dump.source, code) else { return };
        lines::decode(&info, &index.target(code), rows);
        let columns = index.producer.writes_columns();
        for row in rows.iter() {
            let said = (row.discrim != 0).then_some(row.discrim);
            let (column, discriminator) = if columns { (said, None) } else { (None, said) };
            let (path, offset) = (path.of(row.name), about.offset);
            table.push(id, row.code_offset, path, row.line, column, discriminator, self.source_id, offset);
        }
    }
}

/// A file name as text; the rows of one file share one slice, which is only looked at once.
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
    let source = Arc::clone(dump.source());
    Box::new(RecordBatches {
        source,
        endian: start.endian,
        offset: start.first_record,
        index: 0,
        last: None,
        source_id: placement.source_id,
        clock: placement.clock,
        done: false,
    })
}

struct RecordBatches {
    source: Arc<Source>,
    endian: perfuse_wire::Endian,
    offset: u64,
    index: u64,
    last: Option<u64>,
    source_id: u32,
    clock: ClockMap,
    done: bool,
}

impl Iterator for RecordBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.done {
            return None;
        }
        let mut table = records::Builder::new();
        let mut name = (RecordTag(u32::MAX), String::new());
        let mut reader = Reader::new(&self.source, self.endian, self.offset, self.index).after(self.last);
        while table.len() < BATCH {
            match reader.next() {
                Some(Step::Record(record)) => {
                    let tag = super::inline::shown_tag(&record);
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
        (self.offset, self.index, self.last) = (reader.offset(), reader.index(), reader.previous());
        Some(table.finish())
    }
}
