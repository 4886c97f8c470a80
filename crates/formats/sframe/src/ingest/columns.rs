//! Columns of `unwind_rows` and `unwind_lookups`, each filled at once, as there are many rows.

use std::sync::Arc;

use arrow_array::builder::{UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::{unwind_lookups, unwind_rows};

use super::plain::Block;
use super::rules::{Rules, Said, Shapes};
use crate::recovery::Recovery;

/// A row of `unwind_rows`.
#[derive(Clone, Copy, Debug)]
pub struct UnwindRow {
    /// Key of its function.
    pub function: u32,
    /// Where it begins to hold.
    pub start: u32,
    /// What it says.
    pub said: Said,
    /// Offset of its record.
    pub place: u64,
}

/// Rows on their way into a batch of `unwind_rows`.
#[derive(Debug)]
pub struct Columns {
    source_id: u32,
    functions: Vec<u32>,
    starts: Vec<u64>,
    rules: Rules,
    places: Vec<u64>,
    /// What rows say.
    pub shapes: Shapes,
}

impl Columns {
    /// Room for so many rows.
    pub fn with_capacity(source_id: u32, rows: usize) -> Self {
        Self {
            source_id,
            functions: Vec::with_capacity(rows),
            starts: Vec::with_capacity(rows),
            rules: Rules::with_capacity(rows),
            places: Vec::with_capacity(rows),
            shapes: Shapes::default(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: UnwindRow) {
        self.functions.push(row.function);
        self.starts.push(row.start.into());
        self.rules.push(row.said);
        self.places.push(row.place);
    }

    /// Adds the rows of a block.
    pub fn extend(&mut self, block: &Block) {
        self.functions.extend_from_slice(block.functions());
        self.starts.extend_from_slice(block.starts());
        self.rules.extend(block.shapes(), block.offsets());
        self.places.extend_from_slice(block.places());
    }

    /// The rows as Arrow.
    pub fn finish(self) -> RecordBatch {
        let Self { source_id, functions, starts, rules, places, shapes } = self;
        let sources = UInt32Array::from(vec![source_id; functions.len()]);
        let mut columns: Vec<ArrayRef> =
            vec![Arc::new(UInt32Array::from(functions)), Arc::new(UInt64Array::from(starts))];
        columns.extend(shapes.columns(rules));
        columns.push(Arc::new(sources));
        columns.push(Arc::new(UInt64Array::from(places)));
        unwind_rows::batch(columns)
    }
}

/// Addresses that were looked up, on their way into a batch of `unwind_lookups`.
#[derive(Debug)]
pub struct Lookups {
    addresses: Vec<u64>,
    ids: UInt32Builder,
    functions: UInt64Builder,
    starts: UInt64Builder,
    rules: Rules,
    shapes: Shapes,
}

impl Lookups {
    /// Room for so many addresses.
    pub fn with_capacity(rows: usize) -> Self {
        Self {
            addresses: Vec::with_capacity(rows),
            ids: UInt32Builder::with_capacity(rows),
            functions: UInt64Builder::with_capacity(rows),
            starts: UInt64Builder::with_capacity(rows),
            rules: Rules::with_capacity(rows),
            shapes: Shapes::default(),
        }
    }

    /// Adds an address: key and first address of its function, start of its row, and what that says.
    pub fn push(&mut self, address: u64, function: Option<(u32, u64)>, row: Option<(u64, Option<Recovery>)>) {
        self.addresses.push(address);
        self.ids.append_option(function.map(|(id, _)| id));
        self.functions.append_option(function.map(|(_, start)| start));
        self.starts.append_option(row.map(|(start, _)| start));
        self.rules.push(self.shapes.said(row.and_then(|(_, recovery)| recovery)));
    }

    /// The rows as Arrow.
    pub fn finish(mut self) -> RecordBatch {
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(self.addresses)),
            Arc::new(self.ids.finish()),
            Arc::new(self.functions.finish()),
            Arc::new(self.starts.finish()),
        ];
        columns.extend(self.shapes.columns(self.rules));
        unwind_lookups::batch(columns)
    }
}
