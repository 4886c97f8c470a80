//! Heap snapshots in the formats of other heap viewers.

mod classes;
mod hprof;
mod v8;

use std::collections::HashMap;

use perfuse_engine::heap::{Heap, RootIdentity, SnapshotRoot};
use rustc_hash::FxHashMap;

use crate::{Error, Progress, Spool};

pub use hprof::write_hprof;
pub use v8::write_v8;

/// Rows between two reports of progress.
const STEP: u32 = 1 << 14;

/// Reports the objects that are done now and then.
pub(crate) fn go_on(spool: &mut Spool, done: u64, progress: &mut Progress<'_>) -> Result<(), Error> {
    spool.flush_if_full();
    if done.is_multiple_of(STEP.into()) && (spool.failed() || !progress(done)) {
        return Err(Error::Stopped);
    }
    Ok(())
}

/// Name of objects whose type is not recorded.
const UNKNOWN_TYPE: &str = "unknown type";

/// A heap snapshot with the names that viewers show.
#[derive(Clone, Copy, Debug)]
pub struct HeapDump<'a> {
    /// The snapshot.
    pub heap: &'a Heap,
    /// Names of types, by key.
    pub types: &'a HashMap<u32, String>,
    /// What roots are: a text for each of [`perfuse_engine::heap::HeapRoots::distinct`].
    pub roots: &'a [String],
}

impl<'a> HeapDump<'a> {
    /// Names of the classes of objects, by number.
    pub(crate) fn class_names(&self) -> impl Iterator<Item = &'a str> {
        let types = self.types;
        let name =
            move |of: &Option<u32>| of.and_then(|id| types.get(&id)).map_or(UNKNOWN_TYPE, String::as_str);
        self.heap.objects().types().iter().map(name)
    }

    /// Texts of roots by their identity.
    fn root_texts(&self) -> FxHashMap<RootIdentity, &'a str> {
        let roots = self.heap.roots();
        let identities = roots.distinct().into_iter().map(|root| roots.identity(root));
        identities.zip(self.roots.iter().map(String::as_str)).collect()
    }

    /// Whether a reference leads from an object that nothing keeps alive to one that a root keeps alive.
    fn is_from_garbage(&self, owner: u32, target: u32) -> bool {
        self.heap.is_reachable(owner) == Some(false) && self.heap.is_reachable(target) == Some(true)
    }

    /// The roots, by kind in the order of the snapshot.
    pub(crate) fn roots_by_kind(&self) -> Vec<(&'a str, Vec<&'a SnapshotRoot>)> {
        let roots = self.heap.roots();
        let mut kinds: Vec<(&str, Vec<_>)> = Vec::new();
        for root in roots.list() {
            let kind = roots.kind(root);
            match kinds.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, of_kind)) => of_kind.push(root),
                None => kinds.push((kind, vec![root])),
            }
        }
        kinds
    }
}
