//! Batches of table `callchains`, unwound on all processors.

use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, ListArray, PrimitiveArray, RecordBatch, UInt64Array};
use arrow_buffer::OffsetBuffer;
use perfuse_tables::UserStack;
use perfuse_tables::access::{ColumnError, lists, nullable, numbers};
use perfuse_tables::context::{CONTEXT_MAX, CONTEXT_USER, CONTEXT_USER_DEFERRED};
use perfuse_workers::{in_call, install, num_threads};
use rayon::prelude::*;

use super::lookup::{StepLookup, UnwindModules};
use super::memory::StackCopy;
use super::registers::{Machine, Registers};
use super::step::FrameOrigin;
use super::walk::{Stop, UnwoundFrame, caller_in_registers, unwind_stack};

/// A batch of table `callchains` whose user stacks are unwound.
#[derive(Debug)]
pub struct Chains {
    /// Its rows, in their order, with the new chains.
    pub batch: RecordBatch,
    /// For each address how unwinding found it, `None` for recorded ones; empty where all are as recorded.
    pub unwound: Vec<Option<UnwoundAddress>>,
}

/// How unwinding found an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UnwoundAddress {
    /// Source of the information that led to it.
    pub origin: FrameOrigin,
    /// Whether it is a return address.
    pub is_return: bool,
}

impl From<RecordBatch> for Chains {
    fn from(batch: RecordBatch) -> Self {
        Self { batch, unwound: Vec::new() }
    }
}

/// Unwinds batches of table `callchains`.
pub struct Unwinder<'a> {
    /// One per processor, with the chains it made of its rows of the last batch.
    workers: Vec<(StepLookup<'a>, UnwoundChains)>,
    totals: UnwindTotals,
}

impl<'a> Unwinder<'a> {
    /// Unwinds on all processors.
    #[must_use]
    pub fn new(modules: &'a UnwindModules<'a>) -> Self {
        let worker = |_| (StepLookup::new(modules), UnwoundChains::default());
        Self { workers: (0..num_threads()).map(worker).collect(), totals: UnwindTotals::default() }
    }

    /// Counts of frames and stacks unwound so far.
    #[must_use]
    pub fn totals(&self) -> &UnwindTotals {
        &self.totals
    }

    /// Replaces the user part of each row's chain by the frames of its unwound stack; rows without a copy of their stack
    /// stay as recorded.
    ///
    /// # Errors
    /// When the batch is not of table `callchains`.
    pub fn unwind(&mut self, batch: RecordBatch) -> Result<Chains, ColumnError> {
        let rows = ChainColumns::new(&batch)?;
        let num_rows = batch.num_rows();
        let share = num_rows.div_ceil(self.workers.len().max(1)).max(1);
        let unwind_share = |(worker, (lookup, chains)): (usize, &mut (StepLookup<'a>, UnwoundChains))| {
            chains.clear();
            let first = worker.saturating_mul(share).min(num_rows);
            for row in first..first.saturating_add(share).min(num_rows) {
                chains.push(&rows, row, lookup);
            }
        };
        install(|| self.workers.par_iter_mut().enumerate().for_each(in_call(unwind_share)));
        let parts = || self.workers.iter().map(|(_, chains)| chains);
        parts().for_each(|part| self.totals.merge(&part.totals));
        let lens = parts().flat_map(|part| part.lens.iter().copied());
        let offsets = OffsetBuffer::<i32>::from_lengths(lens);
        let num_addresses = parts().map(|part| part.addresses.len()).sum();
        let mut addresses = Vec::with_capacity(num_addresses);
        let mut unwound = Vec::with_capacity(num_addresses);
        for part in parts() {
            addresses.extend_from_slice(&part.addresses);
            unwound.extend_from_slice(&part.unwound);
        }
        let batch = with_addresses(&batch, offsets, addresses)?;
        Ok(Chains { batch, unwound })
    }
}

/// The batch with other values in column `addresses`.
fn with_addresses(
    batch: &RecordBatch,
    offsets: OffsetBuffer<i32>,
    addresses: Vec<u64>,
) -> Result<RecordBatch, ColumnError> {
    const COLUMN: &str = "addresses";
    let refused = |_| ColumnError { column: COLUMN };
    let schema = batch.schema();
    let at = schema.index_of(COLUMN).map_err(refused)?;
    let arrow_schema::DataType::List(field) = schema.field(at).data_type() else {
        return Err(ColumnError { column: COLUMN });
    };
    let values = Arc::new(UInt64Array::from(addresses));
    let list: ArrayRef =
        Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, None).map_err(refused)?);
    let columns = batch.columns().iter().enumerate();
    let columns =
        columns.map(|(column, array)| Arc::clone(if column == at { &list } else { array })).collect();
    RecordBatch::try_new(schema, columns).map_err(refused)
}

