//! Events in memory. [`shape`] describes how each is encoded, for reading, writing and describing.

mod body;
mod family;
pub mod shape;

pub use body::{
    CounterDescription, CounterValue, Coverage, EventBody, FramePosition, HeapObject, HeapRoot, Metadata,
    Reference, Root, Value,
};

use super::consts::EventByte;

/// An event. One value is reused for all events, so that decoding allocates nothing per event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    /// File offset of its first byte.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// Its kind.
    pub byte: EventByte,
    /// Time in nanoseconds on the clock of the events; `None` if the data version stores none for this event.
    pub time: Option<u64>,
    /// The `flags` of names and backtraces in data versions 1 to 12: always 0.
    pub flags: u64,
    /// Its fields.
    pub body: EventBody<'a>,
    /// Methods of a backtrace, outermost first, or of the managed stack of a sample, innermost first.
    pub frames: Vec<u64>,
    /// Position in each frame, for samples of data versions 6 to 12.
    pub frame_positions: Vec<FramePosition>,
    /// Addresses: of moved objects (old and new in turn), or instruction pointers of a sample, innermost first.
    pub addresses: Vec<u64>,
    /// References of a heap object.
    pub references: Vec<Reference>,
    /// Roots.
    pub roots: Vec<Root>,
    /// Descriptions of counters.
    pub descriptions: Vec<CounterDescription<'a>>,
    /// Values of counters.
    pub values: Vec<CounterValue<'a>>,
}

impl Event<'_> {
    /// Resets the event to an empty one of a kind; returns `false` if no data version has that kind.
    #[inline]
    pub fn begin(&mut self, byte: EventByte) -> bool {
        self.byte = byte;
        self.time = None;
        self.flags = 0;
        self.frames.clear();
        self.frame_positions.clear();
        self.addresses.clear();
        self.references.clear();
        self.roots.clear();
        self.descriptions.clear();
        self.values.clear();
        self.body = EventBody::blank(byte);
        self.body != EventBody::None
    }

    /// Whether the event has a backtrace.
    #[must_use]
    #[inline]
    pub fn has_backtrace(&self) -> bool {
        matches!(
            self.byte,
            EventByte::ALLOC_BT
                | EventByte::GC_HANDLE_CREATED_BT
                | EventByte::GC_HANDLE_DESTROYED_BT
                | EventByte::THROW_BT
                | EventByte::MONITOR_BT
                | EventByte::MONITOR_CONTENTION_BT
        )
    }
}

/// Corrects a size that was stored as a C `int`: sizes of 2 GiB and more are sign-extended.
#[must_use]
#[inline]
pub fn int_size(size: u64) -> u64 {
    if size >> 31 == (1 << 33) - 1 { size & 0xffff_ffff } else { size }
}
