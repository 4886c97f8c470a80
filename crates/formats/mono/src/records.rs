//! Events: what one is, and in [`shape`] how each lies in the file, for reading, writing and describing alike.

mod body;
mod family;
pub mod shape;

pub use body::{
    Body, CounterDescription, CounterValue, Coverage, HeapObject, HeapRoot, Metadata, Reference, Root,
    SampleFrame, Value,
};

use super::consts::EventByte;

/// An event, whole. One is filled again and again, so that reading allocates nothing for each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Event<'a> {
    /// Absolute offset of its first byte.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// What it is.
    pub byte: EventByte,
    /// When, on the events' clock in ns; `None` for those whose data version gives them none.
    pub time: Option<u64>,
    /// The `flags` of data versions 1 to 12, of a name or a backtrace: 0.
    pub flags: u64,
    /// Its fields.
    pub body: Body<'a>,
    /// Methods of a backtrace, outermost first; of a sample's managed stack, innermost first.
    pub frames: Vec<u64>,
    /// Where in them, samples of data versions 6 to 12: IL and native offset.
    pub places: Vec<SampleFrame>,
    /// Addresses: moved objects (old, new, old, new and on); instruction pointers of a sample, innermost first.
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
    /// Makes it an empty event of a kind; `false` for a kind no data version has.
    #[inline]
    pub fn begin(&mut self, byte: EventByte) -> bool {
        self.byte = byte;
        self.time = None;
        self.flags = 0;
        self.frames.clear();
        self.places.clear();
        self.addresses.clear();
        self.references.clear();
        self.roots.clear();
        self.descriptions.clear();
        self.values.clear();
        self.body = Body::blank(byte);
        self.body != Body::None
    }

    /// Whether a backtrace belongs to it.
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

/// A size that was written as a C `int`: from 2 GiB on it came out sign-extended.
#[must_use]
#[inline]
pub fn int_size(size: u64) -> u64 {
    if size >> 31 == (1 << 33) - 1 { size & 0xffff_ffff } else { size }
}
