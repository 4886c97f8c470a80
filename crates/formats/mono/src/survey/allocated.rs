//! What was allocated, added up in the same pass: by thread and class, and which addresses lie in which buffer.

use rustc_hash::FxHashMap;

use crate::reader::Buffer;
use crate::records::int_size;

/// Sums that a task keeps. A program has far fewer classes; where there are more, sums would not be smaller than rows.
const MOST_SUMS: usize = 1 << 14;
/// Sums that are found without a search: a power of two.
const PLACES: usize = 1 << 10;

/// What a thread allocated of a class, in buffers that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// The first of these buffers.
    pub buffer: usize,
    /// Class, or since data version 15 vtable.
    pub class: u64,
    /// Objects.
    pub count: u64,
    /// Their sizes.
    pub bytes: u64,
    /// The largest.
    pub largest: u64,
    /// Time of the earliest.
    pub first: u64,
    /// Offset of the first event.
    pub offset: u64,
}

/// All allocations of a log.
#[derive(Debug, Default)]
pub struct Allocated {
    sums: Vec<Sum>,
    has_too_many: bool,
    /// Lowest and highest address of the objects of each buffer; the other way round where there are none.
    pub objects: Vec<(u64, u64)>,
}

impl Allocated {
    /// Sums in the order of their first events; `None` where there would be too many.
    #[must_use]
    pub fn sums(&self) -> Option<&[Sum]> {
        (!self.has_too_many).then_some(&self.sums)
    }

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

/// Adds up the events of a task's buffers.
pub(super) struct Adder {
    /// Of this buffer: by class, some of them several times.
    recent: Vec<Sum>,
    /// Where in `recent` a class was last, by its lowest bits.
    places: [u16; PLACES],
    objects: (u64, u64),
    all: Allocated,
    /// Where in all sums those of a class are, by the first buffer of a thread.
    known: FxHashMap<(usize, u64), usize>,
    /// Threads, each with its first buffer.
    threads: Vec<(u64, usize)>,
}

/// No objects yet.
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

    /// Takes what was added since the last call as that of a buffer; `is_told_of` says whether it tells of its own thread, and
    /// so may be of another one than those before it.
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
    fn take(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.largest = self.largest.max(other.largest);
        self.first = self.first.min(other.first);
    }
}
