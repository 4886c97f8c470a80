//! Which object was at an address at a time: back over the collector's moves, to its allocation.

use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Int64Array, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::access::{ColumnError, nullable, numbers};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::batch;

/// Passes over the moves: an object moves from the nursery to the old generation, and from there when that is compacted.
const MOST_PASSES: usize = 16;

/// Where an object was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its type, where that is known.
    pub type_id: Option<u32>,
    /// When.
    pub ts_ns: i64,
    /// Its first address.
    pub address: u64,
    /// Its size.
    pub size_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
enum Arrival {
    Allocated(Origin),
    MovedFrom(u64),
    /// What was there was moved away.
    Left,
}

/// Where the objects were allocated that were at some addresses at some times; `None` for those whose allocation was not
/// recorded. `moves` and `allocations` are asked for those of some addresses, sorted, and may give others too.
///
/// # Errors
/// [`ColumnError`]
pub fn origins<M, A>(
    asked: &[(u64, i64)],
    moves: impl Fn(&[u64]) -> M,
    allocations: impl FnOnce(&[u64]) -> A,
) -> Result<Vec<Option<Origin>>, ColumnError>
where
    M: Iterator<Item = RecordBatch>,
    A: Iterator<Item = RecordBatch>,
{
    let mut wanted: FxHashSet<u64> = asked.iter().map(|(address, _)| *address).collect();
    let mut arrivals: FxHashMap<u64, Vec<(i64, Arrival)>> = FxHashMap::default();
    let mut new = wanted.clone();
    for _ in 0..MOST_PASSES {
        if new.is_empty() {
            break;
        }
        new = gather_moves(moves(&sorted(&new)), &new, &mut arrivals)?;
        new.retain(|address| wanted.insert(*address));
    }
    gather_allocations(allocations(&sorted(&wanted)), &wanted, &mut arrivals)?;
    for known in arrivals.values_mut() {
        // Of one moment, the order is that of the file: stable.
        known.sort_by_key(|(time, _)| *time);
    }
    Ok(asked.iter().map(|&(address, time)| origin(&arrivals, address, time)).collect())
}

/// A row for each: `type_id, ts_ns, object_address, size_bytes`, null where nothing is known.
#[must_use]
pub fn origin_rows(found: &[Option<Origin>]) -> RecordBatch {
    let all = || found.iter().map(Option::as_ref);
    batch::of(vec![
        ("type_id", Arc::new(all().map(|it| it.and_then(|it| it.type_id)).collect::<UInt32Array>())),
        ("ts_ns", Arc::new(all().map(|it| it.map(|it| it.ts_ns)).collect::<Int64Array>())),
        ("object_address", Arc::new(all().map(|it| it.map(|it| it.address)).collect::<UInt64Array>())),
        ("size_bytes", Arc::new(all().map(|it| it.map(|it| it.size_bytes)).collect::<UInt64Array>())),
    ])
}

fn sorted(addresses: &FxHashSet<u64>) -> Vec<u64> {
    let mut sorted: Vec<_> = addresses.iter().copied().collect();
    sorted.sort_unstable();
    sorted
}

fn origin(arrivals: &FxHashMap<u64, Vec<(i64, Arrival)>>, address: u64, time: i64) -> Option<Origin> {
    let (mut address, mut time) = (address, time);
    let mut inclusive = true;
    for _ in 0..=MOST_PASSES {
        let known = arrivals.get(&address)?;
        let next = known.partition_point(|(at, _)| if inclusive { *at <= time } else { *at < time });
        match known[next.checked_sub(1)?] {
            (_, Arrival::Allocated(origin)) => return Some(origin),
            (at, Arrival::MovedFrom(old)) => (address, time, inclusive) = (old, at, false),
            (_, Arrival::Left) => return None,
        }
    }
    None
}

/// Notes moves to and from `addresses`; tells from where the former came.
fn gather_moves(
    batches: impl Iterator<Item = RecordBatch>,
    addresses: &FxHashSet<u64>,
    arrivals: &mut FxHashMap<u64, Vec<(i64, Arrival)>>,
) -> Result<FxHashSet<u64>, ColumnError> {
    let mut from = FxHashSet::default();
    for batch in batches {
        let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
        let olds = numbers::<UInt64Type>(&batch, "old_address")?.values();
        let news = numbers::<UInt64Type>(&batch, "new_address")?.values();
        for row in 0..batch.num_rows() {
            let (time, old, new) = (times[row], olds[row], news[row]);
            if addresses.contains(&old) {
                arrivals.entry(old).or_default().push((time, Arrival::Left));
            }
            if addresses.contains(&new) {
                arrivals.entry(new).or_default().push((time, Arrival::MovedFrom(old)));
                from.insert(old);
            }
        }
    }
    Ok(from)
}

fn gather_allocations(
    batches: impl Iterator<Item = RecordBatch>,
    addresses: &FxHashSet<u64>,
    arrivals: &mut FxHashMap<u64, Vec<(i64, Arrival)>>,
) -> Result<(), ColumnError> {
    for batch in batches {
        let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
        let types = numbers::<UInt32Type>(&batch, "type_id")?;
        let objects = numbers::<UInt64Type>(&batch, "object_address")?.values();
        let sizes = numbers::<UInt64Type>(&batch, "size_bytes")?.values();
        for (row, &address) in objects.iter().enumerate() {
            if addresses.contains(&address) {
                let origin = Origin {
                    type_id: nullable(types, row),
                    ts_ns: times[row],
                    address,
                    size_bytes: sizes[row],
                };
                arrivals.entry(address).or_default().push((times[row], Arrival::Allocated(origin)));
            }
        }
    }
    Ok(())
}
