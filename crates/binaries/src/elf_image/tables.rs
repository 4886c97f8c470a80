//! Images from the common tables: one for each process.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{Seek, Write};
use std::ops::Range;
use std::rc::Rc;

use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, BinaryArray, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::access::{ColumnError, Text, bytes, nullable, numbers, text};
use rustc_hash::FxHashMap;

use super::image::{CodeObject, Error, ImageSpec, ImageSummary, InlinedRange, LineRow};
use super::writer::Writer;

/// The tables that images are made of. All but `functions` are read batch by batch and must ascend by
/// `code_object_id`; lines and inlined calls of code objects that are not among `code_objects` are ignored.
#[derive(Debug)]
pub struct ImageTables<C, L, I> {
    /// Table `functions`.
    pub functions: Vec<RecordBatch>,
    /// Table `code_objects`, with the column `code` filled.
    pub code_objects: C,
    /// Table `line_rows`.
    pub line_rows: L,
    /// Table `inline_calls`.
    pub inline_calls: I,
}

/// The images of a profile.
#[derive(Debug)]
pub struct ProcessImages {
    /// Each `process_id` with the summary of its image.
    pub images: Vec<(u32, ImageSummary)>,
    /// The place of each code object, by `code_object_id`.
    pub code: Vec<PlacedCode>,
}

/// The place of a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedCode {
    /// The code object.
    pub code_object_id: u32,
    /// Its process, whose image it is in.
    pub process_id: u32,
    /// Its offset in the image.
    pub file_offset: u64,
    /// Its size there, in bytes.
    pub size: u64,
}

/// Writes an image for each process that has code. `create` is called once for each `process_id` and returns an
/// empty file and the description of the image; code of processes that it returns `None` for is ignored.
///
/// # Errors
/// Those of [`Writer`], those of `create`, [`Error::Column`] where a batch is not of its table, [`Error::Unsorted`],
/// [`Error::UnknownFunction`]. The files are incomplete then.
pub fn write<W, C, L, I>(
    tables: ImageTables<C, L, I>,
    mut create: impl FnMut(u32) -> Result<Option<(W, ImageSpec)>, Error>,
) -> Result<ProcessImages, Error>
where
    W: Write + Seek,
    C: IntoIterator<Item = RecordBatch>,
    L: IntoIterator<Item = RecordBatch>,
    I: IntoIterator<Item = RecordBatch>,
{
    let functions = FunctionsById::new(&tables.functions)?;
    let mut line_rows = RowsByCodeObject::new("line_rows", tables.line_rows.into_iter());
    let mut inline_calls = RowsByCodeObject::new("inline_calls", tables.inline_calls.into_iter());
    let mut writers: BTreeMap<u32, Option<Box<Writer<W>>>> = BTreeMap::new();
    let mut code = Vec::new();
    let mut last = None;
    for batch in tables.code_objects {
        let processes = numbers::<UInt32Type>(&batch, "process_id")?;
        let rows = CodeObjectColumns::new(&batch)?;
        for row in 0..batch.num_rows() {
            let id = rows.ids.value(row);
            if last.replace(id).is_some_and(|last| last >= id) {
                return Err(Error::Unsorted("code_objects"));
            }
            let process_id = processes.value(row);
            let writer = match writers.entry(process_id) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let created = create(process_id)?;
                    let writer = created.map(|(out, spec)| Writer::new(out, spec)).transpose()?;
                    entry.insert(writer.map(Box::new))
                }
            };
            let Some(writer) = writer else { continue };
            let (line_rows, inline_calls) = (line_rows.take(id)?, inline_calls.take(id)?);
            let lines = lines(&line_rows)?;
            let inlines = inlines(&inline_calls, &functions)?;
            let placed = writer.add(&rows.code_object(row, &functions, &lines, &inlines)?)?;
            let (file_offset, size) = (placed.file_offset, placed.size);
            code.push(PlacedCode { code_object_id: id, process_id, file_offset, size });
        }
    }
    let writers = writers.into_iter().filter_map(|(process_id, writer)| Some((process_id, writer?)));
    let finished = writers.map(|(process_id, writer)| Ok((process_id, writer.finish()?)));
    Ok(ProcessImages { images: finished.collect::<Result<_, Error>>()?, code })
}

