//! Totals of heapshots by class: objects, bytes and references.

use rustc_hash::FxHashMap;

use crate::decode::BareObject;
use crate::records::int_size;

/// Maximum number of classes per section. Programs have far fewer; more totals would not be smaller than the rows.
const MOST_SUMS: usize = 1 << 16;
/// Size of the cache of classes: a power of two.
const PLACES: usize = 1 << 12;

/// Objects of one class.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
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
pub struct Part {
    /// Thread id.
    pub thread: u64,
    /// File offset of the first object.
    pub offset: u64,
    /// Time of the first object.
    pub time: u64,
    /// Totals by class.
    pub sums: Vec<Sum>,
}

/// Totals of all heapshot objects of a log.
#[derive(Debug, Default)]
pub struct Held {
    parts: Vec<Part>,
    has_too_many: bool,
}

impl Held {
    /// The sections in file order; `None` if there are too many totals.
    #[must_use]
    pub fn parts(&self) -> Option<&[Part]> {
        (!self.has_too_many).then_some(&self.parts)
    }

    /// Adds the totals of the following buffers.
    pub(super) fn append(&mut self, other: Self) {
        self.has_too_many |= other.has_too_many;
        if self.has_too_many {
            self.parts = Vec::new();
        } else {
            self.parts.extend(other.parts);
        }
    }
}

/// Adds up the heapshot objects in the buffers of one task.
#[derive(Debug, Default)]
pub(super) struct Adder {
    all: Held,
    /// The current section.
    open: Option<Part>,
    /// Index of a class in the totals of the current section: first by the low bits of its address, then by all.
    places: Vec<u32>,
    known: FxHashMap<u64, u32>,
}

impl Adder {
    /// Cache slot of a class. Addresses of classes are some words apart.
    #[inline(always)]
    fn slot(class: u64) -> usize {
        ((class >> 3) ^ (class >> 14)) as usize % PLACES
    }

    /// Adds an object of a thread.
    #[inline(always)]
    pub(super) fn add(&mut self, thread: u64, object: &BareObject) {
        if let Some(part) = self.open.as_mut()
            && part.thread == thread
            && let Some(&place) = self.places.get(Self::slot(object.class))
            && let Some(sum) = part.sums.get_mut(place as usize)
            && sum.class == object.class
        {
            return sum.add(object);
        }
        self.add_other(thread, object);
    }

    /// Adds an object whose class is not in the cache.
    #[cold]
    fn add_other(&mut self, thread: u64, object: &BareObject) {
        if self.open.as_ref().is_none_or(|part| part.thread != thread) {
            self.end();
            self.open = Some(Part { thread, offset: object.offset, time: object.time, sums: Vec::new() });
            self.places.resize(PLACES, u32::MAX);
        }
        let Some(part) = self.open.as_mut() else { return };
        let next = part.sums.len();
        if next >= MOST_SUMS {
            self.all.has_too_many = true;
            return;
        }
        let place = *self.known.entry(object.class).or_insert(next as u32);
        if place as usize == next {
            part.sums.push(Sum { class: object.class, count: 0, bytes: 0, num_references: 0 });
        }
        if let Some(sum) = part.sums.get_mut(place as usize) {
            sum.add(object);
        }
        if let Some(slot) = self.places.get_mut(Self::slot(object.class)) {
            *slot = place;
        }
    }

    /// Ends the current section.
    pub(super) fn end(&mut self) {
        self.known.clear();
        self.places.clear();
        self.all.parts.extend(self.open.take());
    }

    pub(super) fn finish(mut self) -> Held {
        self.end();
        self.all
    }
}

impl Sum {
    /// Adds an object.
    #[inline(always)]
    fn add(&mut self, object: &BareObject) {
        self.num_references = self.num_references.saturating_add(object.num_references);
        // A record of size 0 continues the references of an object that was counted.
        if object.size != 0 {
            self.count = self.count.wrapping_add(1);
            self.bytes = self.bytes.saturating_add(int_size(object.size));
        }
    }
}
