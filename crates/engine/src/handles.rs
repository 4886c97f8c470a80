//! Garbage collector handles, counted by kind and by the stack that created them.

use arrow_array::types::{Int64Type, UInt32Type};
use arrow_array::{Array, RecordBatch};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::FxHashMap;

use crate::calls::Selection;

/// The handles of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandleKind {
    /// Its name, as in column `kind`.
    pub name: String,
    /// Number created within the selection.
    pub num_created: u64,
    /// Number freed within the selection.
    pub num_destroyed: u64,
    /// Number of those created that were never freed.
    pub num_left: u64,
    /// Highest number alive at one time of the selection, of those that the selected threads created, at whatever time.
    pub max_alive: u64,
}

/// The handles of a kind that one stack created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandleSite {
    /// Name of the kind.
    pub kind: String,
    /// The stack; `None` where none was recorded.
    pub stack_id: Option<u32>,
    /// Number created.
    pub num_created: u64,
    /// Number of those that were never freed.
    pub num_left: u64,
}

/// Counts of a kind during the pass.
#[derive(Default)]
struct HandleCounts {
    num_created: u64,
    num_destroyed: u64,
    num_left: u64,
    /// Times of the selection at which the number alive changes, with the change.
    steps: Vec<(i64, i64)>,
}

/// Adds up rows of `gc_handles`: by kind, and by kind and stack, both in the order of their first rows.
///
/// # Errors
/// [`ColumnError`]
pub fn handles(
    batches: impl Iterator<Item = RecordBatch>,
    selection: &Selection,
) -> Result<(Vec<HandleKind>, Vec<HandleSite>), ColumnError> {
    let mut kinds: Vec<(String, HandleCounts)> = Vec::new();
    let mut site_of: FxHashMap<(usize, Option<u32>), usize> = FxHashMap::default();
    let mut sites: Vec<HandleSite> = Vec::new();
    for batch in batches {
        let words = text(&batch, "kind")?;
        let column = |name| numbers::<Int64Type>(&batch, name);
        let keys = |name| numbers::<UInt32Type>(&batch, name);
        let (created, destroyed) = (column("created_ns")?, column("destroyed_ns")?);
        let (makers, freers) = (keys("created_thread_id")?, keys("destroyed_thread_id")?);
        let stacks = keys("created_stack_id")?;
        for row in 0..batch.num_rows() {
            let selected = |times, threads| {
                Some(nullable(times, row)?)
                    .filter(|time| is_selected(selection, *time, nullable(threads, row)))
            };
            let (made, freed) = (selected(created, makers), selected(destroyed, freers));
            let lifetime =
                alive(selection, nullable(created, row), nullable(destroyed, row), nullable(makers, row));
            if made.is_none() && freed.is_none() && lifetime.is_none() {
                continue;
            }
            let word = words.get(row).unwrap_or_default();
            let kind = kinds.iter().position(|(name, _)| name == word).unwrap_or(kinds.len());
            if kind == kinds.len() {
                kinds.push((word.to_owned(), HandleCounts::default()));
            }
            let Some((_, of)) = kinds.get_mut(kind) else { continue };
            if let Some((first, last)) = lifetime {
                of.steps.push((first, 1));
                of.steps.extend(last.map(|time| (time, -1)));
            }
            of.num_destroyed = of.num_destroyed.saturating_add(u64::from(freed.is_some()));
            if made.is_some() {
                let is_left = u64::from(destroyed.is_null(row));
                of.num_created = of.num_created.saturating_add(1);
                of.num_left = of.num_left.saturating_add(is_left);
                let stack_id = nullable(stacks, row);
                let next = sites.len();
                let site = *site_of.entry((kind, stack_id)).or_insert(next);
                if site == next {
                    sites.push(HandleSite { kind: word.to_owned(), stack_id, num_created: 0, num_left: 0 });
                }
                if let Some(site) = sites.get_mut(site) {
                    site.num_created = site.num_created.saturating_add(1);
                    site.num_left = site.num_left.saturating_add(is_left);
                }
            }
        }
    }
    kinds.retain(|(_, of)| of.num_created > 0 || of.num_destroyed > 0);
    Ok((kinds.into_iter().map(|(name, of)| of.finish(name)).collect(), sites))
}

