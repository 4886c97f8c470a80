//! Totals of heapshots by class: objects, bytes and references.

use rustc_hash::FxHashMap;

use crate::decode::HeapObjectSummary;
use crate::records::int_size;

/// Maximum number of classes per section. Programs have far fewer; more totals would not be smaller than the rows.
const MAX_CLASS_TOTALS: usize = 1 << 16;
/// Size of the cache of classes: a power of two.
const CLASS_CACHE_SIZE: usize = 1 << 12;

/// Objects of one class.
#[derive(Clone, Copy, Debug)]
pub struct HeapClassTotal {
    /// Class; since data version 15, vtable.
    pub class: u64,
    /// Number of objects.
    pub count: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// Number of their references.
    pub num_references: u64,
}

/// Objects of one thread without the start or end of a heapshot between them.
#[derive(Debug)]
pub struct HeapshotSection {
    /// Thread id.
    pub thread: u64,
    /// File offset of the first object.
    pub offset: u64,
    /// Time of the first object.
    pub time: u64,
    /// Totals by class.
    pub totals: Vec<HeapClassTotal>,
}

/// Totals of all heapshot objects of a log.
#[derive(Debug, Default)]
pub struct HeapshotTotals {
    sections: Vec<HeapshotSection>,
    has_too_many: bool,
}

impl HeapshotTotals {
    /// The sections in file order; `None` if there are too many totals.
    #[must_use]
    pub fn sections(&self) -> Option<&[HeapshotSection]> {
        (!self.has_too_many).then_some(&self.sections)
    }

    /// Adds the totals of the following buffers.
    pub(super) fn append(&mut self, other: Self) {
        self.has_too_many |= other.has_too_many;
        if self.has_too_many {
            self.sections = Vec::new();
        } else {
            self.sections.extend(other.sections);
        }
    }
}

/// Adds up the heapshot objects in the buffers of one task.
#[derive(Debug, Default)]
pub(super) struct HeapshotTotalsBuilder {
    all: HeapshotTotals,
    /// The current section.
    open: Option<HeapshotSection>,
    /// Index of a class in the totals of the current section: first by the low bits of its address, then by all.
    cached_indices: Vec<u32>,
    indices: FxHashMap<u64, u32>,
}

impl HeapshotTotalsBuilder {
    /// Cache slot of a class. Addresses of classes are some words apart.
    #[inline(always)]
    fn slot(class: u64) -> usize {
        ((class >> 3) ^ (class >> 14)) as usize % CLASS_CACHE_SIZE
    }

    /// Adds an object of a thread.
    #[inline(always)]
    pub(super) fn add(&mut self, thread: u64, object: &HeapObjectSummary) {
        if let Some(section) = self.open.as_mut()
            && section.thread == thread
            && let Some(&index) = self.cached_indices.get(Self::slot(object.class))
            && let Some(total) = section.totals.get_mut(index as usize)
            && total.class == object.class
        {
            return total.add(object);
        }
        self.add_uncached(thread, object);
    }

    /// Adds an object whose class is not in the cache.
    #[cold]
    fn add_uncached(&mut self, thread: u64, object: &HeapObjectSummary) {
        if self.open.as_ref().is_none_or(|section| section.thread != thread) {
            self.end_section();
            self.open = Some(HeapshotSection {
                thread,
                offset: object.offset,
                time: object.time,
                totals: Vec::new(),
            });
            self.cached_indices.resize(CLASS_CACHE_SIZE, u32::MAX);
        }
        let Some(section) = self.open.as_mut() else { return };
        let next = section.totals.len();
        if next >= MAX_CLASS_TOTALS {
            self.all.has_too_many = true;
            return;
        }
        let index = *self.indices.entry(object.class).or_insert(next as u32);
        if index as usize == next {
            section.totals.push(HeapClassTotal {
                class: object.class,
                count: 0,
                bytes: 0,
                num_references: 0,
            });
        }
        if let Some(total) = section.totals.get_mut(index as usize) {
            total.add(object);
        }
        if let Some(slot) = self.cached_indices.get_mut(Self::slot(object.class)) {
            *slot = index;
        }
    }

    /// Ends the current section.
    pub(super) fn end_section(&mut self) {
        self.indices.clear();
        self.cached_indices.clear();
        self.all.sections.extend(self.open.take());
    }

    pub(super) fn finish(mut self) -> HeapshotTotals {
        self.end_section();
        self.all
    }
}

impl HeapClassTotal {
    /// Adds an object.
    #[inline(always)]
    fn add(&mut self, object: &HeapObjectSummary) {
        self.num_references = self.num_references.saturating_add(object.num_references);
        // A record of size 0 continues the references of an object that was counted.
        if object.size != 0 {
            self.count = self.count.wrapping_add(1);
            self.bytes = self.bytes.saturating_add(int_size(object.size));
        }
    }
}
