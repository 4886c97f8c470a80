//! Object lifetimes: objects followed over allocations and moves, to find the one at an address at a time.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_tables::access::{nullable, numbers};
use perfuse_workers::install;
use rayon::prelude::*;

use super::addresses::AddressMap;
use super::{Error, MOST};
use crate::NONE;

/// An allocation.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// Time of the allocation.
    pub ts_ns: i64,
    /// Address.
    pub address: u64,
    /// Type; `None` where unknown.
    pub type_id: Option<u32>,
    /// Allocating thread.
    pub thread_id: u32,
    stack_id: u32,
}

impl Allocation {
    /// Allocating stack; `None` where none was recorded.
    pub fn stack_id(&self) -> Option<u32> {
        Some(self.stack_id).filter(|stack| *stack != NONE)
    }
}

#[derive(Clone, Copy, Debug)]
struct ObjectMove {
    ts_ns: i64,
    from: u64,
    to: u64,
}

/// Every allocation and move of a recording, in the order of time.
#[derive(Debug, Default)]
pub struct ObjectLifetimes {
    allocations: Vec<Allocation>,
    moves: Vec<ObjectMove>,
}

/// The object at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectIdentity {
    /// An object that existed when the replay began, by its address then.
    Existing { address: u64, num_moves: u32 },
    /// An object allocated since then, by its allocation.
    New { allocation: u32, num_moves: u32 },
    /// Unknown: the object that was there has been moved.
    Moved,
}

impl ObjectIdentity {
    /// A key that does not change when the object is moved.
    fn key(self) -> Option<(bool, u64)> {
        match self {
            Self::Existing { address, .. } => Some((false, address)),
            Self::New { allocation, .. } => Some((true, allocation.into())),
            Self::Moved => None,
        }
    }
}

impl ObjectLifetimes {
    /// Reads rows of `allocations` and `object_moves`.
    pub fn read(
        allocations: impl Iterator<Item = RecordBatch>,
        moves: impl Iterator<Item = RecordBatch>,
    ) -> Result<Self, Error> {
        let mut lifetimes = Self::default();
        for batch in allocations {
            let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
            let addresses = numbers::<UInt64Type>(&batch, "object_address")?.values();
            let types = numbers::<UInt32Type>(&batch, "type_id")?;
            let threads = numbers::<UInt32Type>(&batch, "thread_id")?.values();
            let stacks = numbers::<UInt32Type>(&batch, "stack_id")?;
            if lifetimes.allocations.len().saturating_add(batch.num_rows()) > MOST {
                return Err(Error::TooLarge);
            }
            let columns = times.iter().zip(addresses).zip(threads).enumerate();
            lifetimes.allocations.extend(columns.map(|(row, ((&ts_ns, &address), &thread_id))| Allocation {
                ts_ns,
                address,
                type_id: nullable(types, row),
                thread_id,
                stack_id: nullable(stacks, row).unwrap_or(NONE),
            }));
        }
        for batch in moves {
            let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
            let from = numbers::<UInt64Type>(&batch, "old_address")?.values();
            let to = numbers::<UInt64Type>(&batch, "new_address")?.values();
            let rows = times.iter().zip(from).zip(to);
            lifetimes.moves.extend(rows.map(|((&ts_ns, &from), &to)| ObjectMove { ts_ns, from, to }));
        }
        if !lifetimes.allocations.is_sorted_by_key(|it| it.ts_ns) {
            install(|| lifetimes.allocations.par_sort_by_key(|it| it.ts_ns));
        }
        if !lifetimes.moves.is_sorted_by_key(|it| it.ts_ns) {
            install(|| lifetimes.moves.par_sort_by_key(|it| it.ts_ns));
        }
        Ok(lifetimes)
    }

