//! Allocation sites of the objects of snapshots.

use std::cmp::Reverse;
use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::access::{nullable, numbers};
use perfuse_tables::heap_sites;
use rustc_hash::FxHashMap;

use super::Error;
use super::lives::{LifetimeReplay, ObjectIdentity, ObjectLifetimes};
use super::objects::HeapObjects;
use crate::NONE;
use crate::batch;

/// The heap snapshots of a recording, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Snapshots(Vec<(u32, i64)>);

impl Snapshots {
    /// Reads rows of `heap_snapshots`.
    pub fn read(batches: impl Iterator<Item = RecordBatch>) -> Result<Self, Error> {
        let mut snapshots = Vec::new();
        for batch in batches {
            let ids = numbers::<UInt32Type>(&batch, "snapshot_id")?.values();
            let begun = numbers::<Int64Type>(&batch, "ts_ns")?.values();
            let done = numbers::<Int64Type>(&batch, "end_ns")?;
            for (row, (&id, &begun)) in ids.iter().zip(begun).enumerate() {
                // The collection that is part of a snapshot may still move objects after its start.
                snapshots.push((id, nullable(done, row).unwrap_or(begun).max(begun)));
            }
        }
        snapshots.sort_by_key(|&(id, done)| (done, id));
        Ok(Self(snapshots))
    }

    /// Keys, in the order of time.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.0.iter().map(|&(id, _)| id)
    }

    /// Only one of them; empty where there is no such snapshot.
    #[must_use]
    pub fn only(self, snapshot: u32) -> Self {
        Self(self.0.into_iter().filter(|(id, _)| *id == snapshot).collect())
    }

    /// End of a snapshot: from then on, its objects have the recorded addresses.
    pub fn done_ns(&self, snapshot: u32) -> Option<i64> {
        self.0.iter().find(|(id, _)| *id == snapshot).map(|(_, done)| *done)
    }
}

/// Rows of `heap_sites`, of one snapshot after the other; `objects` returns the rows of `heap_objects` of one.
pub fn sites<R: Iterator<Item = RecordBatch>>(
    lives: ObjectLifetimes,
    snapshots: Snapshots,
    objects: impl FnMut(u32) -> R,
) -> impl Iterator<Item = Result<RecordBatch, Error>> {
    SiteBatches { replay: lives.replay(None), snapshots: snapshots.0.into_iter(), objects, current: None }
}

struct SiteBatches<F, R> {
    replay: LifetimeReplay,
    snapshots: std::vec::IntoIter<(u32, i64)>,
    objects: F,
    current: Option<(u32, R)>,
}

impl<F: FnMut(u32) -> R, R: Iterator<Item = RecordBatch>> Iterator for SiteBatches<F, R> {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((snapshot, rows)) = &mut self.current
                && let Some(batch) = rows.next()
            {
                return Some(site_rows(&self.replay, *snapshot, &batch));
            }
            let (snapshot, done_ns) = self.snapshots.next()?;
            self.replay.advance(done_ns);
            self.current = Some((snapshot, (self.objects)(snapshot)));
        }
    }
}

/// The allocation sites of a batch of objects.
fn site_rows(replay: &LifetimeReplay, snapshot: u32, objects: &RecordBatch) -> Result<RecordBatch, Error> {
    let addresses = numbers::<UInt64Type>(objects, "object_address")?.values();
    let sizes = numbers::<UInt64Type>(objects, "size_bytes")?.values();
    let types = numbers::<UInt32Type>(objects, "type_id")?;
    let mut table = heap_sites::Builder::new();
    for (row, (&address, &size)) in addresses.iter().zip(sizes).enumerate() {
        let ObjectIdentity::New { allocation, num_moves } = replay.at(address) else { continue };
        let Some(made) = replay.allocation(allocation) else { continue };
        let of = nullable(types, row);
        // Another type: a later object at this address was not recorded.
        if of.is_some() && made.type_id.is_some() && of != made.type_id {
            continue;
        }
        let (thread, stack) = (made.thread_id, made.stack_id());
        table.push(snapshot, address, of, size, made.ts_ns, thread, stack, made.address, num_moves);
    }
    Ok(table.finish())
}

/// Sums of rows of `heap_sites` by type and stack, the largest first.
pub fn site_sums(rows: impl Iterator<Item = Result<RecordBatch, Error>>) -> Result<RecordBatch, Error> {
    let mut sums = FxHashMap::<(Option<u32>, Option<u32>), (u64, u64)>::default();
    for batch in rows {
        let batch = batch?;
        let sizes = numbers::<UInt64Type>(&batch, "size_bytes")?.values();
        let types = numbers::<UInt32Type>(&batch, "type_id")?;
        let stacks = numbers::<UInt32Type>(&batch, "stack_id")?;
        for (row, size) in sizes.iter().enumerate() {
            let (count, bytes) = sums.entry((nullable(types, row), nullable(stacks, row))).or_default();
            *count = count.saturating_add(1);
            *bytes = bytes.saturating_add(*size);
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|&(key, (_, bytes))| (Reverse(bytes), key));
    let types: UInt32Array = sums.iter().map(|((of, _), _)| *of).collect();
    let stacks: UInt32Array = sums.iter().map(|((_, stack), _)| *stack).collect();
    Ok(batch::of(vec![
        ("type_id", Arc::new(types)),
        ("stack_id", Arc::new(stacks)),
        ("num_objects", Arc::new(UInt64Array::from_iter_values(sums.iter().map(|(_, (count, _))| *count)))),
        ("size_bytes", Arc::new(UInt64Array::from_iter_values(sums.iter().map(|(_, (_, bytes))| *bytes)))),
    ]))
}

/// The addresses in a snapshot of objects that were at an address at a time, `(ts_ns, address)`, in the order of time.
pub fn whereabouts(lives: ObjectLifetimes, objects: &[(i64, u64)], done_ns: i64) -> Vec<Option<u64>> {
    let mut replay = lives.replay(None);
    let identities = objects.iter().map(|&(ts_ns, address)| {
        replay.advance(ts_ns);
        replay.at(address)
    });
    let identities: Vec<_> = identities.collect();
    replay.advance(done_ns);
    replay.addresses(&identities)
}

/// The object of an earlier snapshot for each object of a later one; [`NONE`] for new objects.
pub fn find_origins(
    lifetimes: ObjectLifetimes,
    earlier: (&HeapObjects, i64),
    later: (&HeapObjects, i64),
) -> Vec<u32> {
    let mut replay = lifetimes.replay(Some(earlier.1));
    replay.advance(later.1);
    let (earlier, later) = (earlier.0, later.0);
    let origin = |object: u32| {
        let ObjectIdentity::Existing { address, num_moves } = replay.at(later.address(object)) else {
            return None;
        };
        let origin = earlier.find(address)?;
        // Another object came to this address unrecorded. The collector may round up a size when it moves an object.
        let is_same = earlier.type_id(origin) == later.type_id(object)
            && (num_moves > 0 || earlier.size(origin) == later.size(object));
        is_same.then_some(origin)
    };
    (0..later.len() as u32).map(|object| origin(object).unwrap_or(NONE)).collect()
}
