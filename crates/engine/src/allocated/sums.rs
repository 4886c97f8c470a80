//! Allocations added up by thread, type and stack, in one pass over batches that are not kept.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Int64Array, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::access::{ColumnError, nullable, numbers};
use rustc_hash::FxHashMap;

use crate::batch;
use crate::calls::Selection;

/// What allocations have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    /// Thread.
    pub thread_id: u32,
    /// Type, where it is known.
    pub type_id: Option<u32>,
    /// Stack, where one was taken.
    pub stack_id: Option<u32>,
}

/// What they add up to.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// What they have in common.
    pub key: Key,
    /// How many.
    pub count: u64,
    /// Their sizes.
    pub bytes: u64,
    /// The largest.
    pub largest: u64,
    /// Time of the first.
    pub first_ns: i64,
    /// File it is from.
    pub source_id: u32,
    /// Offset of its record.
    pub record_offset: u64,
}

/// Sums over rows of table `allocations`, in the order in which their first ones come.
#[derive(Clone, Debug, Default)]
pub struct Sums(Vec<Sum>);

impl Sums {
    /// Adds up what is selected.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn of(
        batches: impl Iterator<Item = RecordBatch>,
        selection: &Selection,
    ) -> Result<Self, ColumnError> {
        let mut sums = Vec::new();
        let mut places: FxHashMap<Key, usize> = FxHashMap::default();
        for batch in batches {
            add(&batch, selection, &mut sums, &mut places)?;
        }
        Ok(Self(sums))
    }

    /// With more sums, behind these.
    #[must_use]
    pub fn with(self, more: impl IntoIterator<Item = Sum>) -> Self {
        Self(merged(self.0.into_iter().chain(more)))
    }

    /// The sums.
    #[must_use]
    pub fn all(&self) -> &[Sum] {
        &self.0
    }

    /// A row for each: `thread_id, type_id, stack_id, num_types, num_objects, size_bytes, largest_bytes, first_ns`. What they are
    /// not told apart by is null; for stacks and threads, `type_id` is the type most bytes are of.
    #[must_use]
    pub fn batch(&self, by: Option<By>) -> RecordBatch {
        let rows = match by {
            Some(by) => grouped(&self.0, by),
            None => self
                .0
                .iter()
                .map(|sum| Row { thread: Some(sum.key.thread_id), num_types: 1, sum: *sum })
                .collect(),
        };
        let numbers = |pick: fn(&Row) -> u64| Arc::new(rows.iter().map(pick).collect::<UInt64Array>());
        let keys = |pick: fn(&Row) -> Option<u32>| Arc::new(rows.iter().map(pick).collect::<UInt32Array>());
        batch::of(vec![
            ("thread_id", keys(|row| row.thread)),
            ("type_id", keys(|row| row.sum.key.type_id)),
            ("stack_id", keys(|row| row.sum.key.stack_id)),
            ("num_types", numbers(|row| row.num_types)),
            ("num_objects", numbers(|row| row.sum.count)),
            ("size_bytes", numbers(|row| row.sum.bytes)),
            ("largest_bytes", numbers(|row| row.sum.largest)),
            ("first_ns", Arc::new(rows.iter().map(|row| row.sum.first_ns).collect::<Int64Array>())),
        ])
    }
}

/// What allocations are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Type.
    Type,
    /// Stack.
    Stack,
    /// Thread.
    Thread,
}

impl By {
    /// Every one, by name.
    pub const ALL: [(&str, Self); 3] =
        [("type", Self::Type), ("stack", Self::Stack), ("thread", Self::Thread)];
}

struct Row {
    thread: Option<u32>,
    num_types: u64,
    sum: Sum,
}

impl Sum {
    fn take(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.largest = self.largest.max(other.largest);
        self.first_ns = self.first_ns.min(other.first_ns);
    }
}

/// Sums of what is the same in `by`, in the order in which their first ones come.
fn grouped(sums: &[Sum], by: By) -> Vec<Row> {
    let own = |key: Key| match by {
        By::Type => Key { thread_id: 0, stack_id: None, ..key },
        By::Stack => Key { thread_id: 0, ..key },
        By::Thread => Key { stack_id: None, ..key },
    };
    let with_types = merged(sums.iter().map(|sum| Sum { key: own(sum.key), ..*sum }));
    if by == By::Type {
        return with_types.into_iter().map(|sum| Row { thread: None, num_types: 1, sum }).collect();
    }
    let mut places: FxHashMap<Key, usize> = FxHashMap::default();
    // A row, and the bytes of its heaviest type so far.
    let mut rows: Vec<(Row, u64)> = Vec::new();
    for sum in with_types {
        let place = *places.entry(Key { type_id: None, ..sum.key }).or_insert(rows.len());
        let Some((row, most)) = rows.get_mut(place) else {
            let thread = (by == By::Thread).then_some(sum.key.thread_id);
            rows.push((Row { thread, num_types: 1, sum }, sum.bytes));
            continue;
        };
        row.num_types += 1;
        if sum.bytes > *most {
            (*most, row.sum.key.type_id) = (sum.bytes, sum.key.type_id);
        }
        row.sum.take(&sum);
    }
    rows.into_iter().map(|(row, _)| row).collect()
}

fn merged(sums: impl Iterator<Item = Sum>) -> Vec<Sum> {
    let mut places: FxHashMap<Key, usize> = FxHashMap::default();
    let mut found: Vec<Sum> = Vec::new();
    for sum in sums {
        let place = *places.entry(sum.key).or_insert(found.len());
        match found.get_mut(place) {
            Some(known) => known.take(&sum),
            None => found.push(sum),
        }
    }
    found
}

fn add(
    batch: &RecordBatch,
    selection: &Selection,
    sums: &mut Vec<Sum>,
    places: &mut FxHashMap<Key, usize>,
) -> Result<(), ColumnError> {
    let times = numbers::<Int64Type>(batch, "ts_ns")?.values();
    let threads = numbers::<UInt32Type>(batch, "thread_id")?.values();
    let types = numbers::<UInt32Type>(batch, "type_id")?;
    let sizes = numbers::<UInt64Type>(batch, "size_bytes")?.values();
    let stacks = numbers::<UInt32Type>(batch, "stack_id")?;
    let sources = numbers::<UInt32Type>(batch, "source_id")?.values();
    let offsets = numbers::<UInt64Type>(batch, "record_offset")?.values();
    // Programs allocate the same thing again and again: most rows are like the one before.
    let mut last: Option<(Key, usize)> = None;
    for row in 0..batch.num_rows() {
        let (time, thread_id, size) = (times[row], threads[row], sizes[row]);
        if !selection.takes(thread_id, time) {
            continue;
        }
        let key = Key { thread_id, type_id: nullable(types, row), stack_id: nullable(stacks, row) };
        let place = match last {
            Some((known, place)) if known == key => place,
            _ => match places.entry(key) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let (source_id, record_offset) = (sources[row], offsets[row]);
                    let (count, bytes, largest) = (0, 0, 0);
                    sums.push(Sum { key, count, bytes, largest, first_ns: time, source_id, record_offset });
                    *new.insert(sums.len() - 1)
                }
            },
        };
        last = Some((key, place));
        let sum = &mut sums[place];
        sum.count += 1;
        sum.bytes = sum.bytes.saturating_add(size);
        sum.largest = sum.largest.max(size);
        sum.first_ns = sum.first_ns.min(time);
    }
    Ok(())
}
