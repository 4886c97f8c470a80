//! Positions of rare events, so that a table of rare events reads only those.

use crate::consts::{EventByte, KindSet};
use crate::decode::State;

/// Rare kinds of events: those that never make up most of a log.
const MARKED: KindSet = KindSet::all().without(KindSet::of(&[
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
const BYTES_A_MARK: u64 = 512;
/// Stands for a buffer with too many rare events.
const TOO_MANY: u32 = u32::MAX;

/// Whether all of these kinds are rare.
#[must_use]
pub fn are_marked(kinds: KindSet) -> bool {
    kinds.without(MARKED) == KindSet::default()
}

/// Position of an event.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Kind of the event.
    pub byte: EventByte,
    /// State of the decoder before the event.
    pub state: State,
}

/// Positions of the rare events of a log, by buffer.
#[derive(Debug, Default)]
pub struct Marks {
    list: Vec<Mark>,
    /// Number of positions of each buffer, or [`TOO_MANY`].
    lengths: Vec<u32>,
    /// Index in `list` of the first position of each buffer.
    starts: Vec<usize>,
    /// Index in `list` of the first position of the current buffer, and its maximum number of positions.
    start: usize,
    most: usize,
}

impl Marks {
    /// Starts a buffer.
    pub(super) fn begin(&mut self, buffer_bytes: u64) {
        self.start = self.list.len();
        self.most = (buffer_bytes / BYTES_A_MARK) as usize;
    }

    /// Adds the position of an event if its kind is rare.
    #[inline]
    pub(super) fn add(&mut self, byte: EventByte, state: State) {
        // One more than the maximum is stored, to mark the excess.
        if MARKED.has(byte) && self.list.len().saturating_sub(self.start) <= self.most {
            self.list.push(Mark { byte, state });
        }
    }

    /// Completes the current buffer.
    pub(super) fn end(&mut self) {
        let length = self.list.len().saturating_sub(self.start);
        if length > self.most {
            self.list.truncate(self.start);
        }
        self.lengths.push(if length > self.most { TOO_MANY } else { length as u32 });
    }

    /// Adds the positions of the following buffers.
    pub(super) fn append(&mut self, other: Self) {
        self.list.extend(other.list);
        self.lengths.extend(other.lengths);
    }

    /// Computes `starts` after all buffers were added.
    pub(super) fn finish(&mut self) {
        let running = self.lengths.iter().scan(0usize, |next, length| {
            let start = *next;
            *next = next.saturating_add(if *length == TOO_MANY { 0 } else { *length as usize });
            Some(start)
        });
        self.starts = running.collect();
    }

    /// Positions of the rare events of a buffer; `None` if it has too many.
    #[must_use]
    pub fn of(&self, buffer: usize) -> Option<&[Mark]> {
        let (start, length) = (*self.starts.get(buffer)?, *self.lengths.get(buffer)?);
        let end = start.checked_add(length as usize).filter(|_| length != TOO_MANY)?;
        self.list.get(start..end)
    }
}
