//! Events in memory. [`fields`](crate::fields) describes how each is encoded, for reading, writing and describing.

use crate::consts::EventByte;

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
    pub roots: Vec<HeapRootEntry>,
    /// Descriptions of counters.
    pub descriptions: Vec<CounterDescription<'a>>,
    /// Values of counters.
    pub values: Vec<CounterEntry<'a>>,
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

/// The fields of an event; lists are in [`Event`](Event).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum EventBody<'a> {
    /// An unknown event.
    #[default]
    None,
    /// The allocation of an object.
    Alloc {
        /// Class; since data version 15, vtable.
        class: u64,
        /// Address of the object.
        object: u64,
        /// Size in bytes, as stored.
        size: u64,
    },
    /// A phase of a collection.
    GcEvent {
        /// The phase, see [`gc`](crate::consts::gc).
        event: u64,
        /// 0 nursery, 1 major.
        generation: u64,
    },
    /// A change of the heap size.
    GcResize {
        /// New size in bytes.
        size: u64,
    },
    /// Moved objects, in [`addresses`](Event::addresses).
    GcMove,
    /// The creation of a GC handle.
    HandleCreated {
        /// Type of the handle.
        kind: u64,
        /// Number of the handle.
        handle: u64,
        /// Object it refers to.
        object: u64,
    },
    /// The destruction of a GC handle.
    HandleDestroyed {
        /// Type of the handle.
        kind: u64,
        /// Number of the handle.
        handle: u64,
    },
    /// The start or end of a round of the finalizer thread.
    Finalize,
    /// The start or end of a finalizer.
    FinalizeObject {
        /// The object that is finalized.
        object: u64,
    },
    /// The load, unload or name of a part of the program.
    Metadata(Metadata<'a>),
    /// An enter or leave of a method.
    Call {
        /// The method.
        method: u64,
    },
    /// The compilation of a method.
    Jit {
        /// The method.
        method: u64,
        /// Address of its code; 0 or all ones if it has none of its own.
        code: u64,
        /// Size of its code in bytes, as stored.
        size: u64,
        /// Its full name.
        name: &'a [u8],
    },
    /// The throw of an exception.
    Throw {
        /// The exception object.
        object: u64,
    },
    /// The run of an exception clause.
    Clause {
        /// 0 catch, 1 filter, 2 finally, 4 fault.
        kind: u64,
        /// Index of the clause in its method.
        index: u64,
        /// The method.
        method: u64,
        /// The exception object; since data version 14.
        object: u64,
    },
    /// A lock event.
    Monitor {
        /// Its kind, see [`monitor`](crate::consts::monitor).
        event: u64,
        /// The locked object.
        object: u64,
    },
    /// The start or end of a heapshot.
    HeapshotBoundary,
    /// A live object, or more references of one.
    HeapObject(HeapObject),
    /// Roots of live objects, in [`roots`](Event::roots).
    HeapRoot(HeapRoot),
    /// The registration of memory that contains roots.
    RootRegister {
        /// Its first address.
        start: u64,
        /// Its size in bytes.
        size: u64,
        /// Its source, see [`root_source_name`](crate::consts::root_source_name).
        source: u64,
        /// Its owner: a vtable for statics, a thread for stacks, a domain.
        key: u64,
        /// Description in words.
        name: &'a [u8],
    },
    /// The end of the registration of memory that contains roots.
    RootUnregister {
        /// Its first address.
        start: u64,
    },
    /// A sample of a thread, with [`addresses`](Event::addresses) and [`frames`](Event::frames).
    SampleHit {
        /// The sampled event: 1 cycles to 6 branch misses; 0 if not stored.
        kind: u64,
        /// Its time before data version 13: absolute, in nanoseconds.
        timestamp: u64,
        /// The sampled thread; since data version 11.
        thread: u64,
    },
    /// A native symbol that contains sampled addresses.
    SampleUsym {
        /// Address of the symbol.
        address: u64,
        /// Its size in bytes; 0 if unknown.
        size: u64,
        /// Its name.
        name: &'a [u8],
    },
    /// A mapped native binary.
    SampleUbin {
        /// Address of the mapping.
        address: u64,
        /// Offset in the file.
        offset: u64,
        /// Size in bytes.
        size: u64,
        /// Its path.
        name: &'a [u8],
    },
    /// Descriptions of counters, in [`descriptions`](Event::descriptions).
    CountersDesc,
    /// Values of counters, in [`values`](Event::values).
    Counters {
        /// Before data version 13: time in milliseconds since the first values.
        ms: u64,
    },
    /// Code that the runtime generated for itself.
    JitHelper {
        /// Its purpose, see [`helper_name`](crate::consts::helper_name).
        kind: u64,
        /// Its address.
        code: u64,
        /// Its size in bytes.
        size: u64,
        /// Its name, for a specific trampoline.
        name: &'a [u8],
    },
    /// Coverage of an assembly, class, method or statement.
    Coverage(CoverageFields<'a>),
    /// A synchronization point: all events of earlier buffers are earlier.
    SyncPoint {
        /// 0 periodic, 1 world stopped, 2 world started.
        kind: u64,
    },
    /// The id of the ahead-of-time compiled code.
    AotId {
        /// The id.
        id: &'a [u8],
    },
}

/// The fields of METADATA events.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metadata<'a> {
    /// Kind of the subject, see [`metadata`](crate::consts::metadata).
    pub mtype: u64,
    /// Address or id of the subject.
    pub pointer: u64,
    /// For a class or assembly: its image.
    pub image: u64,
    /// For a context or vtable: its domain.
    pub domain: u64,
    /// For a vtable: its class.
    pub class: u64,
    /// Name, or file of an image.
    pub name: &'a [u8],
    /// For an image: its module version id.
    pub mvid: &'a [u8],
}