    /// Starts a replay after a time; `None` is the beginning.
    pub fn replay(self, after_ns: Option<i64>) -> LifetimeReplay {
        let is_before = |ts_ns: i64| after_ns.is_some_and(|after| ts_ns <= after);
        let next_allocation = self.allocations.partition_point(|it| is_before(it.ts_ns));
        let next_move = self.moves.partition_point(|it| is_before(it.ts_ns));
        LifetimeReplay { lifetimes: self, next_allocation, next_move, touched: AddressMap::default() }
    }
}

/// Follows objects through the recording.
#[derive(Debug)]
pub struct LifetimeReplay {
    lifetimes: ObjectLifetimes,
    next_allocation: usize,
    next_move: usize,
    touched: AddressMap<ObjectIdentity>,
}

impl LifetimeReplay {
    /// Advances to a time, including the events at that time.
    pub fn advance(&mut self, until_ns: i64) {
        loop {
            let allocation = self.lifetimes.allocations.get(self.next_allocation).map(|it| it.ts_ns);
            let moved = self.lifetimes.moves.get(self.next_move).map(|it| it.ts_ns);
            match (allocation, moved) {
                (Some(at), moved) if at <= until_ns && moved.is_none_or(|moved| at <= moved) => {
                    self.allocate()
                }
                (_, Some(at)) if at <= until_ns => self.relocate(),
                _ => break,
            }
        }
    }

    fn allocate(&mut self) {
        let Some(Allocation { address, .. }) = self.lifetimes.allocations.get(self.next_allocation) else {
            return;
        };
        let allocation = self.next_allocation as u32;
        self.touched.insert(*address, ObjectIdentity::New { allocation, num_moves: 0 });
        self.next_allocation = self.next_allocation.saturating_add(1);
    }

    fn relocate(&mut self) {
        let Some(&ObjectMove { from, to, .. }) = self.lifetimes.moves.get(self.next_move) else { return };
        self.next_move = self.next_move.saturating_add(1);
        let moved = match self.touched.insert(from, ObjectIdentity::Moved) {
            Some(ObjectIdentity::Existing { address, num_moves }) => {
                ObjectIdentity::Existing { address, num_moves: num_moves.saturating_add(1) }
            }
            Some(ObjectIdentity::New { allocation, num_moves }) => {
                ObjectIdentity::New { allocation, num_moves: num_moves.saturating_add(1) }
            }
            Some(ObjectIdentity::Moved) => ObjectIdentity::Moved,
            None => ObjectIdentity::Existing { address: from, num_moves: 1 },
        };
        self.touched.insert(to, moved);
    }

    /// An allocation by its number.
    pub fn allocation(&self, number: u32) -> Option<&Allocation> {
        self.lifetimes.allocations.get(number as usize)
    }

    /// The current address of each of `identities`; `None` where unknown.
    pub fn addresses(&self, identities: &[ObjectIdentity]) -> Vec<Option<u64>> {
        let mut by_key = HashMap::<_, Vec<usize>>::new();
        for (number, key) in
            identities.iter().enumerate().filter_map(|(number, life)| Some((number, life.key()?)))
        {
            by_key.entry(key).or_default().push(number);
        }
        let mut addresses = vec![None; identities.len()];
        let untouched = identities.iter().enumerate().filter_map(|(number, life)| match life {
            ObjectIdentity::Existing { address, .. } if !self.touched.contains_key(address) => {
                Some((number, *address))
            }
            _ => None,
        });
        for (number, address) in untouched {
            if let Some(slot) = addresses.get_mut(number) {
                *slot = Some(address);
            }
        }
        for (&address, life) in &self.touched {
            for &number in life.key().and_then(|key| by_key.get(&key)).into_iter().flatten() {
                if let Some(slot) = addresses.get_mut(number) {
                    *slot = Some(address);
                }
            }
        }
        addresses
    }

    /// The object at an address now.
    pub fn at(&self, address: u64) -> ObjectIdentity {
        self.touched.get(&address).copied().unwrap_or(ObjectIdentity::Existing { address, num_moves: 0 })
    }
}
