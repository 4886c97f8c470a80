//! The allocation of the object that was at an address at a time, found back over the collector's moves.

use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Int64Array, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::access::{ColumnError, nullable, numbers};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::batch;

/// Limit on the passes over the moves: an object moves from the nursery to the old generation, and from there when that is compacted.
const MAX_PASSES: usize = 16;

/// The allocation of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocationOrigin {
    /// Its type; `None` where unknown.
    pub type_id: Option<u32>,
    /// Time of the allocation.
    pub ts_ns: i64,
    /// Its first address.
    pub address: u64,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// An event at an address.
#[derive(Clone, Copy, Debug)]
enum AddressEvent {
    /// An object is allocated there.
    Allocated(AllocationOrigin),
    /// An object is moved there, from another address.
    MovedFrom(u64),
    /// The object is moved away.
    MovedAway,
}

/// Finds the allocations of the objects that were at some addresses at some times; `None` where the allocation was not
/// recorded. `moves` and `allocations` return the rows of some addresses, which are sorted, and may return others too.
///
/// # Errors
/// [`ColumnError`]
pub fn origins<M, A>(
    requested: &[(u64, i64)],
    moves: impl Fn(&[u64]) -> M,
    allocations: impl FnOnce(&[u64]) -> A,
) -> Result<Vec<Option<AllocationOrigin>>, ColumnError>
where
    M: Iterator<Item = RecordBatch>,
    A: Iterator<Item = RecordBatch>,
{
    let mut all_addresses: FxHashSet<u64> = requested.iter().map(|(address, _)| *address).collect();
    let mut events: FxHashMap<u64, Vec<(i64, AddressEvent)>> = FxHashMap::default();
    let mut new = all_addresses.clone();
    for _ in 0..MAX_PASSES {
        if new.is_empty() {
            break;
        }
        new = gather_moves(moves(&sorted(&new)), &new, &mut events)?;
        new.retain(|address| all_addresses.insert(*address));
    }
    gather_allocations(allocations(&sorted(&all_addresses)), &all_addresses, &mut events)?;
    for at_address in events.values_mut() {
        // A stable sort: at one time, the order is that of the file.
        at_address.sort_by_key(|(time, _)| *time);
    }
    Ok(requested.iter().map(|&(address, time)| origin(&events, address, time)).collect())
}

/// One row per origin: `type_id, ts_ns, object_address, size_bytes`, null where unknown.
#[must_use]
pub fn origin_rows(found: &[Option<AllocationOrigin>]) -> RecordBatch {
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

fn origin(
    events: &FxHashMap<u64, Vec<(i64, AddressEvent)>>,
    address: u64,
    time: i64,
) -> Option<AllocationOrigin> {
    let (mut address, mut time) = (address, time);
    let mut inclusive = true;
    // As far as moves were gathered, whichever other objects are requested.
    for _ in 0..MAX_PASSES {
        let at_address = events.get(&address)?;
        let next = at_address.partition_point(|(at, _)| if inclusive { *at <= time } else { *at < time });
        match *at_address.get(next.checked_sub(1)?)? {
            (_, AddressEvent::Allocated(origin)) => return Some(origin),
            (at, AddressEvent::MovedFrom(old)) => (address, time, inclusive) = (old, at, false),
            (_, AddressEvent::MovedAway) => return None,
        }
    }
    None
}

/// Collects moves to and from `addresses`; returns the addresses that the objects moved to them came from.
fn gather_moves(
    batches: impl Iterator<Item = RecordBatch>,
    addresses: &FxHashSet<u64>,
    events: &mut FxHashMap<u64, Vec<(i64, AddressEvent)>>,
) -> Result<FxHashSet<u64>, ColumnError> {
    let mut from = FxHashSet::default();
    for batch in batches {
        let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
        let olds = numbers::<UInt64Type>(&batch, "old_address")?.values();
        let news = numbers::<UInt64Type>(&batch, "new_address")?.values();
        for ((&time, &old), &new) in times.iter().zip(olds).zip(news) {
            if addresses.contains(&old) {
                events.entry(old).or_default().push((time, AddressEvent::MovedAway));
            }
            if addresses.contains(&new) {
                events.entry(new).or_default().push((time, AddressEvent::MovedFrom(old)));
                from.insert(old);
            }
        }
    }
    Ok(from)
}

fn gather_allocations(
    batches: impl Iterator<Item = RecordBatch>,
    addresses: &FxHashSet<u64>,
    events: &mut FxHashMap<u64, Vec<(i64, AddressEvent)>>,
) -> Result<(), ColumnError> {
    for batch in batches {
        let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
        let types = numbers::<UInt32Type>(&batch, "type_id")?;
        let objects = numbers::<UInt64Type>(&batch, "object_address")?.values();
        let sizes = numbers::<UInt64Type>(&batch, "size_bytes")?.values();
        for (row, ((&address, &ts_ns), &size_bytes)) in objects.iter().zip(times).zip(sizes).enumerate() {
            if addresses.contains(&address) {
                let origin = AllocationOrigin { type_id: nullable(types, row), ts_ns, address, size_bytes };
                events.entry(address).or_default().push((ts_ns, AddressEvent::Allocated(origin)));
            }
        }
    }
    Ok(())
}
