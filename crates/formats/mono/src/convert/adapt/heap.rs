//! Conversion of heapshot objects and roots.

use super::Adapter;
use crate::convert::misfits::{ConvertSummary, UnsupportedItem};
use crate::records::{Event, EventBody, Root};

/// Stands for an unknown generation; known ones are 0 and 1.
const UNKNOWN_GENERATION: u64 = 0xff;
/// Root kinds of data version 14, in the order of the kinds 0 to 4 of data versions 3 to 13.
const V14_KINDS: [u64; 5] = [1, 2, 4, 8, 16];
// Root kinds as data versions 3 to 13 number them.
const KIND_STACK: u64 = 0;
const KIND_FINALIZER: u64 = 1;
const KIND_HANDLE: u64 = 2;
const KIND_OTHER: u64 = 3;
const FLAGS_MASK: u64 = !0xff;

/// The kind of a root from the source of its registered memory.
fn kind_of_source(source: u64) -> u64 {
    match source {
        1 => KIND_STACK,
        2 => KIND_FINALIZER,
        6 | 14 => KIND_HANDLE,
        _ => KIND_OTHER,
    }
}

impl Adapter {
    /// Converts heapshot objects and roots.
    pub(super) fn adapt_heap(&self, event: &mut Event<'_>, time: u64, summary: &mut ConvertSummary) {
        let (from, to) = (self.from, self.to);
        match &mut event.body {
            EventBody::HeapObject(it) => {
                self.adapt_class(&mut it.class, time, summary);
                if from.is_profiler_3() != to.is_profiler_3() {
                    summary.count_item(UnsupportedItem::Generations, 1);
                    it.generation = if to.is_profiler_3() { UNKNOWN_GENERATION } else { 0 };
                }
                if (from.version >= 2) != (to.version >= 2) {
                    summary.count_item(UnsupportedItem::ReferenceOffsets, event.references.len() as u64);
                }
            }
            EventBody::HeapRoot(it) => {
                let num = event.roots.len() as u64;
                if from.has_vtables() != to.has_vtables() {
                    summary.count_item(UnsupportedItem::RootSlots, num);
                    summary.count_item(UnsupportedItem::Collections, 1);
                    it.collections = 0;
                }
                if to.has_vtables() && !from.has_vtables() {
                    summary.count_item(UnsupportedItem::RootKinds, num);
                } else if !to.has_vtables() {
                    for root in &mut event.roots {
                        self.adapt_root(root, time, summary);
                    }
                }
            }
            _ => {}
        }
    }

    /// Converts a root to data versions 3 to 14.
    fn adapt_root(&self, root: &mut Root, time: u64, summary: &mut ConvertSummary) {
        let (from, to) = (self.from, self.to);
        let (kind, flags) = if from.has_vtables() {
            let source = self.roots.at(root.slot, time).and_then(|fact| self.root_sources.get(fact));
            (source.map_or(KIND_OTHER, |source| kind_of_source(*source)), 0)
        } else {
            let low = root.kind & !FLAGS_MASK;
            let old_kind = V14_KINDS.iter().position(|kind| *kind == low).map_or(low, |at| at as u64);
            (if from.version >= 14 { old_kind } else { low }, root.kind & FLAGS_MASK)
        };
        let kind = match V14_KINDS.get(kind as usize) {
            Some(new) if to.version >= 14 => *new,
            _ => kind,
        };
        let has_flags = to.version != 13;
        summary.count_item(UnsupportedItem::RootFlags, u64::from(!has_flags && flags != 0));
        root.kind = if has_flags { kind | flags } else { kind };
    }
}
