//! Objects followed over allocations and moves: which one lies at an address, at a time.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_tables::access::{nullable, numbers};
use rayon::prelude::*;

use super::addresses::AddressMap;
use super::{Error, MOST, NONE};

/// An allocation.
#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    /// When.
    pub ts_ns: i64,
    /// Where.
    pub address: u64,
    /// Type; `None` where the file does not tell.
    pub type_id: Option<u32>,
    /// By which thread.
    pub thread_id: u32,
    stack_id: u32,
}

impl Allocation {
    /// By which stack; `None` where none was taken.
    pub fn stack_id(&self) -> Option<u32> {
        Some(self.stack_id).filter(|stack| *stack != NONE)
    }
}

#[derive(Clone, Copy, Debug)]
struct Move {
    ts_ns: i64,
    from: u64,
    to: u64,
}

/// Every allocation and move of a recording, in the order of time.
#[derive(Debug, Default)]
pub struct Lives {
    allocations: Vec<Allocation>,
    moves: Vec<Move>,
}

/// Which object lies at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// An object that was there when the replay began, and where it was then.
    Old { address: u64, num_moves: u32 },
    /// An object allocated since: its allocation.
    New { allocation: u32, num_moves: u32 },
    /// Nothing that is known: what was there has been moved.
    Gone,
}

impl Life {
    /// The same for an object wherever it lies.
    fn key(self) -> Option<(bool, u64)> {
        match self {
            Self::Old { address, .. } => Some((false, address)),
            Self::New { allocation, .. } => Some((true, allocation.into())),
            Self::Gone => None,
        }
    }
}

impl Lives {
    /// Reads rows of `allocations` and `object_moves`.
    pub fn read(
        allocations: impl Iterator<Item = RecordBatch>,
        moves: impl Iterator<Item = RecordBatch>,
    ) -> Result<Self, Error> {
        let mut lives = Self::default();
        for batch in allocations {
            let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
            let addresses = numbers::<UInt64Type>(&batch, "object_address")?.values();
            let types = numbers::<UInt32Type>(&batch, "type_id")?;
            let threads = numbers::<UInt32Type>(&batch, "thread_id")?.values();
            let stacks = numbers::<UInt32Type>(&batch, "stack_id")?;
            if lives.allocations.len() + batch.num_rows() > MOST {
                return Err(Error::TooLarge);
            }
            lives.allocations.extend((0..batch.num_rows()).map(|row| Allocation {
                ts_ns: times[row],
                address: addresses[row],
                type_id: nullable(types, row),
                thread_id: threads[row],
                stack_id: nullable(stacks, row).unwrap_or(NONE),
            }));
        }
        for batch in moves {
            let times = numbers::<Int64Type>(&batch, "ts_ns")?.values();
            let from = numbers::<UInt64Type>(&batch, "old_address")?.values();
            let to = numbers::<UInt64Type>(&batch, "new_address")?.values();
            let rows = times.iter().zip(from).zip(to);
            lives.moves.extend(rows.map(|((&ts_ns, &from), &to)| Move { ts_ns, from, to }));
        }
        if !lives.allocations.is_sorted_by_key(|it| it.ts_ns) {
            lives.allocations.par_sort_by_key(|it| it.ts_ns);
        }
        if !lives.moves.is_sorted_by_key(|it| it.ts_ns) {
            lives.moves.par_sort_by_key(|it| it.ts_ns);
        }
        Ok(lives)
    }

    /// Follows objects from behind a time on; `None` is the beginning.
    pub fn replay(self, after_ns: Option<i64>) -> Replay {
        let is_before = |ts_ns: i64| after_ns.is_some_and(|after| ts_ns <= after);
        let next_allocation = self.allocations.partition_point(|it| is_before(it.ts_ns));
        let next_move = self.moves.partition_point(|it| is_before(it.ts_ns));
        Replay { lives: self, next_allocation, next_move, touched: AddressMap::default() }
    }
}

/// Objects on their way through the recording.
#[derive(Debug)]
pub struct Replay {
    lives: Lives,
    next_allocation: usize,
    next_move: usize,
    touched: AddressMap<Life>,
}

impl Replay {
    /// Goes on to a time, with what happened at it.
    pub fn go_on(&mut self, until_ns: i64) {
        loop {
            let allocation = self.lives.allocations.get(self.next_allocation).map(|it| it.ts_ns);
            let moved = self.lives.moves.get(self.next_move).map(|it| it.ts_ns);
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
        let address = self.lives.allocations[self.next_allocation].address;
        let allocation = self.next_allocation as u32;
        self.touched.insert(address, Life::New { allocation, num_moves: 0 });
        self.next_allocation += 1;
    }

    fn relocate(&mut self) {
        let Move { from, to, .. } = self.lives.moves[self.next_move];
        self.next_move += 1;
        let moved = match self.touched.insert(from, Life::Gone) {
            Some(Life::Old { address, num_moves }) => {
                Life::Old { address, num_moves: num_moves.saturating_add(1) }
            }
            Some(Life::New { allocation, num_moves }) => {
                Life::New { allocation, num_moves: num_moves.saturating_add(1) }
            }
            Some(Life::Gone) => Life::Gone,
            None => Life::Old { address: from, num_moves: 1 },
        };
        self.touched.insert(to, moved);
    }

    /// An allocation by its number.
    pub fn allocation(&self, number: u32) -> &Allocation {
        &self.lives.allocations[number as usize]
    }

    /// Where objects lie now that were told apart before: an address for each of `lives` that is still known.
    pub fn places(&self, lives: &[Life]) -> Vec<Option<u64>> {
        let mut wanted = HashMap::<_, Vec<usize>>::new();
        for (number, key) in lives.iter().enumerate().filter_map(|(number, life)| Some((number, life.key()?)))
        {
            wanted.entry(key).or_default().push(number);
        }
        let mut places = vec![None; lives.len()];
        let untouched = lives.iter().enumerate().filter_map(|(number, life)| match life {
            Life::Old { address, .. } if !self.touched.contains_key(address) => Some((number, *address)),
            _ => None,
        });
        for (number, address) in untouched {
            places[number] = Some(address);
        }
        for (&address, life) in &self.touched {
            for &number in life.key().and_then(|key| wanted.get(&key)).into_iter().flatten() {
                places[number] = Some(address);
            }
        }
        places
    }

    /// What lies at an address now.
    pub fn at(&self, address: u64) -> Life {
        self.touched.get(&address).copied().unwrap_or(Life::Old { address, num_moves: 0 })
    }
}
