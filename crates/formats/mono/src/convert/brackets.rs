//! Pairs of events: the start and end of a call, a collection, a lock wait or a finalizer.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::consts::{EventByte, gc, monitor};
use crate::records::{Body, Event};

/// An interval other than a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// A phase of a collection, by the event that starts it.
    Gc(u64),
    /// A wait for the lock of an object.
    Monitor(u64),
    /// A round of the finalizer thread.
    Finalize,
    /// The finalizer of an object.
    FinalizeObject(u64),
}

/// The interval that an event starts (`true`) or ends.
fn key(event: &Event<'_>) -> Option<(bool, Key)> {
    Some(match event.body {
        Body::GcEvent { event, .. } => match event {
            gc::START | gc::PRE_STOP_WORLD | gc::POST_STOP_WORLD | gc::PRE_STOP_WORLD_LOCKED | 1 | 3 => {
                (true, Key::Gc(event))
            }
            gc::END => (false, Key::Gc(gc::START)),
            gc::POST_START_WORLD => (false, Key::Gc(gc::PRE_STOP_WORLD)),
            gc::PRE_START_WORLD => (false, Key::Gc(gc::POST_STOP_WORLD)),
            gc::POST_START_WORLD_UNLOCKED => (false, Key::Gc(gc::PRE_STOP_WORLD_LOCKED)),
            2 | 4 => (false, Key::Gc(event.wrapping_sub(1))),
            _ => return None,
        },
        Body::Monitor { event, object } => (event == monitor::CONTENTION, Key::Monitor(object)),
        Body::Finalize => (event.byte == EventByte::GC_FINALIZE_START, Key::Finalize),
        Body::FinalizeObject { object } => {
            (event.byte == EventByte::GC_FINALIZE_OBJECT_START, Key::FinalizeObject(object))
        }
        _ => return None,
    })
}

/// The open intervals of one thread.
/// Whether the time range has started.
#[derive(Debug, Default)]
pub struct Thread {
    /// Open calls, outermost first.
    is_there: bool,
    calls: Vec<Open>,
    /// Number of open calls of each method, so that unmatched leaves are not searched.
    of_method: FxHashMap<u64, u32>,
    brackets: FxHashMap<Key, Open>,
}

/// An open call or interval.
#[derive(Clone, Copy, Debug)]
struct Open {
    method: u64,
    /// Offset of its start event.
    offset: u64,
    /// Whether it overlaps the time range.
    is_kept: bool,
}

impl Thread {
    /// Processes an event. Offsets of events outside the range that belong to an interval which overlaps it are added
    /// to `kept`.
    pub fn event(&mut self, event: &Event<'_>, has_begun: bool, is_inside: bool, kept: &mut FxHashSet<u64>) {
        if has_begun && !self.is_there {
            self.is_there = true;
            for open in self.calls.iter_mut().chain(self.brackets.values_mut()) {
                open.is_kept = true;
                kept.insert(open.offset);
            }
        }
        let offset = event.offset;
        if let Body::Call { method } = event.body {
            if event.byte == EventByte::METHOD_ENTER {
                let count = self.of_method.entry(method).or_default();
                *count = count.saturating_add(1);
                self.calls.push(Open { method, offset, is_kept: is_inside });
            } else if self.leave(method) {
                kept.insert(offset);
            }
            return;
        }
        let Some((begins, key)) = key(event) else { return };
        if begins {
            self.brackets.insert(key, Open { method: 0, offset, is_kept: is_inside });
        } else if self.brackets.remove(&key).is_some_and(|open| open.is_kept) {
            kept.insert(offset);
        }
    }

    /// Closes the innermost call of a method and the calls nested in it; returns whether that call is retained.
    fn leave(&mut self, method: u64) -> bool {
        if self.of_method.get(&method).is_none_or(|&count| count == 0) {
            return false;
        }
        while let Some(call) = self.calls.pop() {
            if let Some(count) = self.of_method.get_mut(&call.method) {
                *count = count.saturating_sub(1);
            }
            if call.method == method {
                return call.is_kept;
            }
        }
        false
    }
}
