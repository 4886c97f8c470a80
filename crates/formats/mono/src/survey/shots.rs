//! What heap shots hold, added up in the same pass: objects, bytes and references by class.

use rustc_hash::FxHashMap;

use crate::decode::BareObject;
use crate::records::int_size;

/// Classes of a part that are added up. A program has far fewer; where there are more, sums would not be smaller than rows.
const MOST_SUMS: usize = 1 << 16;
/// Classes that are found without a search: a power of two.
const PLACES: usize = 1 << 12;

/// Objects of a class.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// Class, or since data version 15 vtable.
    pub class: u64,
    /// Objects.
    pub count: u64,
    /// Their sizes.
    pub bytes: u64,
    /// References they have.
    pub num_references: u64,
}

/// Objects of a thread with no beginning or end of a shot between them.
#[derive(Debug)]
pub struct Part {
    /// The thread.
    pub thread: u64,
    /// Offset of the first object.
    pub offset: u64,
    /// Time of it.
    pub time: u64,
    /// By class.
    pub sums: Vec<Sum>,
}

/// All objects of heap shots.
#[derive(Debug, Default)]
pub struct Held {
    parts: Vec<Part>,
    has_too_many: bool,
}

impl Held {
    /// Sums in the order of the file; `None` where there would be too many.
    #[must_use]
    pub fn parts(&self) -> Option<&[Part]> {
        (!self.has_too_many).then_some(&self.parts)
    }

    pub(super) fn append(&mut self, other: Self) {
        self.has_too_many |= other.has_too_many;
        if self.has_too_many {
            self.parts = Vec::new();
        } else {
            self.parts.extend(other.parts);
        }
    }
}

/// Adds up the objects of a task's buffers.
#[derive(Debug, Default)]
pub(super) struct Adder {
    all: Held,
    open: Option<Part>,
    /// Where in the open part's sums a class is: by its lowest bits, then by all.
    places: Vec<u32>,
    known: FxHashMap<u64, u32>,
}

impl Adder {
    /// Where a class is looked for first. Classes lie some words apart.
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

    /// What follows is of another shot, or of none.
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
    #[inline(always)]
    fn add(&mut self, object: &BareObject) {
        self.num_references = self.num_references.saturating_add(object.num_references);
        // A record of size 0 goes on with the references of an object that was counted.
        if object.size != 0 {
            self.count = self.count.wrapping_add(1);
            self.bytes = self.bytes.saturating_add(int_size(object.size));
        }
    }
}