/// Columns of a batch that unwinding reads.
struct ChainColumns<'a> {
    processes: &'a [u32],
    times: &'a [i64],
    sources: &'a [u32],
    offsets: &'a [i32],
    addresses: &'a [u64],
    user_stacks: &'a PrimitiveArray<UInt64Type>,
}

impl<'a> ChainColumns<'a> {
    fn new(batch: &'a RecordBatch) -> Result<Self, ColumnError> {
        let column = "addresses";
        let chains = lists(batch, column)?;
        let addresses =
            chains.values().as_any().downcast_ref::<UInt64Array>().ok_or(ColumnError { column })?;
        Ok(Self {
            processes: numbers::<UInt32Type>(batch, "process_id")?.values(),
            times: numbers::<Int64Type>(batch, "ts_ns")?.values(),
            sources: numbers::<UInt32Type>(batch, "source_id")?.values(),
            offsets: chains.value_offsets(),
            addresses: addresses.values(),
            user_stacks: numbers::<UInt64Type>(batch, "user_stack")?,
        })
    }

    /// Recorded addresses of a row.
    fn chain(&self, row: usize) -> &'a [u64] {
        let bounds = self.offsets.get(row..).and_then(|offsets| offsets.first_chunk());
        let range = bounds.map_or(0..0, |&[start, end]: &[i32; 2]| start as usize..end as usize);
        self.addresses.get(range).unwrap_or_default()
    }
}

/// Chains that one worker made of its rows.
#[derive(Default)]
struct UnwoundChains {
    addresses: Vec<u64>,
    lens: Vec<usize>,
    unwound: Vec<Option<UnwoundAddress>>,
    registers: Vec<u64>,
    frames: Vec<UnwoundFrame>,
    totals: UnwindTotals,
}

impl UnwoundChains {
    fn clear(&mut self) {
        self.addresses.clear();
        self.lens.clear();
        self.unwound.clear();
        self.totals = UnwindTotals::default();
    }

    /// Adds the chain of a row, unwound where the row has a copy of its stack.
    fn push(&mut self, rows: &ChainColumns<'_>, row: usize, lookup: &mut StepLookup<'_>) {
        let before = self.addresses.len();
        let recorded = rows.chain(row);
        if self.unwind(rows, row, recorded, lookup).is_none() {
            self.addresses.extend(recorded);
            self.unwound.resize(self.addresses.len(), None);
        }
        self.lens.push(self.addresses.len().saturating_sub(before));
    }

    fn unwind(
        &mut self,
        rows: &ChainColumns<'_>,
        row: usize,
        recorded: &[u64],
        lookup: &mut StepLookup<'_>,
    ) -> Option<()> {
        let number = nullable(rows.user_stacks, row)?;
        let UserStack { bytes, big_endian } =
            lookup.user_stack(*rows.sources.get(row)?, number, &mut self.registers)?;
        if self.registers.is_empty() {
            self.totals.add(&[], Stop::UnsupportedMachine, 0);
            return None;
        }
        let Some(registers) = Registers::from_pairs(&self.registers) else {
            return self.add_caller_of_leaf(rows, row, recorded, lookup);
        };
        let stack = StackCopy { start: registers.sp()?, bytes, big_endian };
        lookup.set_process(*rows.processes.get(row)?, *rows.times.get(row)?, registers.machine());
        self.frames.clear();
        let stop = unwind_stack(&registers, &stack, lookup, &mut self.frames);
        self.totals.add(&self.frames, stop, stack.bytes.len());
        self.addresses.extend(kernel_part(recorded));
        self.addresses.push(CONTEXT_USER);
        self.unwound.resize(self.addresses.len(), None);
        self.addresses.extend(self.frames.iter().map(|frame| frame.pc));
        let found =
            |frame: &UnwoundFrame| Some(UnwoundAddress { origin: frame.origin, is_return: frame.is_return });
        self.unwound.extend(self.frames.iter().map(found));
        Some(())
    }

