use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ListArray, PrimitiveArray, RecordBatch, UInt64Array};
use arrow_buffer::OffsetBuffer;
use perfuse_tables::access::{ColumnError, lists, nullable, numbers};
use rayon::prelude::*;

use super::lookup::{Lookup, Modules};
use super::memory::Stack;
use super::module::UserStack;
use super::registers::Registers;
use super::step::Origin;
use super::totals::Totals;
use super::walk::{Frame, walk};

/// What precedes the user's part of a chain.
const CONTEXT_USER: u64 = (-512i64) as u64;
/// Addresses from here on are markers.
const CONTEXT_MAX: u64 = (-4095i64) as u64;

/// A batch of table `callchains`, unwound as far as it could be.
#[derive(Debug)]
pub struct Chains {
    /// The batch.
    pub batch: RecordBatch,
    /// What found each of its addresses; empty where all are as recorded.
    pub marks: Vec<Option<Mark>>,
}

/// An address that unwinding found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    /// What found it.
    pub origin: Origin,
    /// Whether it is a return address.
    pub is_return: bool,
}

impl From<RecordBatch> for Chains {
    fn from(batch: RecordBatch) -> Self {
        Self { batch, marks: Vec::new() }
    }
}

/// Unwinds batches of table `callchains`.
pub struct Unwinder<'a> {
    /// One a processor, with what it made of its rows of the last batch.
    workers: Vec<(Lookup<'a>, Part)>,
    totals: Totals,
}

impl<'a> Unwinder<'a> {
    /// Unwinds on all processors.
    #[must_use]
    pub fn new(modules: &'a Modules<'a>) -> Self {
        let worker = |_| (Lookup::new(modules), Part::default());
        Self { workers: (0..rayon::current_num_threads()).map(worker).collect(), totals: Totals::default() }
    }

    /// How it went so far.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Puts the frames of each row's stack in the place of the user's part of its chain; rows without a stack stay as they
    /// are.
    ///
    /// # Errors
    /// When the batch is not of table `callchains`.
    pub fn unwind(&mut self, batch: RecordBatch) -> Result<Chains, ColumnError> {
        let rows = Rows::new(&batch)?;
        let num = batch.num_rows();
        let share = num.div_ceil(self.workers.len()).max(1);
        self.workers.par_iter_mut().enumerate().for_each(|(at, (lookup, part))| {
            part.clear();
            for row in (at * share).min(num)..((at + 1) * share).min(num) {
                part.push(&rows, row, lookup);
            }
        });
        let parts = || self.workers.iter().map(|(_, part)| part);
        parts().for_each(|part| self.totals.merge(&part.totals));
        let lens = parts().flat_map(|part| part.lens.iter().copied());
        let offsets = OffsetBuffer::<i32>::from_lengths(lens);
        let num_addresses = parts().map(|part| part.addresses.len()).sum();
        let mut addresses = Vec::with_capacity(num_addresses);
        let mut marks = Vec::with_capacity(num_addresses);
        for part in parts() {
            addresses.extend_from_slice(&part.addresses);
            marks.extend_from_slice(&part.marks);
        }
        let batch = with_addresses(&batch, offsets, addresses)?;
        Ok(Chains { batch, marks })
    }
}

fn with_addresses(
    batch: &RecordBatch,
    offsets: OffsetBuffer<i32>,
    addresses: Vec<u64>,
) -> Result<RecordBatch, ColumnError> {
    let refused = |_| ColumnError { column: "addresses" };
    let schema = batch.schema();
    let at = schema.index_of("addresses").map_err(refused)?;
    let arrow_schema::DataType::List(field) = schema.field(at).data_type() else {
        return Err(ColumnError { column: "addresses" });
    };
    let values = Arc::new(UInt64Array::from(addresses));
    let list = ListArray::try_new(Arc::clone(field), offsets, values, None).map_err(refused)?;
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    columns[at] = Arc::new(list);
    RecordBatch::try_new(schema, columns).map_err(refused)
}

/// Columns of a batch.
struct Rows<'a> {
    processes: &'a [u32],
    times: &'a [i64],
    sources: &'a [u32],
    addresses: Lists<'a>,
    stacks: &'a PrimitiveArray<UInt64Type>,
}

struct Lists<'a> {
    offsets: &'a [i32],
    values: &'a [u64],
}

impl<'a> Lists<'a> {
    fn new(batch: &'a RecordBatch, column: &'static str) -> Result<Self, ColumnError> {
        let lists = lists(batch, column)?;
        let values = lists.values().as_any().downcast_ref::<UInt64Array>().ok_or(ColumnError { column })?;
        Ok(Self { offsets: lists.value_offsets(), values: values.values() })
    }

    fn get(&self, row: usize) -> &'a [u64] {
        &self.values[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }
}

impl<'a> Rows<'a> {
    fn new(batch: &'a RecordBatch) -> Result<Self, ColumnError> {
        Ok(Self {
            processes: numbers::<UInt32Type>(batch, "process_id")?.values(),
            times: numbers::<Int64Type>(batch, "ts_ns")?.values(),
            sources: numbers::<UInt32Type>(batch, "source_id")?.values(),
            addresses: Lists::new(batch, "addresses")?,
            stacks: numbers::<UInt64Type>(batch, "user_stack")?,
        })
    }
}

/// What one thread makes of its rows.
#[derive(Default)]
struct Part {
    addresses: Vec<u64>,
    lens: Vec<usize>,
    marks: Vec<Option<Mark>>,
    registers: Vec<u64>,
    frames: Vec<Frame>,
    totals: Totals,
}

impl Part {
    fn clear(&mut self) {
        self.addresses.clear();
        self.lens.clear();
        self.marks.clear();
        self.totals = Totals::default();
    }

    fn push(&mut self, rows: &Rows<'_>, row: usize, lookup: &mut Lookup<'_>) {
        let before = self.addresses.len();
        let recorded = rows.addresses.get(row);
        let copied = nullable(rows.stacks, row)
            .and_then(|number| lookup.user_stack(rows.sources[row], number, &mut self.registers));
        let registers = copied.and_then(|_| Registers::from_pairs(&self.registers));
        let stack = registers.zip(copied).and_then(|(registers, UserStack { bytes, big_endian })| {
            Some(Stack { start: registers.sp()?, bytes, big_endian })
        });
        match (registers, stack) {
            (Some(registers), Some(stack)) => {
                lookup.look_at(rows.processes[row], rows.times[row], registers.machine());
                self.frames.clear();
                let stop = walk(&registers, &stack, lookup, &mut self.frames);
                self.totals.add(&self.frames, stop, stack.bytes.len());
                let kernel = kernel_part(recorded);
                self.addresses.extend(kernel);
                self.addresses.push(CONTEXT_USER);
                self.marks.resize(self.addresses.len(), None);
                self.addresses.extend(self.frames.iter().map(|frame| frame.pc));
                let mark = |frame: &Frame| Some(Mark { origin: frame.origin, is_return: frame.is_return });
                self.marks.extend(self.frames.iter().map(mark));
            }
            _ => {
                self.addresses.extend(recorded);
                self.marks.resize(self.addresses.len(), None);
            }
        }
        self.lens.push(self.addresses.len() - before);
    }
}

/// What of a chain is the kernel's, markers included.
fn kernel_part(chain: &[u64]) -> &[u64] {
    let is_user = |address: &u64| *address == CONTEXT_USER || (*address < CONTEXT_MAX && address >> 63 == 0);
    &chain[..chain.iter().position(is_user).unwrap_or(chain.len())]
}
