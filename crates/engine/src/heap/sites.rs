//! Where the objects of shots were allocated.

use std::cmp::Reverse;
use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::access::{nullable, numbers};
use perfuse_tables::heap_sites;
use rustc_hash::FxHashMap;

use super::lives::{Life, Lives, Replay};
use super::objects::Objects;
use super::{Error, NONE};
use crate::batch;

/// The heap shots of a recording, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Shots(Vec<(u32, i64)>);

impl Shots {
    /// Reads rows of `heap_snapshots`.
    pub fn read(batches: impl Iterator<Item = RecordBatch>) -> Result<Self, Error> {
        let mut shots = Vec::new();
        for batch in batches {
            let ids = numbers::<UInt32Type>(&batch, "snapshot_id")?.values();
            let begun = numbers::<Int64Type>(&batch, "ts_ns")?.values();
            let done = numbers::<Int64Type>(&batch, "end_ns")?;
            for (row, (&id, &begun)) in ids.iter().zip(begun).enumerate() {
                // The collection that is part of a shot may still move objects after it has begun.
                shots.push((id, nullable(done, row).unwrap_or(begun).max(begun)));
            }
        }
        shots.sort_by_key(|&(id, done)| (done, id));
        Ok(Self(shots))
    }

    /// Keys, in the order of time.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.0.iter().map(|&(id, _)| id)
    }

    /// One of them alone; none where there is no such shot.
    #[must_use]
    pub fn only(self, snapshot: u32) -> Self {
        Self(self.0.into_iter().filter(|(id, _)| *id == snapshot).collect())
    }

    /// When one was done: objects lie where it tells from then on.
    pub fn done_ns(&self, snapshot: u32) -> Option<i64> {
        self.0.iter().find(|(id, _)| *id == snapshot).map(|(_, done)| *done)
    }
}

/// Rows of `heap_sites`, of one shot after the other; `objects` gives the rows of `heap_objects` of one.
pub fn sites<R: Iterator<Item = RecordBatch>>(
    lives: Lives,
    shots: Shots,
    objects: impl FnMut(u32) -> R,
) -> impl Iterator<Item = Result<RecordBatch, Error>> {
    Sites { replay: lives.replay(None), shots: shots.0.into_iter(), objects, shot: None }
}

struct Sites<F, R> {
    replay: Replay,
    shots: std::vec::IntoIter<(u32, i64)>,
    objects: F,
    shot: Option<(u32, R)>,
}

impl<F: FnMut(u32) -> R, R: Iterator<Item = RecordBatch>> Iterator for Sites<F, R> {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((snapshot, rows)) = &mut self.shot
                && let Some(batch) = rows.next()
            {
                return Some(found(&self.replay, *snapshot, &batch));
            }
            let (snapshot, done_ns) = self.shots.next()?;
            self.replay.go_on(done_ns);
            self.shot = Some((snapshot, (self.objects)(snapshot)));
        }
    }
}

fn found(replay: &Replay, snapshot: u32, objects: &RecordBatch) -> Result<RecordBatch, Error> {
    let addresses = numbers::<UInt64Type>(objects, "object_address")?.values();
    let sizes = numbers::<UInt64Type>(objects, "size_bytes")?.values();
    let types = numbers::<UInt32Type>(objects, "type_id")?;
    let mut table = heap_sites::Builder::new();
    for (row, (&address, &size)) in addresses.iter().zip(sizes).enumerate() {
        let Life::New { allocation, num_moves } = replay.at(address) else { continue };
        let made = replay.allocation(allocation);
        let of = nullable(types, row);
        // Another type: what came to lie there since was not recorded.
        if of.is_some() && made.type_id.is_some() && of != made.type_id {
            continue;
        }
        let (thread, stack) = (made.thread_id, made.stack_id());
        table.push(snapshot, address, of, size, made.ts_ns, thread, stack, made.address, num_moves);
    }
    Ok(table.finish())
}

/// Sums of rows of `heap_sites` by type and stack: what takes most comes first.
pub fn site_sums(rows: impl Iterator<Item = Result<RecordBatch, Error>>) -> Result<RecordBatch, Error> {
    let mut sums = FxHashMap::<(Option<u32>, Option<u32>), (u64, u64)>::default();
    for batch in rows {
        let batch = batch?;
        let sizes = numbers::<UInt64Type>(&batch, "size_bytes")?.values();
        let types = numbers::<UInt32Type>(&batch, "type_id")?;
        let stacks = numbers::<UInt32Type>(&batch, "stack_id")?;
        for (row, size) in sizes.iter().enumerate() {
            let (count, bytes) = sums.entry((nullable(types, row), nullable(stacks, row))).or_default();
            *count += 1;
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

/// Where objects lie in a shot that were at an address at a time, `(ts_ns, address)`; in the order of time.
pub fn whereabouts(lives: Lives, known: &[(i64, u64)], done_ns: i64) -> Vec<Option<u64>> {
    let mut replay = lives.replay(None);
    let told = known.iter().map(|&(ts_ns, address)| {
        replay.go_on(ts_ns);
        replay.at(address)
    });
    let told: Vec<_> = told.collect();
    replay.go_on(done_ns);
    replay.places(&told)
}

/// Which object of an earlier shot each one of a later shot is; [`NONE`] for those that are new.
pub fn kept(lives: Lives, earlier: (&Objects, i64), later: (&Objects, i64)) -> Vec<u32> {
    let mut replay = lives.replay(Some(earlier.1));
    replay.go_on(later.1);
    let (earlier, later) = (earlier.0, later.0);
    let origin = |object: u32| {
        let Life::Old { address, num_moves } = replay.at(later.address(object)) else { return None };
        let origin = earlier.find(address)?;
        // Anything else at a place came there unrecorded. The collector may round a size up otherwise where it moves an object.
        let is_same = earlier.type_id(origin) == later.type_id(object)
            && (num_moves > 0 || earlier.size(origin) == later.size(object));
        is_same.then_some(origin)
    };
    (0..later.len() as u32).map(|object| origin(object).unwrap_or(NONE)).collect()
}
