//! Bounds of the offset between two clocks: code cannot run before it was made.

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use perfuse_tables::access::{ColumnError, lists, numbers};
use rustc_hash::FxHashMap;

use perfuse_addresses::timed_space::{Interval, TimedSpace};

/// Creation and first sample of a code object, each on the clock of its own recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstUse {
    /// `create_ns`, on the clock of the code's recording.
    pub created: i64,
    /// Time of the first sample in it, on the samples' clock.
    pub sampled: i64,
}

/// First uses of all code whose addresses no other code ever had, so that samples there belong to it.
///
/// # Errors
/// When a batch is not of its table.
pub fn first_uses(
    callchains: impl Iterator<Item = RecordBatch>,
    code_objects: &[RecordBatch],
) -> Result<Vec<FirstUse>, ColumnError> {
    let (spaces, created) = unshared(code_objects)?;
    let mut first: FxHashMap<u32, i64> = FxHashMap::default();
    for batch in callchains {
        let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
        let processes = numbers::<UInt32Type>(&batch, "process_id")?.values();
        let chains = lists(&batch, "addresses")?;
        let values = chains.values().as_any().downcast_ref::<PrimitiveArray<UInt64Type>>();
        let offsets = chains.value_offsets();
        let values = values.ok_or(ColumnError { column: "addresses" })?.values();
        let (starts, ends) = (offsets.iter(), offsets.iter().skip(1));
        for (((&at, process), &start), &end) in times.iter().zip(processes).zip(starts).zip(ends) {
            let Some(space) = spaces.get(process) else { continue };
            for &address in values.get(start as usize..end as usize).unwrap_or_default() {
                if let Some(code) = space.find(address, 0) {
                    first.entry(code.id).and_modify(|first| *first = at.min(*first)).or_insert(at);
                }
            }
        }
    }
    let first_use = |(id, sampled)| Some(FirstUse { created: *created.get(&id)?, sampled });
    let mut uses: Vec<FirstUse> = first.into_iter().filter_map(first_use).collect();
    uses.sort_by_key(|u| (u.created, u.sampled));
    Ok(uses)
}

type Spaces = FxHashMap<u32, TimedSpace>;

/// Code by process without the pieces that overlap another; and the creation time of each.
fn unshared(code_objects: &[RecordBatch]) -> Result<(Spaces, FxHashMap<u32, i64>), ColumnError> {
    let mut all: FxHashMap<u32, Vec<Interval>> = FxHashMap::default();
    let mut created = FxHashMap::default();
    for batch in code_objects {
        let ids = numbers::<UInt32Type>(batch, "code_object_id")?;
        let processes = numbers::<UInt32Type>(batch, "process_id")?;
        let times = numbers::<Int64Type>(batch, "create_ns")?;
        let starts = numbers::<UInt64Type>(batch, "start_address")?;
        let sizes = numbers::<UInt64Type>(batch, "size_bytes")?;
        for row in 0..batch.num_rows() {
            let (id, start) = (ids.value(row), starts.value(row));
            created.insert(id, times.value(row));
            let end = start.saturating_add(sizes.value(row));
            let always = Interval { start, end, from_ns: i64::MIN, until_ns: i64::MAX, id };
            all.entry(processes.value(row)).or_default().push(always);
        }
    }
    for intervals in all.values_mut() {
        intervals.sort_by_key(|i| (i.start, i.end));
        let mut shared = vec![false; intervals.len()];
        // Largest end so far, and the interval that has it.
        let mut reach = (0, usize::MAX);
        for (at, interval) in intervals.iter().enumerate() {
            if interval.start < reach.0 {
                shared.get_mut(at).into_iter().for_each(|shared| *shared = true);
                shared.get_mut(reach.1).into_iter().for_each(|shared| *shared = true);
            }
            if interval.end > reach.0 {
                reach = (interval.end, at);
            }
        }
        let mut shared = shared.into_iter();
        intervals.retain(|_| !shared.next().unwrap_or(false));
    }
    Ok((all.into_iter().map(|(process, intervals)| (process, TimedSpace::new(intervals))).collect(), created))
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfuse_tables::{callchains, code_objects};

    #[test]
    fn code_at_shared_addresses_is_ignored() {
        let mut code = code_objects::Builder::new();
        for (id, start, created) in [(0, 0x1000, 10), (1, 0x2000, 20), (2, 0x2080, 30)] {
            code.push(id, 0, 0, None, "jit", None, created, None, start, 0x100, None, 0, 0, 0);
        }
        let mut chains = callchains::Builder::new();
        for (ts, address) in [(500, 0x1010), (400, 0x10ff), (300, 0x2090)] {
            chains.push(0, ts, 0, 0, None, 1, "e", &[address], None, 0, 0);
        }
        let uses = first_uses([chains.finish()].into_iter(), &[code.finish()]).unwrap();
        assert_eq!(uses, [FirstUse { created: 10, sampled: 400 }]);
    }
}
