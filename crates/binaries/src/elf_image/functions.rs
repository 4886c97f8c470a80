use arrow_array::types::UInt32Type;
use arrow_array::{RecordBatch, UInt32Array};
use perfuse_tables::access::{ColumnError, Text, nullable, numbers, text};
use rustc_hash::FxHashMap;

use super::Error;

/// Table `functions`, by key.
pub(super) struct Functions<'a> {
    batches: Vec<Columns<'a>>,
    /// Batch and row.
    by_id: FxHashMap<u32, (u32, u32)>,
}

struct Columns<'a> {
    names: Text<'a>,
    linkage_names: Text<'a>,
    paths: Text<'a>,
    lines: &'a UInt32Array,
    columns: &'a UInt32Array,
}

/// What an image says of a function.
pub(super) struct Function<'a> {
    pub name: &'a str,
    pub linkage_name: &'a str,
    pub path: Option<&'a str>,
    pub line: Option<u32>,
    pub column: Option<u32>,
}

impl<'a> Functions<'a> {
    pub fn new(batches: &'a [RecordBatch]) -> Result<Self, ColumnError> {
        let mut functions = Self { batches: Vec::new(), by_id: FxHashMap::default() };
        for (number, batch) in (0..).zip(batches) {
            let ids = numbers::<UInt32Type>(batch, "function_id")?;
            functions.by_id.extend((0..).zip(ids.values()).map(|(row, &id)| (id, (number, row))));
            functions.batches.push(Columns {
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
        let (columns, row) = (&self.batches[batch as usize], row as usize);
        Ok(Function {
            name: columns.names.get(row).unwrap_or_default(),
            linkage_name: columns.linkage_names.get(row).unwrap_or_default(),
            path: columns.paths.get(row),
            line: nullable(columns.lines, row),
            column: nullable(columns.columns, row),
        })
    }
}
