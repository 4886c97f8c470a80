//! Allocations added up by thread, type and stack, in one pass over batches.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Int64Array, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::access::{ColumnError, nullable, numbers};
use perfuse_tables::{AllocationGroup, AllocationSum};
use rustc_hash::FxHashMap;

use crate::batch;
use crate::calls::Selection;

/// Sums over rows of table `allocations`, in the order of the first allocation.
#[derive(Clone, Debug, Default)]
pub struct AllocationSums(Vec<AllocationSum>);

impl AllocationSums {
    /// Adds up the selected allocations.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn of(
        batches: impl Iterator<Item = RecordBatch>,
        selection: &Selection,
    ) -> Result<Self, ColumnError> {
        let mut sums = Vec::new();
        let mut index_of: FxHashMap<AllocationGroup, usize> = FxHashMap::default();
        for batch in batches {
            add(&batch, selection, &mut sums, &mut index_of)?;
        }
        Ok(Self(sums))
    }

    /// These sums with more sums after them.
    #[must_use]
    pub fn with(self, more: impl IntoIterator<Item = AllocationSum>) -> Self {
        Self(merged(self.0.into_iter().chain(more)))
    }

    /// The sums.
    #[must_use]
    pub fn all(&self) -> &[AllocationSum] {
        &self.0
    }

    /// One row per group: `thread_id, type_id, stack_id, num_types, num_objects, size_bytes, largest_bytes, first_ns`. Columns
    /// that are not grouped by are null; for stacks and threads, `type_id` is the type with the most bytes.
    #[must_use]
    pub fn batch(&self, by: Option<AllocationGrouping>) -> RecordBatch {
        let rows = match by {
            Some(by) => grouped(&self.0, by),
            None => self
                .0
                .iter()
                .map(|sum| GroupedRow { thread: Some(sum.group.thread_id), num_types: 1, sum: *sum })
                .collect(),
        };
        let numbers = |pick: fn(&GroupedRow) -> u64| Arc::new(rows.iter().map(pick).collect::<UInt64Array>());
        let keys =
            |pick: fn(&GroupedRow) -> Option<u32>| Arc::new(rows.iter().map(pick).collect::<UInt32Array>());
        batch::of(vec![
            ("thread_id", keys(|row| row.thread)),
            ("type_id", keys(|row| row.sum.group.type_id)),
            ("stack_id", keys(|row| row.sum.group.stack_id)),
            ("num_types", numbers(|row| row.num_types)),
            ("num_objects", numbers(|row| row.sum.count)),
            ("size_bytes", numbers(|row| row.sum.bytes)),
            ("largest_bytes", numbers(|row| row.sum.largest)),
            ("first_ns", Arc::new(rows.iter().map(|row| row.sum.first_ns).collect::<Int64Array>())),
        ])
    }
}

/// How allocations are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationGrouping {
    /// Type.
    Type,
    /// Stack.
    Stack,
    /// Thread.
    Thread,
}

impl AllocationGrouping {
    /// All groupings with their names.
    pub const ALL: [(&str, Self); 3] =
        [("type", Self::Type), ("stack", Self::Stack), ("thread", Self::Thread)];
}

/// A row of the result.
struct GroupedRow {
    thread: Option<u32>,
    num_types: u64,
    sum: AllocationSum,
}

/// Sums by `by`, in the order of the first allocation.
fn grouped(sums: &[AllocationSum], by: AllocationGrouping) -> Vec<GroupedRow> {
    let reduced = |group: AllocationGroup| match by {
        AllocationGrouping::Type => AllocationGroup { thread_id: 0, stack_id: None, ..group },
        AllocationGrouping::Stack => AllocationGroup { thread_id: 0, ..group },
        AllocationGrouping::Thread => AllocationGroup { stack_id: None, ..group },
    };
    let with_types = merged(sums.iter().map(|sum| AllocationSum { group: reduced(sum.group), ..*sum }));
    if by == AllocationGrouping::Type {
        return with_types.into_iter().map(|sum| GroupedRow { thread: None, num_types: 1, sum }).collect();
    }
    let mut index_of: FxHashMap<AllocationGroup, usize> = FxHashMap::default();
    // A row, and the bytes of its heaviest type so far.
    let mut rows: Vec<(GroupedRow, u64)> = Vec::new();
    for sum in with_types {
        let index = *index_of.entry(AllocationGroup { type_id: None, ..sum.group }).or_insert(rows.len());
        let Some((row, most)) = rows.get_mut(index) else {
            let thread = (by == AllocationGrouping::Thread).then_some(sum.group.thread_id);
            rows.push((GroupedRow { thread, num_types: 1, sum }, sum.bytes));
            continue;
        };
        row.num_types = row.num_types.saturating_add(1);
        if sum.bytes > *most {
            (*most, row.sum.group.type_id) = (sum.bytes, sum.group.type_id);
        }
        row.sum.add(&sum);
    }
    rows.into_iter().map(|(row, _)| row).collect()
}

fn merged(sums: impl Iterator<Item = AllocationSum>) -> Vec<AllocationSum> {
    let mut index_of: FxHashMap<AllocationGroup, usize> = FxHashMap::default();
    let mut found: Vec<AllocationSum> = Vec::new();
    for sum in sums {
        let index = *index_of.entry(sum.group).or_insert(found.len());
        match found.get_mut(index) {
            Some(earlier) => earlier.add(&sum),
            None => found.push(sum),
        }
    }
    found
}

fn add(
    batch: &RecordBatch,
    selection: &Selection,
    sums: &mut Vec<AllocationSum>,
    index_of: &mut FxHashMap<AllocationGroup, usize>,
) -> Result<(), ColumnError> {
    let times = numbers::<Int64Type>(batch, "ts_ns")?.values();
    let threads = numbers::<UInt32Type>(batch, "thread_id")?.values();
    let types = numbers::<UInt32Type>(batch, "type_id")?;
    let sizes = numbers::<UInt64Type>(batch, "size_bytes")?.values();
    let stacks = numbers::<UInt32Type>(batch, "stack_id")?;
    let sources = numbers::<UInt32Type>(batch, "source_id")?.values();
    let offsets = numbers::<UInt64Type>(batch, "record_offset")?.values();
    // Programs allocate the same objects again and again: most rows have the group of the row before.
    let mut last: Option<(AllocationGroup, usize)> = None;
    let columns = times.iter().zip(threads).zip(sizes).zip(sources.iter().zip(offsets));
    for (row, (((&time, &thread_id), &size), (&source_id, &record_offset))) in columns.enumerate() {
        if !selection.takes(thread_id, time) {
            continue;
        }
        let group =
            AllocationGroup { thread_id, type_id: nullable(types, row), stack_id: nullable(stacks, row) };
        let index = match last {
            Some((of_last, index)) if of_last == group => index,
            _ => match index_of.entry(group) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    let (count, bytes, largest) = (0, 0, 0);
                    let next = sums.len();
                    sums.push(AllocationSum {
                        group,
                        count,
                        bytes,
                        largest,
                        first_ns: time,
                        source_id,
                        record_offset,
                    });
                    *entry.insert(next)
                }
            },
        };
        last = Some((group, index));
        let Some(sum) = sums.get_mut(index) else { continue };
        sum.count = sum.count.saturating_add(1);
        sum.bytes = sum.bytes.saturating_add(size);
        sum.largest = sum.largest.max(size);
        sum.first_ns = sum.first_ns.min(time);
    }
    Ok(())
}
