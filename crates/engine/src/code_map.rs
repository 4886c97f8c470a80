//! Code objects by address and time, with moves and reuse of addresses.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_tables::access::{ColumnError, nullable, numbers};
use rustc_hash::FxHashMap;

use crate::timed_space::{Interval, TimedSpace};

/// All JIT code of a profile.
#[derive(Clone, Debug, Default)]
pub struct CodeMap {
    by_process: FxHashMap<u32, TimedSpace>,
    /// How much later than code ran its time of creation may be, by process, in nanoseconds.
    late_ns: FxHashMap<u32, i64>,
}

/// The code object at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeHit {
    /// Key of the code object.
    pub code_object_id: u32,
    /// Bytes from its start, independent of its address at the time.
    pub code_offset: u64,
    /// Time since which it is there.
    pub from_ns: i64,
    /// Time until which it is there.
    pub until_ns: i64,
}

impl CodeMap {
    /// From tables `code_objects` and `code_moves`.
    ///
    /// # Errors
    /// When a batch is not of its table.
    pub fn new(code_objects: &[RecordBatch], code_moves: &[RecordBatch]) -> Result<Self, ColumnError> {
        let moves = moves(code_moves)?;
        let mut spaces: HashMap<u32, Vec<Interval>> = HashMap::new();
        for batch in code_objects {
            let ids = numbers::<UInt32Type>(batch, "code_object_id")?;
            let processes = numbers::<UInt32Type>(batch, "process_id")?;
            let created = numbers::<Int64Type>(batch, "create_ns")?;
            let retired = numbers::<Int64Type>(batch, "retire_ns")?;
            let starts = numbers::<UInt64Type>(batch, "start_address")?;
            let sizes = numbers::<UInt64Type>(batch, "size_bytes")?;
            for row in 0..batch.num_rows() {
                let id = ids.value(row);
                let size = sizes.value(row);
                let until = nullable(retired, row).unwrap_or(i64::MAX);
                let space = spaces.entry(processes.value(row)).or_default();
                let mut add = |start: u64, from_ns: i64, until_ns: i64| {
                    space.push(Interval { start, end: start.saturating_add(size), from_ns, until_ns, id });
                };
                let (mut start, mut from) = (starts.value(row), created.value(row));
                for &(at, to) in moves.get(&id).into_iter().flatten() {
                    add(start, from, at.min(until));
                    (start, from) = (to, at);
                }
                add(start, from, until);
            }
        }
        let by_process = spaces.into_iter().map(|(process, all)| (process, TimedSpace::new(all))).collect();
        Ok(Self { by_process, late_ns: FxHashMap::default() })
    }

    /// The same code, with the uncertainty of the times of each recording (`source_id`), in nanoseconds.
    ///
    /// # Errors
    /// When a batch is not of table `code_objects`.
    pub fn with_uncertainty(
        mut self,
        code_objects: &[RecordBatch],
        uncertainty_ns: impl Fn(u32) -> i64,
    ) -> Result<Self, ColumnError> {
        for batch in code_objects {
            let processes = numbers::<UInt32Type>(batch, "process_id")?.values();
            let sources = numbers::<UInt32Type>(batch, "source_id")?.values();
            for (&process, &source) in processes.iter().zip(sources) {
                let late = uncertainty_ns(source);
                if late > 0 {
                    self.late_ns.entry(process).and_modify(|known| *known = late.max(*known)).or_insert(late);
                }
            }
        }
        Ok(self)
    }

    /// The code at an address at a time. Where there is none, code that was created later by no more than the uncertainty of
    /// its times: it cannot have run before.
    #[must_use]
    #[inline]
    pub fn find(&self, process_id: u32, address: u64, at_ns: i64) -> Option<CodeHit> {
        let space = self.by_process.get(&process_id)?;
        if let Some(found) = space.find(address, at_ns) {
            return Some(hit(found, address));
        }
        let late = *self.late_ns.get(&process_id)?;
        let found =
            space.find_next(address, at_ns).filter(|next| next.from_ns.saturating_sub(at_ns) <= late)?;
        Some(CodeHit { from_ns: at_ns, until_ns: found.from_ns, ..hit(found, address) })
    }

    /// Each process that has code, and its code by address.
    pub fn spaces(&self) -> impl Iterator<Item = (u32, &TimedSpace)> {
        self.by_process.iter().map(|(&process_id, space)| (process_id, space))
    }

    /// Whether there is ever code at an address.
    #[must_use]
    pub fn ever_contains(&self, process_id: u32, address: u64) -> bool {
        self.by_process.get(&process_id).is_some_and(|space| space.ever_contains(address))
    }
}

fn hit(interval: &Interval, address: u64) -> CodeHit {
    CodeHit {
        code_object_id: interval.id,
        code_offset: address.wrapping_sub(interval.start),
        from_ns: interval.from_ns,
        until_ns: interval.until_ns,
    }
}

/// Moves by code object, in time order.
fn moves(batches: &[RecordBatch]) -> Result<FxHashMap<u32, Vec<(i64, u64)>>, ColumnError> {
    let mut moves: FxHashMap<u32, Vec<(i64, u64)>> = FxHashMap::default();
    for batch in batches {
        let ids = numbers::<UInt32Type>(batch, "code_object_id")?;
        let times = numbers::<Int64Type>(batch, "ts_ns")?;
        let addresses = numbers::<UInt64Type>(batch, "new_address")?;
        for row in 0..batch.num_rows() {
            moves.entry(ids.value(row)).or_default().push((times.value(row), addresses.value(row)));
        }
    }
    moves.values_mut().for_each(|moves| moves.sort_by_key(|(at, _)| *at));
    Ok(moves)
}

#[cfg(test)]
mod tests {
    use super::*;
    use perfuse_tables::{code_moves, code_objects};

    #[test]
    fn code_moves_and_leaves_its_old_address() {
        let mut code = code_objects::Builder::new();
        code.push(7, 0, 1, None, "jit", None, 100, Some(300), 0x1000, 0x100, None, 0, 0, 0);
        let mut moved = code_moves::Builder::new();
        moved.push(7, 200, 0x1000, 0x8000, 0, 0);
        let map = CodeMap::new(&[code.finish()], &[moved.finish()]).unwrap();
        let offset = |address, at| map.find(1, address, at).map(|hit| hit.code_offset);
        assert_eq!(offset(0x1010, 150), Some(0x10));
        assert_eq!(offset(0x1010, 250), None);
        assert_eq!(offset(0x8010, 250), Some(0x10));
        assert_eq!(offset(0x8010, 300), None);
        assert_eq!(map.find(2, 0x1010, 150), None);
    }

    #[test]
    fn code_may_run_before_its_time_by_the_uncertainty_of_that() {
        let mut code = code_objects::Builder::new();
        code.push(7, 0, 1, None, "jit", None, 100, Some(300), 0x1000, 0x100, None, 0, 5, 0);
        code.push(8, 0, 1, None, "jit", None, 300, None, 0x1000, 0x100, None, 0, 5, 0);
        let code = [code.finish()];
        let map = CodeMap::new(&code, &[]).unwrap();
        assert_eq!(map.find(1, 0x1010, 95), None);
        let map = map.with_uncertainty(&code, |source| i64::from(source == 5) * 10).unwrap();
        let id = |at| map.find(1, 0x1010, at).map(|hit| hit.code_object_id);
        assert_eq!([89, 90, 99, 100, 295, 300].map(id), [None, Some(7), Some(7), Some(7), Some(7), Some(8)]);
    }
}
