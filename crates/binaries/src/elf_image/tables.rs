//! Images from the common tables: one for each process.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{Seek, Write};

use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, BinaryArray, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::access::{ColumnError, bytes, nullable, numbers, text};

use super::functions::Functions;
use super::groups::{Groups, Piece};
use super::{CodeObject, Error, ImageSpec, Inline, Line, Summary, Writer};

/// The tables that images are made of. All but `functions` are taken batch by batch, as they come, and must ascend by
/// `code_object_id`; lines and inlined calls of code objects that do not come are passed over.
#[derive(Debug)]
pub struct Tables<C, L, I> {
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
pub struct Images {
    /// Each process with what its image holds, by `process_id`.
    pub images: Vec<(u32, Summary)>,
    /// Where each code object is, by `code_object_id`.
    pub code: Vec<PlacedCode>,
}

/// Where a code object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedCode {
    /// The code object.
    pub code_object_id: u32,
    /// Its process, whose image it is in.
    pub process_id: u32,
    /// Its offset in the image.
    pub file_offset: u64,
    /// Bytes it has there.
    pub size: u64,
}

/// Writes an image for each process that has code. `create` is asked once for each `process_id`, for an empty file and for
/// what to say of the process; code of a process it gives `None` for is passed over.
///
/// # Errors
/// Those of [`Writer`], those of `create`, [`Error::Column`] where a batch is not of its table, [`Error::Unsorted`],
/// [`Error::UnknownFunction`]. The files are incomplete then.
pub fn write<W, C, L, I>(
    tables: Tables<C, L, I>,
    mut create: impl FnMut(u32) -> Result<Option<(W, ImageSpec)>, Error>,
) -> Result<Images, Error>
where
    W: Write + Seek,
    C: IntoIterator<Item = RecordBatch>,
    L: IntoIterator<Item = RecordBatch>,
    I: IntoIterator<Item = RecordBatch>,
{
    let functions = Functions::new(&tables.functions)?;
    let mut line_groups = Groups::new("line_rows", tables.line_rows.into_iter());
    let mut inline_groups = Groups::new("inline_calls", tables.inline_calls.into_iter());
    let mut writers: BTreeMap<u32, Option<Box<Writer<W>>>> = BTreeMap::new();
    let mut code = Vec::new();
    let mut last = None;
    for batch in tables.code_objects {
        let processes = numbers::<UInt32Type>(&batch, "process_id")?;
        let rows = CodeObjects::new(&batch)?;
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
            let (line_pieces, inline_pieces) = (line_groups.take(id)?, inline_groups.take(id)?);
            let lines = lines(&line_pieces)?;
            let inlines = inlines(&inline_pieces, &functions)?;
            let placed = writer.add(&rows.get(row, &functions, &lines, &inlines)?)?;
            let (file_offset, size) = (placed.file_offset, placed.size);
            code.push(PlacedCode { code_object_id: id, process_id, file_offset, size });
        }
    }
    let writers = writers.into_iter().filter_map(|(process_id, writer)| Some((process_id, writer?)));
    let finished = writers.map(|(process_id, writer)| Ok((process_id, writer.finish()?)));
    Ok(Images { images: finished.collect::<Result<_, Error>>()?, code })
}

/// Columns of a batch of `code_objects`.
struct CodeObjects<'a> {
    ids: &'a UInt32Array,
    functions: &'a UInt32Array,
    starts: &'a UInt64Array,
    sizes: &'a UInt64Array,
    codes: &'a BinaryArray,
}

impl<'a> CodeObjects<'a> {
    fn new(batch: &'a RecordBatch) -> Result<Self, ColumnError> {
        Ok(Self {
            ids: numbers::<UInt32Type>(batch, "code_object_id")?,
            functions: numbers::<UInt32Type>(batch, "function_id")?,
            starts: numbers::<UInt64Type>(batch, "start_address")?,
            sizes: numbers::<UInt64Type>(batch, "size_bytes")?,
            codes: bytes(batch, "code")?,
        })
    }

    fn get(
        &self,
        row: usize,
        functions: &Functions<'a>,
        lines: &'a [Line<'a>],
        inlines: &'a [Inline<'a>],
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

fn lines(pieces: &[Piece]) -> Result<Vec<Line<'_>>, ColumnError> {
    let mut lines = Vec::with_capacity(pieces.iter().map(|(_, rows)| rows.len()).sum());
    for (batch, rows) in pieces {
        let offsets = numbers::<UInt64Type>(batch, "code_offset")?;
        let paths = text(batch, "path")?;
        let numbers_of_lines = numbers::<UInt32Type>(batch, "line")?;
        let columns = numbers::<UInt32Type>(batch, "column")?;
        lines.extend(rows.clone().map(|row| Line {
            offset: offsets.value(row),
            path: paths.get(row).unwrap_or_default(),
            line: numbers_of_lines.value(row),
            column: nullable(columns, row),
        }));
    }
    Ok(lines)
}

fn inlines<'a>(pieces: &'a [Piece], functions: &Functions<'a>) -> Result<Vec<Inline<'a>>, Error> {
    let mut inlines = Vec::new();
    for (batch, rows) in pieces {
        let starts = numbers::<UInt64Type>(batch, "start_offset")?;
        let sizes = numbers::<UInt64Type>(batch, "size_bytes")?;
        let depths = numbers::<UInt32Type>(batch, "depth")?;
        let function_ids = numbers::<UInt32Type>(batch, "function_id")?;
        let paths = text(batch, "call_path")?;
        let lines = numbers::<UInt32Type>(batch, "call_line")?;
        let columns = numbers::<UInt32Type>(batch, "call_column")?;
        for row in rows.clone() {
            let function = functions.get(function_ids.value(row))?;
            inlines.push(Inline {
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