/// The fields of a HEAP_OBJECT event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeapObject {
    /// Address of the object.
    pub object: u64,
    /// Class; since data version 15, vtable.
    pub class: u64,
    /// Size in bytes; 0 if the record continues the references of the previous object.
    pub size: u64,
    /// Generation; since profiler 3.
    pub generation: u64,
}

/// The fields of a HEAP_ROOT event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeapRoot {
    /// Number of major collections so far; until data version 14.
    pub collections: u64,
}

/// A reference of a heap object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reference {
    /// Offset of the reference in the object, in bytes; since data version 2.
    pub offset: u64,
    /// The object it refers to.
    pub target: u64,
}

/// A root of a live object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeapRootEntry {
    /// Address of the root itself; since data version 15.
    pub slot: u64,
    /// The object it refers to.
    pub object: u64,
    /// Its kind and flags; until data version 14.
    pub kind: u64,
    /// Additional information; until data version 14.
    pub extra: u64,
}

/// Position in a frame of a sample; data versions 6 to 12.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FramePosition {
    /// IL offset in the method; -1 if unknown.
    pub il_offset: i64,
    /// Offset in the machine code of the method.
    pub native_offset: i64,
}

/// A description of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterDescription<'a> {
    /// Its section.
    pub section: u64,
    /// Category of a performance counter.
    pub category: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Type of its values.
    pub kind: u64,
    /// Unit, in bits 24 to 27; 0 in data versions 13 and 14.
    pub unit: u64,
    /// Variance, in bits 28 to 30; 0 in data versions 13 and 14.
    pub variance: u64,
    /// Its index, starting at 1.
    pub index: u64,
}

/// A value of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterEntry<'a> {
    /// Index of the counter.
    pub index: u64,
    /// Type of the value.
    pub kind: u64,
    /// The value as stored: integers are differences to the previous value.
    pub value: CounterPayload<'a>,
}

/// A stored value of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum CounterPayload<'a> {
    /// Null, or an unknown value.
    #[default]
    Null,
    /// A signed difference.
    Signed(i64),
    /// An unsigned difference.
    Unsigned(u64),
    /// The bits of a double.
    Double(u64),
    /// A text.
    Text(&'a [u8]),
}

