//! Where rare events are: a table of a few events of a log of millions reads those alone.

use crate::consts::{EventByte, KindSet};
use crate::decode::State;

/// Kinds that are marked: not those that logs are full of.
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
/// Where there are more, a buffer is read whole: marks stay small beside the file.
const BYTES_A_MARK: u64 = 512;
/// Events of a buffer that was marked in part.
const TOO_MANY: u32 = u32::MAX;

/// Whether all of these kinds are marked.
#[must_use]
pub fn are_marked(kinds: KindSet) -> bool {
    kinds.without(MARKED) == KindSet::default()
}

/// Where an event is.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// What it is.
    pub byte: EventByte,
    /// Where it begins.
    pub state: State,
}

/// The rare events of a log, by buffer.
#[derive(Debug, Default)]
pub struct Marks {
    list: Vec<Mark>,
    /// How many are of each buffer, or [`TOO_MANY`].
    lengths: Vec<u32>,
    /// Where those of each buffer begin in `list`.
    starts: Vec<usize>,
    /// Where those of the buffer that is read begin, and how many it may have.
    start: usize,
    most: usize,
}

impl Marks {
    pub(super) fn begin(&mut self, buffer_bytes: u64) {
        self.start = self.list.len();
        self.most = (buffer_bytes / BYTES_A_MARK) as usize;
    }

    #[inline]
    pub(super) fn add(&mut self, byte: EventByte, state: State) {
        // One more than there may be, as the sign of that.
        if MARKED.has(byte) && self.list.len().saturating_sub(self.start) <= self.most {
            self.list.push(Mark { byte, state });
        }
    }

    pub(super) fn end(&mut self) {
        let length = self.list.len().saturating_sub(self.start);
        if length > self.most {
            self.list.truncate(self.start);
        }
        self.lengths.push(if length > self.most { TOO_MANY } else { length as u32 });
    }

    pub(super) fn append(&mut self, other: Self) {
        self.list.extend(other.list);
        self.lengths.extend(other.lengths);
    }

    pub(super) fn finish(&mut self) {
        let running = self.lengths.iter().scan(0usize, |next, length| {
            let start = *next;
            *next = next.saturating_add(if *length == TOO_MANY { 0 } else { *length as usize });
            Some(start)
        });
        self.starts = running.collect();
    }

    /// The rare events of a buffer; `None` where it has too many.
    #[must_use]
    pub fn of(&self, buffer: usize) -> Option<&[Mark]> {
        let (start, length) = (*self.starts.get(buffer)?, *self.lengths.get(buffer)?);
        let end = start.checked_add(length as usize).filter(|_| length != TOO_MANY)?;
        self.list.get(start..end)
    }
}
