//! The fields of each event, by the names of the specification.

use crate::consts::EventByte;

/// The fields of an event; lists are in the [`Event`](super::Event) itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Body<'a> {
    /// Nothing that is known.
    #[default]
    None,
    /// An object was allocated.
    Alloc {
        /// Its class; since data version 15 its vtable.
        class: u64,
        /// Its address.
        object: u64,
        /// Its size in bytes, as stored.
        size: u64,
    },
    /// A phase of a collection.
    GcEvent {
        /// Which, see [`gc`](crate::consts::gc).
        event: u64,
        /// 0 the nursery, 1 all.
        generation: u64,
    },
    /// The heap grew or shrank.
    GcResize {
        /// Its size in bytes.
        size: u64,
    },
    /// Objects were moved: [`addresses`](super::Event::addresses).
    GcMove,
    /// A handle was made.
    HandleCreated {
        /// Its type.
        kind: u64,
        /// Its number.
        handle: u64,
        /// Object it holds.
        object: u64,
    },
    /// A handle was given back.
    HandleDestroyed {
        /// Its type.
        kind: u64,
        /// Its number.
        handle: u64,
    },
    /// The finalizer thread begins or ends a round.
    Finalize,
    /// A finalizer begins or ends.
    FinalizeObject {
        /// Object it is of.
        object: u64,
    },
    /// Something of the program was loaded, unloaded or named.
    Metadata(Metadata<'a>),
    /// A method is entered or left.
    Call {
        /// Method.
        method: u64,
    },
    /// A method was compiled.
    Jit {
        /// Method.
        method: u64,
        /// Address of its code; 0 and all ones where it has none.
        code: u64,
        /// Size of its code, as stored.
        size: u64,
        /// Its full name.
        name: &'a [u8],
    },
    /// An exception was thrown.
    Throw {
        /// The exception.
        object: u64,
    },
    /// A handler of an exception runs.
    Clause {
        /// 0 catch, 1 filter, 2 finally, 4 fault.
        kind: u64,
        /// Number of the clause in its method.
        index: u64,
        /// Method.
        method: u64,
        /// The exception; since data version 14.
        object: u64,
    },
    /// A lock was waited for, taken or given up.
    Monitor {
        /// Which, see [`monitor`](crate::consts::monitor).
        event: u64,
        /// Object that is locked.
        object: u64,
    },
    /// A heap shot begins or ends.
    HeapMark,
    /// An object that is alive, or more references of it.
    HeapObject(HeapObject),
    /// Roots of living objects: [`roots`](super::Event::roots).
    HeapRoot(HeapRoot),
    /// Memory that holds roots was registered.
    RootRegister {
        /// Its first address.
        start: u64,
        /// Its size in bytes.
        size: u64,
        /// Where it comes from.
        source: u64,
        /// Whose it is: a vtable for statics, a thread for stacks, a domain.
        key: u64,
        /// What it is, in words.
        name: &'a [u8],
    },
    /// Memory that held roots was given back.
    RootUnregister {
        /// Its first address.
        start: u64,
    },
    /// A sample of what runs: [`addresses`](super::Event::addresses) and [`frames`](super::Event::frames).
    SampleHit {
        /// What is sampled: 1 cycles to 6 branch misses; 0 where it is not said.
        kind: u64,
        /// Its time, before data version 13: absolute, in ns.
        stamp: u64,
        /// Thread; since data version 11.
        thread: u64,
    },
    /// A native symbol that samples hit.
    SampleUsym {
        /// Its address.
        address: u64,
        /// Its size; 0 unknown.
        size: u64,
        /// Its name.
        name: &'a [u8],
    },
    /// A native binary that is mapped.
    SampleUbin {
        /// Address it is mapped at.
        address: u64,
        /// Offset in the file.
        offset: u64,
        /// Size in bytes.
        size: u64,
        /// Its path.
        name: &'a [u8],
    },
    /// Counters that will be told: [`descriptions`](super::Event::descriptions).
    CountersDesc,
    /// Values of counters: [`values`](super::Event::values).
    Counters {
        /// Before data version 13: when, in ms since the first.
        ms: u64,
    },
    /// Code the runtime made for itself.
    JitHelper {
        /// What it is for.
        kind: u64,
        /// Its address.
        code: u64,
        /// Its size in bytes.
        size: u64,
        /// Its name, where it is a specific trampoline.
        name: &'a [u8],
    },
    /// What was executed.
    Coverage(Coverage<'a>),
    /// All buffers before this one hold events before this one.
    SyncPoint {
        /// 0 periodic, 1 world stopped, 2 world started.
        kind: u64,
    },
    /// Identity of the ahead-of-time compiled code that may be loaded.
    AotId {
        /// The id.
        id: &'a [u8],
    },
}

/// METADATA.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metadata<'a> {
    /// What kind of thing, see [`metadata`](crate::consts::metadata).
    pub mtype: u64,
    /// Its address, or id.
    pub pointer: u64,
    /// Class and assembly: its image.
    pub image: u64,
    /// Context and vtable: its domain.
    pub domain: u64,
    /// Vtable: its class.
    pub class: u64,
    /// Its name, or file.
    pub name: &'a [u8],
    /// Image: its module version id.
    pub mvid: &'a [u8],
}