    /// Adds the recorded chain of a row with the caller of its innermost user function, where that is in the link register: on 64-bit
    /// Arm a function that calls none need not store it, and frame pointers lead to the caller's caller. As perf does.
    fn add_caller_of_leaf(
        &mut self,
        rows: &ChainColumns<'_>,
        row: usize,
        recorded: &[u64],
        lookup: &mut StepLookup<'_>,
    ) -> Option<()> {
        let machine = Machine::Aarch64;
        let &[number, link] = self.registers.first_chunk()?;
        if number != u64::from(machine.ra()) {
            return None;
        }
        let user = recorded.iter().position(|&word| word == CONTEXT_USER)?;
        let (inner, outer) = recorded.split_at_checked(user.checked_add(2)?)?;
        let mut registers = Registers::new(machine, *inner.last()?);
        registers.set(machine.ra(), link);
        registers.set(machine.sp(), 0);
        lookup.set_process(*rows.processes.get(row)?, *rows.times.get(row)?, machine);
        let caller = caller_in_registers(&registers, lookup).filter(|it| Some(&it.pc) != outer.first())?;
        self.addresses.extend(inner);
        self.unwound.resize(self.addresses.len(), None);
        self.addresses.push(caller.pc);
        self.unwound.push(Some(UnwoundAddress { origin: caller.origin, is_return: caller.is_return }));
        self.addresses.extend(outer);
        self.unwound.resize(self.addresses.len(), None);
        Some(())
    }
}

/// The part of a chain that ran in the kernel, markers included.
fn kernel_part(chain: &[u64]) -> &[u64] {
    let is_user = |address: &u64| {
        matches!(*address, CONTEXT_USER | CONTEXT_USER_DEFERRED)
            || (*address < CONTEXT_MAX && address >> 63 == 0)
    };
    chain.iter().position(is_user).and_then(|end| chain.get(..end)).unwrap_or(chain)
}

/// Counts of unwound stacks and frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnwindTotals {
    /// Stacks of which there is a copy.
    pub num_stacks: u64,
    /// Frames, by [`FrameOrigin`].
    pub frames: [u64; FrameOrigin::ALL.len()],
    /// Stacks, by the reason they end: [`Stop`].
    pub stops: [u64; Stop::ALL.len()],
    /// Size of the largest stack copy that was too short for its stack.
    pub cut_bytes: u64,
}

impl UnwindTotals {
    fn add(&mut self, frames: &[UnwoundFrame], stop: Stop, stack_bytes: usize) {
        self.num_stacks = self.num_stacks.wrapping_add(1);
        for frame in frames {
            if let Some(count) = self.frames.get_mut(frame.origin as usize) {
                *count = count.wrapping_add(1);
            }
        }
        if let Some(count) = self.stops.get_mut(stop as usize) {
            *count = count.wrapping_add(1);
        }
        if stop == Stop::Cut {
            self.cut_bytes = self.cut_bytes.max(stack_bytes as u64);
        }
    }

    fn merge(&mut self, other: &Self) {
        let add = |(mine, other): (&mut u64, u64)| *mine = mine.wrapping_add(other);
        self.num_stacks = self.num_stacks.wrapping_add(other.num_stacks);
        self.frames.iter_mut().zip(other.frames).for_each(add);
        self.stops.iter_mut().zip(other.stops).for_each(add);
        self.cut_bytes = self.cut_bytes.max(other.cut_bytes);
    }
}
