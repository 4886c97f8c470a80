//! Handles by kind, and by who made them.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::FxHashMap;

use crate::calls::Selection;

/// Handles of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The kind.
    pub name: String,
    /// Made in what is selected.
    pub num_created: u64,
    /// Freed in what is selected.
    pub num_destroyed: u64,
    /// Of those made, the ones never freed.
    pub num_left: u64,
    /// Most at a time.
    pub max_alive: u64,
}

/// Handles of a kind that one stack made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The kind.
    pub kind: String,
    /// The stack; none where none was taken.
    pub stack_id: Option<u32>,
    /// How many were made.
    pub num_created: u64,
    /// Of those, the ones never freed.
    pub num_left: u64,
}

#[derive(Default)]
struct Handles {
    num_created: u64,
    num_left: u64,
    /// When the number of those alive changes, and by how many.
    steps: Vec<(i64, i64)>,
}

/// Rows of `gc_handles` added up: by kind, and by kind and stack, both in the order in which the first ones come.
///
/// # Errors
/// [`ColumnError`]
pub fn handles(
    batches: impl Iterator<Item = RecordBatch>,
    selection: &Selection,
) -> Result<(Vec<Kind>, Vec<Site>), ColumnError> {
    let mut kinds: Vec<(String, Handles)> = Vec::new();
    let mut places: FxHashMap<(usize, Option<u32>), usize> = FxHashMap::default();
    let mut sites: Vec<Site> = Vec::new();
    for batch in batches {
        let words = text(&batch, "kind")?;
        let column = |name| numbers::<Int64Type>(&batch, name);
        let keys = |name| numbers::<UInt32Type>(&batch, name);
        let (created, destroyed) = (column("created_ns")?, column("destroyed_ns")?);
        let (makers, freers) = (keys("created_thread_id")?, keys("destroyed_thread_id")?);
        let stacks = keys("created_stack_id")?;
        for row in 0..batch.num_rows() {
            let selected = |times, threads| {
                Some(nullable(times, row)?).filter(|time| taken(selection, *time, nullable(threads, row)))
            };
            let (made, freed) = (selected(created, makers), selected(destroyed, freers));
            if made.is_none() && freed.is_none() {
                continue;
            }
            let word = words.get(row).unwrap_or_default();
            let place = kinds.iter().position(|(name, _)| name == word).unwrap_or_else(|| {
                kinds.push((word.to_owned(), Handles::default()));
                kinds.len() - 1
            });
            let of = &mut kinds[place].1;
            of.steps.extend(freed.map(|time| (time, -1)));
            if let Some(time) = made {
                of.steps.push((time, 1));
                let is_left = u64::from(destroyed.is_null(row));
                of.num_created += 1;
                of.num_left += is_left;
                let stack_id = nullable(stacks, row);
                let site = *places.entry((place, stack_id)).or_insert_with(|| {
                    sites.push(Site { kind: word.to_owned(), stack_id, num_created: 0, num_left: 0 });
                    sites.len() - 1
                });
                sites[site].num_created += 1;
                sites[site].num_left += is_left;
            }
        }
    }
    Ok((kinds.into_iter().map(|(name, of)| of.told(name)).collect(), sites))
}

fn taken(selection: &Selection, time: i64, thread: Option<u32>) -> bool {
    match thread {
        Some(thread) => selection.takes(thread, time),
        None => selection.threads.is_none() && selection.takes(0, time),
    }
}

impl Handles {
    fn told(mut self, name: String) -> Kind {
        // Of one moment, what is made comes before what is freed.
        self.steps.sort_unstable_by_key(|(time, step)| (*time, -step));
        let alive = self.steps.iter().scan(0i64, |alive, (_, step)| {
            *alive += step;
            Some(*alive)
        });
        let max_alive = alive.max().unwrap_or(0).max(0).unsigned_abs();
        let num_destroyed = self.steps.len() as u64 - self.num_created;
        Kind { name, num_created: self.num_created, num_destroyed, num_left: self.num_left, max_alive }
    }
}

#[cfg(test)]
mod tests {
    use perfuse_tables::gc_handles;

    use super::*;

    #[test]
    fn handles_are_counted_by_when_they_are_made_and_freed() {
        let mut table = gc_handles::Builder::new();
        let mut push = |kind, made: Option<i64>, freed: Option<i64>, stack| {
            let (maker, freer) = (made.map(|_| 1), freed.map(|_| 2));
            table.push(1, kind, None, made, freed, maker, freer, stack, None, 0, 0);
        };
        push("weak", Some(1), Some(5), Some(7));
        push("weak", Some(5), None, Some(7));
        push("pinned", None, Some(3), None);
        push("weak", Some(2), Some(2), None);
        let batch = table.finish();
        let (kinds, sites) = handles([batch.clone()].into_iter(), &Selection::default()).unwrap();
        let told: Vec<_> = kinds
            .iter()
            .map(|it| (&*it.name, it.num_created, it.num_destroyed, it.num_left, it.max_alive))
            .collect();
        assert_eq!(told, [("weak", 3, 2, 1, 2), ("pinned", 0, 1, 0, 0)]);
        let told: Vec<_> = sites.iter().map(|it| (it.stack_id, it.num_created, it.num_left)).collect();
        assert_eq!(told, [(Some(7), 2, 1), (None, 1, 0)]);
        let selection = Selection { threads: Some(vec![2]), time_ns: Some(0..4) };
        let (kinds, sites) = handles([batch].into_iter(), &selection).unwrap();
        let told: Vec<_> = kinds.iter().map(|it| (&*it.name, it.num_created, it.num_destroyed)).collect();
        assert_eq!((told, sites.len()), (vec![("pinned", 0, 1), ("weak", 0, 1)], 0));
    }
}
