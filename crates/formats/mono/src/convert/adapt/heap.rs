//! Conversion of heapshot objects and roots.

use super::Adapter;
use crate::convert::misfits::{Misfit, Written};
use crate::records::{Body, Event, Root};

/// Stands for an unknown generation; known ones are 0 and 1.
const UNKNOWN_GENERATION: u64 = 0xff;
/// Root kinds of data version 14, in the order of the kinds 0 to 4 of data versions 3 to 13.
const KINDS: [u64; 5] = [1, 2, 4, 8, 16];
// Root kinds as data versions 3 to 13 number them.
const STACK: u64 = 0;
const FINALIZER: u64 = 1;
const HANDLE: u64 = 2;
const OTHER: u64 = 3;
const FLAGS: u64 = !0xff;

/// The kind of a root from the source of its registered memory.
fn kind_of_source(source: u64) -> u64 {
    match source {
        1 => STACK,
        2 => FINALIZER,
        6 | 14 => HANDLE,
        _ => OTHER,
    }
}

impl Adapter {
    /// Converts heapshot objects and roots.
    pub(super) fn heap(&self, event: &mut Event<'_>, time: u64, written: &mut Written) {
        let (from, to) = (self.from, self.to);
        match &mut event.body {
            Body::HeapObject(it) => {
                self.class(&mut it.class, time, written);
                if from.third() != to.third() {
                    written.add(Misfit::Generations, 1);
                    it.generation = if to.third() { UNKNOWN_GENERATION } else { 0 };
                }
                if (from.version >= 2) != (to.version >= 2) {
                    written.add(Misfit::ReferenceOffsets, event.references.len() as u64);
                }
            }
            Body::HeapRoot(it) => {
                let num = event.roots.len() as u64;
                if from.vtables() != to.vtables() {
                    written.add(Misfit::RootSlots, num);
                    written.add(Misfit::Collections, 1);
                    it.collections = 0;
                }
                if to.vtables() && !from.vtables() {
                    written.add(Misfit::RootKinds, num);
                } else if !to.vtables() {
                    for root in &mut event.roots {
                        self.root(root, time, written);
                    }
                }
            }
            _ => {}
        }
    }

    /// Converts a root to data versions 3 to 14.
    fn root(&self, root: &mut Root, time: u64, written: &mut Written) {
        let (from, to) = (self.from, self.to);
        let (kind, flags) = if from.vtables() {
            let source = self.roots.at(root.slot, time).and_then(|fact| self.root_sources.get(fact));
            (source.map_or(OTHER, |source| kind_of_source(*source)), 0)
        } else {
            let low = root.kind & !FLAGS;
            let old = KINDS.iter().position(|kind| *kind == low).map_or(low, |at| at as u64);
            (if from.version >= 14 { old } else { low }, root.kind & FLAGS)
        };
        let kind = match KINDS.get(kind as usize) {
            Some(new) if to.version >= 14 => *new,
            _ => kind,
        };
        let fits = to.version != 13;
        written.add(Misfit::RootFlags, u64::from(!fits && flags != 0));
        root.kind = if fits { kind | flags } else { kind };
    }
}