/// HEAP_OBJECT.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeapObject {
    /// Its address.
    pub object: u64,
    /// Its class; since data version 15 its vtable.
    pub class: u64,
    /// Its size in bytes; 0 where the record goes on with the references of the one before.
    pub size: u64,
    /// Its generation; since profiler 3.
    pub generation: u64,
}

/// HEAP_ROOT.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HeapRoot {
    /// Major collections so far; until data version 14.
    pub collections: u64,
}

/// A reference of a heap object.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reference {
    /// Where in the object the reference lies, in bytes; since data version 2.
    pub offset: u64,
    /// Object referred to.
    pub target: u64,
}

/// A root.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Root {
    /// Address of the root itself; since data version 15.
    pub slot: u64,
    /// Object it holds.
    pub object: u64,
    /// Its kind, until data version 14.
    pub kind: u64,
    /// More about it, until data version 14.
    pub extra: u64,
}

/// Where in a sampled method, data versions 6 to 12.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SampleFrame {
    /// Offset in its IL; -1 unknown.
    pub il_offset: i64,
    /// Offset in its machine code.
    pub native_offset: i64,
}

/// A description of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterDescription<'a> {
    /// Section it is of.
    pub section: u64,
    /// Category, of performance counters.
    pub category: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Type of its values.
    pub kind: u64,
    /// Unit, in bits 24 to 27; 0 in data versions 13 and 14.
    pub unit: u64,
    /// Variance, in bits 28 to 30; 0 in data versions 13 and 14.
    pub variance: u64,
    /// Its number, from 1.
    pub index: u64,
}

/// A value of a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterValue<'a> {
    /// Number of the counter.
    pub index: u64,
    /// Type of the value.
    pub kind: u64,
    /// The value as stored: whole numbers are differences to the one before.
    pub value: Value<'a>,
}

/// A value of a counter, as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Value<'a> {
    /// Null, and nothing that is known.
    #[default]
    Null,
    /// A signed difference.
    Signed(i64),
    /// An unsigned difference.
    Unsigned(u64),
    /// A double, as its bits.
    Double(u64),
    /// A text.
    Text(&'a [u8]),
}

/// COVERAGE: texts and numbers, in the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage<'a> {
    /// Texts; those an event does not have are empty.
    pub texts: [&'a [u8]; 5],
    /// Numbers; those an event does not have are 0.
    pub numbers: [u64; 5],
}

impl Body<'_> {
    /// An empty body of a kind; `None` for a kind no data version has.
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
            EventByte::METADATA_NAME | EventByte::METADATA_END_LOAD | EventByte::METADATA_END_UNLOAD => {
                Self::Metadata(Metadata::default())
            }
            EventByte::METHOD_JIT => Self::Jit { method: 0, code: 0, size: 0, name: b"" },
            EventByte::THROW | EventByte::THROW_BT => Self::Throw { object: 0 },
            EventByte::CLAUSE => Self::Clause { kind: 0, index: 0, method: 0, object: 0 },
            EventByte::MONITOR
            | EventByte::MONITOR_BT
            | EventByte::MONITOR_CONTENTION
            | EventByte::MONITOR_DONE
            | EventByte::MONITOR_FAIL
            | EventByte::MONITOR_CONTENTION_BT => Self::Monitor { event: 0, object: 0 },
            EventByte::HEAP_START | EventByte::HEAP_END => Self::HeapMark,
            EventByte::HEAP_ROOT => Self::HeapRoot(HeapRoot::default()),
            EventByte::HEAP_ROOT_REGISTER => {
                Self::RootRegister { start: 0, size: 0, source: 0, key: 0, name: b"" }
            }
            EventByte::HEAP_ROOT_UNREGISTER => Self::RootUnregister { start: 0 },
            EventByte::SAMPLE_HIT => Self::SampleHit { kind: 0, stamp: 0, thread: 0 },
            EventByte::SAMPLE_USYM => Self::SampleUsym { address: 0, size: 0, name: b"" },
            EventByte::SAMPLE_UBIN => Self::SampleUbin { address: 0, offset: 0, size: 0, name: b"" },
            EventByte::COUNTERS_DESC => Self::CountersDesc,
            EventByte::COUNTERS => Self::Counters { ms: 0 },
            EventByte::JITHELPER => Self::JitHelper { kind: 0, code: 0, size: 0, name: b"" },
            EventByte::COVERAGE_ASSEMBLY
            | EventByte::COVERAGE_METHOD
            | EventByte::COVERAGE_STATEMENT
            | EventByte::COVERAGE_CLASS => Self::Coverage(Coverage::default()),
            EventByte::SYNC_POINT => Self::SyncPoint { kind: 0 },
            EventByte::AOT_ID => Self::AotId { id: b"" },
            _ => Self::None,
        }
    }
}
