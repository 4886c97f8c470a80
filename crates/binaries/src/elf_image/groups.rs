use std::ops::Range;
use std::rc::Rc;

use arrow_array::types::UInt32Type;
use arrow_array::{RecordBatch, UInt32Array};
use perfuse_tables::access::numbers;

use super::Error;

/// Rows of one batch.
pub(super) type Piece = (Rc<RecordBatch>, Range<usize>);

/// A table that ascends by `code_object_id`, handed out one code object after another; holds the batch it stands in.
pub(super) struct Groups<I> {
    table: &'static str,
    batches: I,
    batch: Option<Rc<RecordBatch>>,
    /// The next row of that batch.
    row: usize,
    last: u32,
}

impl<I: Iterator<Item = RecordBatch>> Groups<I> {
    pub fn new(table: &'static str, batches: I) -> Self {
        Self { table, batches, batch: None, row: 0, last: 0 }
    }

    /// The rows of a code object, where they are; those of code objects before it are passed over.
    pub fn take(&mut self, id: u32) -> Result<Vec<Piece>, Error> {
        let mut pieces = Vec::new();
        while let Some(batch) = self.standing_in() {
            let ids = numbers::<UInt32Type>(&batch, "code_object_id")?;
            let start = self.pass(ids, |row_id| row_id < id)?;
            let end = self.pass(ids, |row_id| row_id == id)?;
            let more = end == ids.len();
            if start < end {
                pieces.push((batch, start..end));
            }
            if !more {
                break;
            }
        }
        Ok(pieces)
    }

    /// The batch with the next row; `None` at the end of the table.
    fn standing_in(&mut self) -> Option<Rc<RecordBatch>> {
        while self.batch.as_ref().is_none_or(|batch| self.row == batch.num_rows()) {
            self.batch = Some(Rc::new(self.batches.next()?));
            self.row = 0;
        }
        self.batch.clone()
    }

    /// Goes over the rows that are meant; returns the row behind them.
    fn pass(&mut self, ids: &UInt32Array, meant: impl Fn(u32) -> bool) -> Result<usize, Error> {
        while let Some(&id) = ids.values().get(self.row) {
            if id < self.last {
                return Err(Error::Unsorted(self.table));
            }
            self.last = id;
            if !meant(id) {
                break;
            }
            self.row += 1;
        }
        Ok(self.row)
    }
}
