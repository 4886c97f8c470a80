//! Totals of allocations by thread and class, and of heapshot objects by class, computed during the survey; and the
//! range of allocated addresses of each buffer.

use rustc_hash::FxHashMap;

use crate::decode::runs::HeapObjectSummary;
use crate::reader::EventBuffer;
use crate::records::int_size;

/// Maximum number of totals per task. Programs have far fewer classes; more totals would not be smaller than the
/// rows.
const MAX_ALLOCATION_TOTALS: usize = 1 << 14;
/// Size of the cache of recent classes: a power of two.
const RECENT_CACHE_SIZE: usize = 1 << 10;

/// Allocations of one class by a thread in consecutive buffers.
#[derive(Clone, Copy, Debug)]
pub struct AllocationTotal {
    /// Index of the first of these buffers.
    pub buffer: usize,
    /// Class; since data version 15, vtable.
    pub class: u64,
    /// Number of objects.
    pub count: u64,
    /// Their total size in bytes.
    pub bytes: u64,
    /// Size of the largest object in bytes.
    pub largest: u64,
    /// Time of the earliest allocation.
    pub first: u64,
    /// File offset of the first allocation.
    pub offset: u64,
}

/// Totals of all allocations of a log.
#[derive(Debug, Default)]
pub struct AllocationTotals {
    totals: Vec<AllocationTotal>,
    has_too_many: bool,
    /// Lowest and highest object address of each buffer; reversed if it has no allocations.
    pub address_ranges: Vec<(u64, u64)>,
}

impl AllocationTotals {
    /// The totals in the order of their first events; `None` if there are too many.
    #[must_use]
    pub fn totals(&self) -> Option<&[AllocationTotal]> {
        (!self.has_too_many).then_some(&self.totals)
    }

    /// Adds the totals of the following buffers.
    pub(super) fn append(&mut self, other: Self) {
        self.has_too_many |= other.has_too_many;
        self.address_ranges.extend(other.address_ranges);
        if self.has_too_many {
            self.totals = Vec::new();
        } else {
            self.totals.extend(other.totals);
        }
    }
}

/// Adds up the allocations in the buffers of one task.
pub(super) struct AllocationTotalsBuilder {
    /// Totals of the current buffer; a class can occur several times.
    recent: Vec<AllocationTotal>,
    /// Index in `recent` of the last total of a class, by the low bits of its address.
    recent_slots: [u16; RECENT_CACHE_SIZE],
    /// Lowest and highest object address of the current buffer.
    address_range: (u64, u64),
    all: AllocationTotals,
    /// Index of the total of a thread (by its first buffer) and class.
    total_indices: FxHashMap<(usize, u64), usize>,
    /// Thread ids, each with the thread's first buffer.
    threads: Vec<(u64, usize)>,
}

/// Address range of a buffer without allocations.
const NO_ADDRESSES: (u64, u64) = (u64::MAX, 0);

impl AllocationTotalsBuilder {
    /// Starts without totals.
    pub(super) fn new() -> Self {
        Self {
            recent: Vec::new(),
            recent_slots: [0; RECENT_CACHE_SIZE],
            address_range: NO_ADDRESSES,
            all: AllocationTotals::default(),
            total_indices: FxHashMap::default(),
            threads: Vec::new(),
        }
    }

    /// Adds an allocation in the current buffer.
    #[inline]
    pub(super) fn add(&mut self, class: u64, object: u64, size: u64, time: u64, offset: u64) {
        let (lowest, highest) = self.address_range;
        self.address_range = (lowest.min(object), highest.max(object));
        let bytes = int_size(size);
        let slot = (class >> 3) as usize % RECENT_CACHE_SIZE;
        let index = self.recent_slots.get(slot).map_or(0, |index| usize::from(*index));
        match self.recent.get_mut(index) {
            Some(total) if total.class == class => {
                total.count = total.count.wrapping_add(1);
                total.bytes = total.bytes.saturating_add(bytes);
                total.largest = total.largest.max(bytes);
                total.first = total.first.min(time);
            }
            _ => self.start_total(
                slot,
                AllocationTotal { buffer: 0, class, count: 1, bytes, largest: bytes, first: time, offset },
            ),
        }
    }

    /// Starts a total of the current buffer.
    fn start_total(&mut self, slot: usize, total: AllocationTotal) {
        if self.recent.len() >= MAX_ALLOCATION_TOTALS {
            self.all.has_too_many = true;
            return;
        }
        if let Some(index) = self.recent_slots.get_mut(slot) {
            *index = self.recent.len() as u16;
        }
        self.recent.push(total);
    }

    /// Completes the current buffer. `has_own_thread_event` is whether it has an event about its own thread, which
    /// then may be another one than that of earlier buffers with the same id.
    pub(super) fn end_buffer(&mut self, number: usize, buffer: &EventBuffer, has_own_thread_event: bool) {
        self.all.address_ranges.push(std::mem::replace(&mut self.address_range, NO_ADDRESSES));
        let thread = buffer.header.thread_id;
        if has_own_thread_event {
            self.threads.retain(|(id, _)| *id != thread);
        }
        let first = match self.threads.iter().find(|(id, _)| *id == thread) {
            Some((_, first)) => *first,
            None => {
                self.threads.push((thread, number));
                number
            }
        };
        for total in self.recent.drain(..) {
            let next = self.all.totals.len();
            let index = *self.total_indices.entry((first, total.class)).or_insert(next);
            match self.all.totals.get_mut(index) {
                Some(of_class) => of_class.merge(&total),
                None if next < MAX_ALLOCATION_TOTALS => {
                    self.all.totals.push(AllocationTotal { buffer: first, ..total })
                }
                None => self.all.has_too_many = true,
            }
        }
    }

    pub(super) fn finish(self) -> AllocationTotals {
        self.all
    }
}

impl AllocationTotal {
    /// Adds another total of the same class.
    fn merge(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.largest = self.largest.max(other.largest);
        self.first = self.first.min(other.first);
    }
}

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
