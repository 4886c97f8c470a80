//! Address spaces that are copies of others: a fork copies that of the parent, an exec begins an empty one.

use rustc_hash::FxHashMap;

/// Most forks between a process and the ancestor whose memory it has. A crafted file may have a process that is its own ancestor.
const MAX_ANCESTORS: usize = 64;

/// A process whose memory another one has a copy of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ancestor {
    /// Key of the process.
    pub process_id: u32,
    /// Time of the fork.
    pub fork_ns: i64,
}

/// Starts of the address spaces of processes.
#[derive(Clone, Debug, Default)]
pub struct AddressSpaceStarts {
    /// Time, and the key of the process that was forked, in time order; no key for an empty address space.
    by_process: FxHashMap<u32, Vec<(i64, Option<u32>)>>,
    /// Time of the first one.
    first_ns: i64,
}

impl AddressSpaceStarts {
    /// From the starts: key of the process, time, and key of the process that was forked.
    #[must_use]
    pub fn new(starts: impl IntoIterator<Item = (u32, i64, Option<u32>)>) -> Self {
        let mut by_process: FxHashMap<u32, Vec<(i64, Option<u32>)>> = FxHashMap::default();
        for (process_id, ns, parent) in starts {
            by_process.entry(process_id).or_default().push((ns, parent));
        }
        by_process.values_mut().for_each(|starts| starts.sort_by_key(|(ns, _)| *ns));
        let first_ns = by_process.values().filter_map(|starts| starts.first()).map(|(ns, _)| *ns).min();
        Self { by_process, first_ns: first_ns.unwrap_or(i64::MAX) }
    }

    /// The processes whose memory a process had a copy of at a time, the parent first.
    pub fn ancestors(&self, process_id: u32, at_ns: i64) -> impl Iterator<Item = Ancestor> {
        let next = move |child: &Ancestor| self.parent(child.process_id, child.fork_ns);
        std::iter::successors(self.parent(process_id, at_ns), next).take(MAX_ANCESTORS)
    }

    /// Whether the address space that a process has at a time began after another time.
    #[must_use]
    pub fn began_after(&self, process_id: u32, before_ns: i64, at_ns: i64) -> bool {
        self.latest(process_id, at_ns).is_some_and(|(ns, _)| ns > before_ns)
    }

    /// When the next address space of a process begins after a time.
    #[must_use]
    pub fn next_ns(&self, process_id: u32, at_ns: i64) -> Option<i64> {
        let starts = self.by_process.get(&process_id)?;
        starts.get(starts.partition_point(|(ns, _)| *ns <= at_ns)).map(|(ns, _)| *ns)
    }

    /// Whether code that was made at a time cannot be in the address space that its process has at a later one. What is from before
    /// the first start may have a time that is not right: some dumps have only zeros.
    #[must_use]
    pub fn have_ended(&self, process_id: u32, made_ns: i64, at_ns: i64) -> bool {
        made_ns > self.first_ns && self.began_after(process_id, made_ns, at_ns)
    }

    /// The process that a process was forked from before a time, unless it began an empty address space since.
    fn parent(&self, process_id: u32, at_ns: i64) -> Option<Ancestor> {
        let (fork_ns, parent) = self.latest(process_id, at_ns)?;
        Some(Ancestor { process_id: parent?, fork_ns })
    }

    /// The start of the address space that a process has at a time.
    fn latest(&self, process_id: u32, at_ns: i64) -> Option<(i64, Option<u32>)> {
        let starts = self.by_process.get(&process_id)?;
        starts.get(starts.partition_point(|(ns, _)| *ns <= at_ns).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_the_memory_of_its_ancestors_until_it_executes_a_program() {
        let starts =
            AddressSpaceStarts::new([(2, 10, Some(1)), (3, 20, Some(2)), (2, 30, None), (1, 5, None)]);
        let ancestors = |process, at| starts.ancestors(process, at).map(|it| (it.process_id, it.fork_ns));
        assert_eq!(ancestors(3, 40).collect::<Vec<_>>(), [(2, 20), (1, 10)]);
        assert_eq!(ancestors(2, 29).collect::<Vec<_>>(), [(1, 10)]);
        assert_eq!(ancestors(2, 30).count() + ancestors(2, 9).count() + ancestors(1, 40).count(), 0);
        assert!(
            starts.began_after(2, 10, 30) && !starts.began_after(2, 30, 30) && !starts.began_after(4, 0, 30)
        );
        assert_eq!([9, 10, 30].map(|at| starts.next_ns(2, at)), [Some(10), Some(30), None]);
        assert!(
            starts.have_ended(2, 20, 30) && !starts.have_ended(2, 0, 30) && !starts.have_ended(2, 20, 29)
        );
        let circle = AddressSpaceStarts::new([(1, 5, Some(1))]);
        assert_eq!(circle.ancestors(1, 5).count(), MAX_ANCESTORS);
    }
}
