//! Where the objects of shots were allocated.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_tables::access::{nullable, numbers};
use perfuse_tables::heap_sites;

use super::lives::{Life, Lives, Replay};
use super::objects::Objects;
use super::{Error, NONE};

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

/// Which object of an earlier shot each one of a later shot is; [`NONE`] for those that are new.
pub fn kept(lives: Lives, earlier: (&Objects, i64), later: (&Objects, i64)) -> Vec<u32> {
    let mut replay = lives.replay(Some(earlier.1));
    replay.go_on(later.1);
    let (earlier, later) = (earlier.0, later.0);
    let origin = |object: u32| {
        let Life::Old { address, .. } = replay.at(later.address(object)) else { return None };
        let origin = earlier.find(address)?;
        // An object stays of its type and size; anything else came to lie there unrecorded.
        let is_same =
            earlier.type_id(origin) == later.type_id(object) && earlier.size(origin) == later.size(object);
        is_same.then_some(origin)
    };
    (0..later.len() as u32).map(|object| origin(object).unwrap_or(NONE)).collect()
}