/// Whether something at a time is selected; its thread may be unknown.
fn is_selected(selection: &Selection, time: i64, thread: Option<u32>) -> bool {
    match thread {
        Some(thread) => selection.takes(thread, time),
        None => selection.threads.is_none() && selection.takes(0, time),
    }
}

/// The part of the selected time in which a handle is alive that a selected thread created: its start, and when it is freed.
///
/// A handle whose creation was not recorded is alive from the start.
fn alive(
    selection: &Selection,
    created: Option<i64>,
    destroyed: Option<i64>,
    maker: Option<u32>,
) -> Option<(i64, Option<i64>)> {
    if selection.threads.is_some() && !maker.is_some_and(|maker| selection.has(maker)) {
        return None;
    }
    let time = selection.time_ns.clone().unwrap_or(i64::MIN..i64::MAX);
    let first = created.unwrap_or(i64::MIN).max(time.start);
    let is_alive = first < time.end && destroyed.is_none_or(|destroyed| destroyed >= time.start);
    is_alive.then_some((first, destroyed.filter(|destroyed| *destroyed < time.end)))
}

impl HandleCounts {
    fn finish(mut self, name: String) -> HandleKind {
        // At one time, creations come before releases.
        self.steps.sort_unstable_by_key(|(time, step)| (*time, std::cmp::Reverse(*step)));
        let alive = self.steps.iter().scan(0i64, |alive, (_, step)| {
            *alive = alive.saturating_add(*step);
            Some(*alive)
        });
        let max_alive = alive.max().unwrap_or(0).max(0).unsigned_abs();
        let Self { num_created, num_destroyed, num_left, .. } = self;
        HandleKind { name, num_created, num_destroyed, num_left, max_alive }
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
        let rows: Vec<_> = kinds
            .iter()
            .map(|it| (&*it.name, it.num_created, it.num_destroyed, it.num_left, it.max_alive))
            .collect();
        assert_eq!(rows, [("weak", 3, 2, 1, 2), ("pinned", 0, 1, 0, 1)]);
        let rows: Vec<_> = sites.iter().map(|it| (it.stack_id, it.num_created, it.num_left)).collect();
        assert_eq!(rows, [(Some(7), 2, 1), (None, 1, 0)]);
        let selection = Selection { threads: Some(vec![2]), time_ns: Some(0..4) };
        let (kinds, sites) = handles([batch].into_iter(), &selection).unwrap();
        let rows: Vec<_> = kinds.iter().map(|it| (&*it.name, it.num_created, it.num_destroyed)).collect();
        assert_eq!((rows, sites.len()), (vec![("pinned", 0, 1), ("weak", 0, 1)], 0));
    }

    #[test]
    fn handles_that_were_made_before_the_selected_time_are_alive_in_it() {
        let mut table = gc_handles::Builder::new();
        let mut push = |made: i64, freed: Option<i64>, maker| {
            let freer = freed.map(|_| 2);
            table.push(1, "normal", None, Some(made), freed, Some(maker), freer, None, None, 0, 0);
        };
        push(1, None, 1);
        push(2, Some(12), 1);
        push(3, Some(9), 1);
        push(11, Some(13), 2);
        push(20, None, 2);
        let batch = table.finish();
        let max_alive = |threads: Option<Vec<u32>>, time_ns| {
            let selection = Selection { threads, time_ns };
            let (kinds, _) = handles([batch.clone()].into_iter(), &selection).unwrap();
            kinds.first().map(|it| it.max_alive)
        };
        assert_eq!(max_alive(None, None), Some(3));
        assert_eq!(max_alive(None, Some(10..14)), Some(3));
        assert_eq!(max_alive(None, Some(12..13)), Some(3));
        assert_eq!(max_alive(None, Some(13..14)), Some(2));
        assert_eq!(max_alive(None, Some(14..20)), None);
        assert_eq!(max_alive(Some(vec![1]), Some(10..13)), None);
        assert_eq!(max_alive(Some(vec![2]), Some(10..21)), Some(1));
    }
}