/// Columns of a batch of `code_objects`.
struct CodeObjectColumns<'a> {
    ids: &'a UInt32Array,
    functions: &'a UInt32Array,
    starts: &'a UInt64Array,
    sizes: &'a UInt64Array,
    codes: &'a BinaryArray,
}

impl<'a> CodeObjectColumns<'a> {
    fn new(batch: &'a RecordBatch) -> Result<Self, ColumnError> {
        Ok(Self {
            ids: numbers::<UInt32Type>(batch, "code_object_id")?,
            functions: numbers::<UInt32Type>(batch, "function_id")?,
            starts: numbers::<UInt64Type>(batch, "start_address")?,
            sizes: numbers::<UInt64Type>(batch, "size_bytes")?,
            codes: bytes(batch, "code")?,
        })
    }

    /// The code object in a row.
    fn code_object(
        &self,
        row: usize,
        functions: &FunctionsById<'a>,
        lines: &'a [LineRow<'a>],
        inlines: &'a [InlinedRange<'a>],
    ) -> Result<CodeObject<'a>, Error> {
        let function = functions.get(self.functions.value(row))?;
        Ok(CodeObject {
            id: self.ids.value(row),
            name: function.name,
            linkage_name: function.linkage_name,
            path: function.path,
            line: function.line,
            column: function.column,
            start_address: self.starts.value(row),
            size: self.sizes.value(row),
            code: self.codes.is_valid(row).then(|| self.codes.value(row)),
            lines,
            inlines,
        })
    }
}

fn lines(batches: &[BatchRows]) -> Result<Vec<LineRow<'_>>, ColumnError> {
    let mut lines = Vec::with_capacity(batches.iter().map(|(_, rows)| rows.len()).sum());
    for (batch, rows) in batches {
        let offsets = numbers::<UInt64Type>(batch, "code_offset")?;
        let paths = text(batch, "path")?;
        let line_numbers = numbers::<UInt32Type>(batch, "line")?;
        let columns = numbers::<UInt32Type>(batch, "column")?;
        lines.extend(rows.clone().map(|row| LineRow {
            offset: offsets.value(row),
            path: paths.get(row).unwrap_or_default(),
            line: line_numbers.value(row),
            column: nullable(columns, row),
        }));
    }
    Ok(lines)
}

fn inlines<'a>(
    batches: &'a [BatchRows],
    functions: &FunctionsById<'a>,
) -> Result<Vec<InlinedRange<'a>>, Error> {
    let mut inlines = Vec::new();
    for (batch, rows) in batches {
        let starts = numbers::<UInt64Type>(batch, "start_offset")?;
        let sizes = numbers::<UInt64Type>(batch, "size_bytes")?;
        let depths = numbers::<UInt32Type>(batch, "depth")?;
        let function_ids = numbers::<UInt32Type>(batch, "function_id")?;
        let paths = text(batch, "call_path")?;
        let lines = numbers::<UInt32Type>(batch, "call_line")?;
        let columns = numbers::<UInt32Type>(batch, "call_column")?;
        for row in rows.clone() {
            let function = functions.get(function_ids.value(row))?;
            inlines.push(InlinedRange {
                start: starts.value(row),
                size: sizes.value(row),
                depth: depths.value(row),
                name: function.name,
                path: function.path,
                line: function.line,
                call_path: paths.get(row),
                call_line: nullable(lines, row),
                call_column: nullable(columns, row),
            });
        }
    }
    Ok(inlines)
}

/// Table `functions`, by key.
pub(super) struct FunctionsById<'a> {
    batches: Vec<FunctionColumns<'a>>,
    /// Index of the batch, and row in it.
    by_id: FxHashMap<u32, (u32, u32)>,
}

