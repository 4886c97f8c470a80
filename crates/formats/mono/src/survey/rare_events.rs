//! Positions of rare events, so that a table of rare events reads only those.

use crate::consts::{EventByte, KindSet};
use crate::decode::DecoderState;

/// Rare kinds of events: those that never make up most of a log.
const RARE_KINDS: KindSet = KindSet::all().without(KindSet::of(&[
    EventByte::ALLOC,
    EventByte::ALLOC_BT,
    EventByte::GC_MOVE,
    EventByte::METHOD_ENTER,
    EventByte::METHOD_LEAVE,
    EventByte::METHOD_EXC_LEAVE,
    EventByte::HEAP_OBJECT,
    EventByte::SAMPLE_HIT,
]));
/// Bytes per rare event. A buffer with more rare events is read whole, so that the positions need little memory.
const BYTES_PER_RARE_EVENT: u64 = 512;
/// Stands for a buffer with too many rare events.
const TOO_MANY: u32 = u32::MAX;

/// Whether all of these kinds are rare.
#[must_use]
pub fn are_rare(kinds: KindSet) -> bool {
    kinds.without(RARE_KINDS) == KindSet::default()
}

/// Position of an event.
#[derive(Clone, Copy, Debug)]
pub struct EventPosition {
    /// Kind of the event.
    pub byte: EventByte,
    /// State of the decoder before the event.
    pub state: DecoderState,
}

/// Positions of the rare events of a log, by buffer.
#[derive(Debug, Default)]
pub struct RareEvents {
    list: Vec<EventPosition>,
    /// Number of positions of each buffer, or [`TOO_MANY`].
    num_in_buffer: Vec<u32>,
    /// Index in `list` of the first position of each buffer.
    starts: Vec<usize>,
    /// Index in `list` of the first position of the current buffer, and its maximum number of positions.
    start: usize,
    max_in_buffer: usize,
}

impl RareEvents {
    /// Starts a buffer.
    pub(super) fn begin_buffer(&mut self, buffer_bytes: u64) {
        self.start = self.list.len();
        self.max_in_buffer = (buffer_bytes / BYTES_PER_RARE_EVENT) as usize;
    }

    /// Adds the position of an event if its kind is rare.
    #[inline]
    pub(super) fn add(&mut self, byte: EventByte, state: DecoderState) {
        // One more than the maximum is stored, to mark the excess.
        if RARE_KINDS.has(byte) && self.list.len().saturating_sub(self.start) <= self.max_in_buffer {
            self.list.push(EventPosition { byte, state });
        }
    }

    /// Completes the current buffer.
    pub(super) fn end_buffer(&mut self) {
        let num = self.list.len().saturating_sub(self.start);
        if num > self.max_in_buffer {
            self.list.truncate(self.start);
        }
        self.num_in_buffer.push(if num > self.max_in_buffer { TOO_MANY } else { num as u32 });
    }

    /// Adds the positions of the following buffers.
    pub(super) fn append(&mut self, other: Self) {
        self.list.extend(other.list);
        self.num_in_buffer.extend(other.num_in_buffer);
    }

    /// Computes `starts` after all buffers were added.
    pub(super) fn finish(&mut self) {
        let running = self.num_in_buffer.iter().scan(0usize, |next, num| {
            let start = *next;
            *next = next.saturating_add(if *num == TOO_MANY { 0 } else { *num as usize });
            Some(start)
        });
        self.starts = running.collect();
    }

    /// Positions of the rare events of a buffer; `None` if it has too many.
    #[must_use]
    pub fn in_buffer(&self, buffer: usize) -> Option<&[EventPosition]> {
        let (start, num) = (*self.starts.get(buffer)?, *self.num_in_buffer.get(buffer)?);
        let end = start.checked_add(num as usize).filter(|_| num != TOO_MANY)?;
        self.list.get(start..end)
    }
}
