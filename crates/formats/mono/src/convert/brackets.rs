//! Pairs of events: the start and end of a call, a collection, a lock wait or a finalizer.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::consts::{EventByte, gc, monitor};
use crate::records::{Event, EventBody};

/// An interval other than a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum IntervalKind {
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
fn interval_edge(event: &Event<'_>) -> Option<(bool, IntervalKind)> {
    Some(match event.body {
        EventBody::GcEvent { event, .. } => match event {
            gc::START | gc::PRE_STOP_WORLD | gc::POST_STOP_WORLD | gc::PRE_STOP_WORLD_LOCKED | 1 | 3 => {
                (true, IntervalKind::Gc(event))
            }
            gc::END => (false, IntervalKind::Gc(gc::START)),
            gc::POST_START_WORLD => (false, IntervalKind::Gc(gc::PRE_STOP_WORLD)),
            gc::PRE_START_WORLD => (false, IntervalKind::Gc(gc::POST_STOP_WORLD)),
            gc::POST_START_WORLD_UNLOCKED => (false, IntervalKind::Gc(gc::PRE_STOP_WORLD_LOCKED)),
            2 | 4 => (false, IntervalKind::Gc(event.wrapping_sub(1))),
            _ => return None,
        },
        EventBody::Monitor { event, object } => (event == monitor::CONTENTION, IntervalKind::Monitor(object)),
        EventBody::Finalize => (event.byte == EventByte::GC_FINALIZE_START, IntervalKind::Finalize),
        EventBody::FinalizeObject { object } => {
            (event.byte == EventByte::GC_FINALIZE_OBJECT_START, IntervalKind::FinalizeObject(object))
        }
        _ => return None,
    })
}

/// The open intervals of one thread.
/// Whether the time range has started.
#[derive(Debug, Default)]
pub struct OpenIntervals {
    /// Open calls, outermost first.
    has_started: bool,
    calls: Vec<OpenInterval>,
    /// Number of open calls of each method, so that unmatched leaves are not searched.
    num_open: FxHashMap<u64, u32>,
    intervals: FxHashMap<IntervalKind, OpenInterval>,
}

/// An open call or interval.
#[derive(Clone, Copy, Debug)]
struct OpenInterval {
    method: u64,
    /// Offset of its start event.
    offset: u64,
    /// Whether it overlaps the time range.
    is_retained: bool,
}

impl OpenIntervals {
    /// Processes an event. Offsets of events outside the range that belong to an interval which overlaps it are added
    /// to `retained`.
    pub fn add_event(
        &mut self,
        event: &Event<'_>,
        has_begun: bool,
        is_inside: bool,
        retained: &mut FxHashSet<u64>,
    ) {
        if has_begun && !self.has_started {
            self.has_started = true;
            for open in self.calls.iter_mut().chain(self.intervals.values_mut()) {
                open.is_retained = true;
                retained.insert(open.offset);
            }
        }
        let offset = event.offset;
        if let EventBody::Call { method } = event.body {
            if event.byte == EventByte::METHOD_ENTER {
                let count = self.num_open.entry(method).or_default();
                *count = count.saturating_add(1);
                self.calls.push(OpenInterval { method, offset, is_retained: is_inside });
            } else if self.close_call(method) {
                retained.insert(offset);
            }
            return;
        }
        let Some((starts, kind)) = interval_edge(event) else { return };
        if starts {
            self.intervals.insert(kind, OpenInterval { method: 0, offset, is_retained: is_inside });
        } else if self.intervals.remove(&kind).is_some_and(|open| open.is_retained) {
            retained.insert(offset);
        }
    }

    /// Closes the innermost call of a method and the calls nested in it; returns whether that call is retained.
    fn close_call(&mut self, method: u64) -> bool {
        if self.num_open.get(&method).is_none_or(|&count| count == 0) {
            return false;
        }
        while let Some(call) = self.calls.pop() {
            if let Some(count) = self.num_open.get_mut(&call.method) {
                *count = count.saturating_sub(1);
            }
            if call.method == method {
                return call.is_retained;
            }
        }
        false
    }
}
