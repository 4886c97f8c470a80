//! Bytes among the records that are not records, as passes over a file find them.

use std::sync::{Mutex, PoisonError};

use super::record::RecordsEnd;

/// Bytes that are not records.
#[derive(Clone, Copy, Debug)]
pub struct SkippedBytes {
    /// Offset of the first byte.
    pub offset: u64,
    /// Why they are not a record.
    pub reason: RecordsEnd,
    /// Offset of the next record; `None` where no further one is found.
    pub next: Option<u64>,
}

/// The damaged bytes that passes over a file have found.
#[derive(Debug, Default)]
pub struct FoundDamage(Mutex<Vec<SkippedBytes>>);

impl FoundDamage {
    /// All of them, by offset.
    pub fn list(&self) -> Vec<SkippedBytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Those at an offset, which are searched once.
    pub(super) fn at(&self, offset: u64, find: impl FnOnce() -> SkippedBytes) -> SkippedBytes {
        let find_again = |list: &[SkippedBytes]| list.binary_search_by_key(&offset, |damage| damage.offset);
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = {
            let list = lock();
            find_again(&list).ok().and_then(|index| list.get(index).copied())
        };
        if let Some(damage) = known {
            return damage;
        }
        let damage = find();
        let mut list = lock();
        if let Err(index) = find_again(&list) {
            list.insert(index, damage);
        }
        damage
    }
}