/// The texts and numbers of a coverage event, in file order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CoverageFields<'a> {
    /// Texts; unused ones are empty.
    pub texts: [&'a [u8]; 5],
    /// Numbers; unused ones are 0.
    pub numbers: [u64; 5],
}

impl EventBody<'_> {
    /// An empty body of a kind; `None` if no data version has that kind.
    #[must_use]
    #[inline]
    pub(super) fn blank(byte: EventByte) -> Self {
        match byte {
            EventByte::ALLOC | EventByte::ALLOC_BT => Self::Alloc { class: 0, object: 0, size: 0 },
            EventByte::METHOD_ENTER | EventByte::METHOD_LEAVE | EventByte::METHOD_EXC_LEAVE => {
                Self::Call { method: 0 }
            }
            EventByte::HEAP_OBJECT => Self::HeapObject(HeapObject::default()),
            EventByte::GC_EVENT => Self::GcEvent { event: 0, generation: 0 },
            EventByte::GC_RESIZE => Self::GcResize { size: 0 },
            EventByte::GC_MOVE => Self::GcMove,
            EventByte::GC_HANDLE_CREATED | EventByte::GC_HANDLE_CREATED_BT => {
                Self::HandleCreated { kind: 0, handle: 0, object: 0 }
            }
            EventByte::GC_HANDLE_DESTROYED | EventByte::GC_HANDLE_DESTROYED_BT => {
                Self::HandleDestroyed { kind: 0, handle: 0 }
            }
            EventByte::GC_FINALIZE_START | EventByte::GC_FINALIZE_END => Self::Finalize,
            EventByte::GC_FINALIZE_OBJECT_START | EventByte::GC_FINALIZE_OBJECT_END => {
                Self::FinalizeObject { object: 0 }
            }
            EventByte::METADATA_NAME
            | EventByte::METADATA_END_LOAD
            | EventByte::METADATA_END_UNLOAD
            | EventByte::METADATA_LOAD_ERR => Self::Metadata(Metadata::default()),
            EventByte::METHOD_JIT => Self::Jit { method: 0, code: 0, size: 0, name: b"" },
            EventByte::THROW | EventByte::THROW_BT => Self::Throw { object: 0 },
            EventByte::CLAUSE => Self::Clause { kind: 0, index: 0, method: 0, object: 0 },
            EventByte::MONITOR
            | EventByte::MONITOR_BT
            | EventByte::MONITOR_CONTENTION
            | EventByte::MONITOR_DONE
            | EventByte::MONITOR_FAIL
            | EventByte::MONITOR_CONTENTION_BT => Self::Monitor { event: 0, object: 0 },
            EventByte::HEAP_START | EventByte::HEAP_END => Self::HeapshotBoundary,
            EventByte::HEAP_ROOT => Self::HeapRoot(HeapRoot::default()),
            EventByte::HEAP_ROOT_REGISTER => {
                Self::RootRegister { start: 0, size: 0, source: 0, key: 0, name: b"" }
            }
            EventByte::HEAP_ROOT_UNREGISTER => Self::RootUnregister { start: 0 },
            EventByte::SAMPLE_HIT => Self::SampleHit { kind: 0, timestamp: 0, thread: 0 },
            EventByte::SAMPLE_USYM => Self::SampleUsym { address: 0, size: 0, name: b"" },
            EventByte::SAMPLE_UBIN => Self::SampleUbin { address: 0, offset: 0, size: 0, name: b"" },
            EventByte::COUNTERS_DESC => Self::CountersDesc,
            EventByte::COUNTERS => Self::Counters { ms: 0 },
            EventByte::JITHELPER => Self::JitHelper { kind: 0, code: 0, size: 0, name: b"" },
            EventByte::COVERAGE_ASSEMBLY
            | EventByte::COVERAGE_METHOD
            | EventByte::COVERAGE_STATEMENT
            | EventByte::COVERAGE_CLASS => Self::Coverage(CoverageFields::default()),
            EventByte::SYNC_POINT => Self::SyncPoint { kind: 0 },
            EventByte::AOT_ID => Self::AotId { id: b"" },
            _ => Self::None,
        }
    }
}
