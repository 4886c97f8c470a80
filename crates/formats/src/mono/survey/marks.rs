//! Where the events are that logs have few of, so that who needs only those need not walk over all others again.

use crate::mono::consts::{EventByte, KindSet};
use crate::mono::decode::State;
use crate::mono::reader::Buffer;

/// Events that logs can consist of almost whole: they are never marked.
const COMMON: KindSet = KindSet::of(&[
    EventByte::ALLOC,
    EventByte::ALLOC_BT,
    EventByte::METHOD_ENTER,
    EventByte::METHOD_LEAVE,
    EventByte::METHOD_EXC_LEAVE,
    EventByte::HEAP_OBJECT,
]);
/// Bytes of a buffer for each of its marks, at least: where events lie closer, walking over them costs less than marks do.
const BYTES_A_MARK: u64 = 256;

/// An event, and what those before it have left behind for it.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// What it is.
    pub byte: EventByte,
    /// Where reading stands before it.
    pub state: State,
}

/// The marks of a buffer; `None` where it has to be walked over.
pub type Marks = Option<Box<[Mark]>>;

/// Marks the events of one buffer after the other.
#[derive(Debug, Default)]
pub(super) struct Marker {
    marks: Vec<Mark>,
    most: usize,
    is_given_up: bool,
}

impl Marker {
    pub(super) fn begin(&mut self, buffer: &Buffer) {
        self.marks.clear();
        self.most = (buffer.len / BYTES_A_MARK) as usize;
        self.is_given_up = false;
    }

    /// Takes an event that is not common; `state` is `None` where it cannot be read by itself.
    #[inline]
    pub(super) fn note(&mut self, byte: EventByte, state: Option<State>) {
        if COMMON.has(byte) || self.is_given_up {
            return;
        }
        match state.filter(|_| self.marks.len() < self.most) {
            Some(state) => self.marks.push(Mark { byte, state }),
            None => self.is_given_up = true,
        }
    }

    pub(super) fn end(&mut self) -> Marks {
        (!self.is_given_up).then(|| self.marks.as_slice().into())
    }
}

/// Whether all events of these kinds are marked, where a buffer has marks.
pub fn cover(kinds: KindSet) -> bool {
    !kinds.meets(COMMON)
}