struct FunctionColumns<'a> {
    names: Text<'a>,
    linkage_names: Text<'a>,
    paths: Text<'a>,
    lines: &'a UInt32Array,
    columns: &'a UInt32Array,
}

/// Name and declaration of a function.
pub(super) struct Function<'a> {
    pub name: &'a str,
    pub linkage_name: &'a str,
    pub path: Option<&'a str>,
    pub line: Option<u32>,
    pub column: Option<u32>,
}

impl<'a> FunctionsById<'a> {
    pub fn new(batches: &'a [RecordBatch]) -> Result<Self, ColumnError> {
        let mut functions = Self { batches: Vec::new(), by_id: FxHashMap::default() };
        for (number, batch) in (0..).zip(batches) {
            let ids = numbers::<UInt32Type>(batch, "function_id")?;
            functions.by_id.extend((0..).zip(ids.values()).map(|(row, &id)| (id, (number, row))));
            functions.batches.push(FunctionColumns {
                names: text(batch, "name")?,
                linkage_names: text(batch, "linkage_name")?,
                paths: text(batch, "path")?,
                lines: numbers::<UInt32Type>(batch, "line")?,
                columns: numbers::<UInt32Type>(batch, "column")?,
            });
        }
        Ok(functions)
    }

    pub fn get(&self, id: u32) -> Result<Function<'a>, Error> {
        let &(batch, row) = self.by_id.get(&id).ok_or(Error::UnknownFunction(id))?;
        let columns = self.batches.get(batch as usize).ok_or(Error::UnknownFunction(id))?;
        let row = row as usize;
        Ok(Function {
            name: columns.names.get(row).unwrap_or_default(),
            linkage_name: columns.linkage_names.get(row).unwrap_or_default(),
            path: columns.paths.get(row),
            line: nullable(columns.lines, row),
            column: nullable(columns.columns, row),
        })
    }
}

/// Rows of one batch.
pub(super) type BatchRows = (Rc<RecordBatch>, Range<usize>);

/// A table that ascends by `code_object_id`, read one code object after another.
pub(super) struct RowsByCodeObject<I> {
    table: &'static str,
    batches: I,
    /// The batch that contains the next row.
    batch: Option<Rc<RecordBatch>>,
    /// The next row of that batch.
    row: usize,
    last_id: u32,
}

impl<I: Iterator<Item = RecordBatch>> RowsByCodeObject<I> {
    pub fn new(table: &'static str, batches: I) -> Self {
        Self { table, batches, batch: None, row: 0, last_id: 0 }
    }

    /// The rows of a code object; rows of earlier code objects are skipped.
    pub fn take(&mut self, id: u32) -> Result<Vec<BatchRows>, Error> {
        let mut found = Vec::new();
        while let Some(batch) = self.current_batch() {
            let ids = numbers::<UInt32Type>(&batch, "code_object_id")?;
            let start = self.skip_while(ids, |row_id| row_id < id)?;
            let end = self.skip_while(ids, |row_id| row_id == id)?;
            let more = end == ids.len();
            if start < end {
                found.push((batch, start..end));
            }
            if !more {
                break;
            }
        }
        Ok(found)
    }

    /// The batch with the next row; `None` at the end of the table.
    fn current_batch(&mut self) -> Option<Rc<RecordBatch>> {
        while self.batch.as_ref().is_none_or(|batch| self.row == batch.num_rows()) {
            self.batch = Some(Rc::new(self.batches.next()?));
            self.row = 0;
        }
        self.batch.clone()
    }

    /// Skips rows while `is_match` holds for their id; returns the row after them.
    fn skip_while(&mut self, ids: &UInt32Array, is_match: impl Fn(u32) -> bool) -> Result<usize, Error> {
        while let Some(&id) = ids.values().get(self.row) {
            if id < self.last_id {
                return Err(Error::Unsorted(self.table));
            }
            self.last_id = id;
            if !is_match(id) {
                break;
            }
            self.row = self.row.saturating_add(1);
        }
        Ok(self.row)
    }
}
