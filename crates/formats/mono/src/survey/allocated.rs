//! Totals of allocations by thread and class, and the range of allocated addresses of each buffer.

use rustc_hash::FxHashMap;

use crate::reader::Buffer;
use crate::records::int_size;

/// Maximum number of totals per task. Programs have far fewer classes; more totals would not be smaller than the
/// rows.
const MOST_SUMS: usize = 1 << 14;
/// Size of the cache of recent classes: a power of two.
const PLACES: usize = 1 << 10;

/// Allocations of one class by a thread in consecutive buffers.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
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
pub struct Allocated {
    sums: Vec<Sum>,
    has_too_many: bool,
    /// Lowest and highest object address of each buffer; reversed if it has no allocations.
    pub objects: Vec<(u64, u64)>,
}

impl Allocated {
    /// The totals in the order of their first events; `None` if there are too many.
    #[must_use]
    pub fn sums(&self) -> Option<&[Sum]> {
        (!self.has_too_many).then_some(&self.sums)
    }

    /// Adds the totals of the following buffers.
    pub(super) fn append(&mut self, other: Self) {
        self.has_too_many |= other.has_too_many;
        self.objects.extend(other.objects);
        if self.has_too_many {
            self.sums = Vec::new();
        } else {
            self.sums.extend(other.sums);
        }
    }
}

/// Adds up the allocations in the buffers of one task.
pub(super) struct Adder {
    /// Totals of the current buffer; a class can occur several times.
    recent: Vec<Sum>,
    /// Index in `recent` of the last total of a class, by the low bits of its address.
    places: [u16; PLACES],
    /// Lowest and highest object address of the current buffer.
    objects: (u64, u64),
    all: Allocated,
    /// Index of the total of a thread (by its first buffer) and class.
    known: FxHashMap<(usize, u64), usize>,
    /// Thread ids, each with the thread's first buffer.
    threads: Vec<(u64, usize)>,
}

/// Address range of a buffer without allocations.
const NONE: (u64, u64) = (u64::MAX, 0);

impl Adder {
    pub(super) fn new() -> Self {
        Self {
            recent: Vec::new(),
            places: [0; PLACES],
            objects: NONE,
            all: Allocated::default(),
            known: FxHashMap::default(),
            threads: Vec::new(),
        }
    }

    /// Adds an allocation in the current buffer.
    #[inline]
    pub(super) fn add(&mut self, class: u64, object: u64, size: u64, time: u64, offset: u64) {
        let (lowest, highest) = self.objects;
        self.objects = (lowest.min(object), highest.max(object));
        let bytes = int_size(size);
        let slot = (class >> 3) as usize % PLACES;
        let place = self.places.get(slot).map_or(0, |place| usize::from(*place));
        match self.recent.get_mut(place) {
            Some(sum) if sum.class == class => {
                sum.count = sum.count.wrapping_add(1);
                sum.bytes = sum.bytes.saturating_add(bytes);
                sum.largest = sum.largest.max(bytes);
                sum.first = sum.first.min(time);
            }
            _ => self
                .begin(slot, Sum { buffer: 0, class, count: 1, bytes, largest: bytes, first: time, offset }),
        }
    }

    /// Starts a total of the current buffer.
    fn begin(&mut self, slot: usize, sum: Sum) {
        if self.recent.len() >= MOST_SUMS {
            self.all.has_too_many = true;
            return;
        }
        if let Some(place) = self.places.get_mut(slot) {
            *place = self.recent.len() as u16;
        }
        self.recent.push(sum);
    }

    /// Completes the current buffer. `is_told_of` is whether it has an event about its own thread, which then may be
    /// another one than that of earlier buffers with the same id.
    pub(super) fn end(&mut self, number: usize, buffer: &Buffer, is_told_of: bool) {
        self.all.objects.push(std::mem::replace(&mut self.objects, NONE));
        let thread = buffer.header.thread_id;
        if is_told_of {
            self.threads.retain(|(id, _)| *id != thread);
        }
        let first = match self.threads.iter().find(|(id, _)| *id == thread) {
            Some((_, first)) => *first,
            None => {
                self.threads.push((thread, number));
                number
            }
        };
        for sum in self.recent.drain(..) {
            let next = self.all.sums.len();
            let place = *self.known.entry((first, sum.class)).or_insert(next);
            match self.all.sums.get_mut(place) {
                Some(known) => known.take(&sum),
                None if next < MOST_SUMS => self.all.sums.push(Sum { buffer: first, ..sum }),
                None => self.all.has_too_many = true,
            }
        }
    }

    pub(super) fn finish(self) -> Allocated {
        self.all
    }
}

impl Sum {
    /// Adds another total of the same class.
    fn take(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.largest = self.largest.max(other.largest);
        self.first = self.first.min(other.first);
    }
}
