//! Constants of the log profiler: `proflog.h` of 2010, `log.h` since.

use std::fmt;

/// The first four bytes of a file, little-endian: `01 5A 50 4D`.
pub const HEADER_ID: u32 = 0x4D50_5A01;

/// The first four bytes of a buffer: `01 4C 50 4D`.
pub const BUF_ID: u32 = 0x4D50_4C01;

/// The newest data version.
pub const NEWEST: u8 = 17;

/// The first byte of an event: the type in the low four bits, what the specification calls extended info in the high
/// four.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct EventByte(pub u8);

macro_rules! event_bytes {
    ($($name:ident = $value:literal, $text:literal;)+) => {
        impl EventByte {
            $(#[doc = concat!("`", $text, "`")] pub const $name: Self = Self($value);)+

            /// Every event byte that any data version defines.
            pub const ALL: &'static [Self] = &[$(Self($value)),+];

            /// Its bit in a [`KindSet`]; 0 for an undefined byte.
            #[must_use]
            pub(super) const fn bit(self) -> u64 {
                let mut at = 0u32;
                $(
                    if self.0 == $value {
                        return 1u64.wrapping_shl(at);
                    }
                    at = at.wrapping_add(1);
                )+
                let _ = at;
                0
            }

            /// The name in the specification, `None` for an undefined byte.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)+
                    _ => None,
                }
            }
        }
    };
}

event_bytes! {
    ALLOC = 0x00, "ALLOC";
    ALLOC_BT = 0x10, "ALLOC_BT";
    GC_EVENT = 0x11, "GC_EVENT";
    GC_RESIZE = 0x21, "GC_RESIZE";
    GC_MOVE = 0x31, "GC_MOVE";
    GC_HANDLE_CREATED = 0x41, "GC_HANDLE_CREATED";
    GC_HANDLE_DESTROYED = 0x51, "GC_HANDLE_DESTROYED";
    GC_HANDLE_CREATED_BT = 0x61, "GC_HANDLE_CREATED_BT";
    GC_HANDLE_DESTROYED_BT = 0x71, "GC_HANDLE_DESTROYED_BT";
    GC_FINALIZE_START = 0x81, "GC_FINALIZE_START";
    GC_FINALIZE_END = 0x91, "GC_FINALIZE_END";
    GC_FINALIZE_OBJECT_START = 0xa1, "GC_FINALIZE_OBJECT_START";
    GC_FINALIZE_OBJECT_END = 0xb1, "GC_FINALIZE_OBJECT_END";
    METADATA_NAME = 0x02, "METADATA_name";
    METADATA_END_LOAD = 0x22, "METADATA_END_LOAD";
    METADATA_END_UNLOAD = 0x42, "METADATA_END_UNLOAD";
    METADATA_LOAD_ERR = 0xa2, "METADATA_LOAD_ERR";
    METHOD_LEAVE = 0x13, "METHOD_LEAVE";
    METHOD_ENTER = 0x23, "METHOD_ENTER";
    METHOD_EXC_LEAVE = 0x33, "METHOD_EXC_LEAVE";
    METHOD_JIT = 0x43, "METHOD_JIT";
    THROW = 0x04, "THROW";
    THROW_BT = 0x84, "THROW_BT";
    CLAUSE = 0x14, "CLAUSE";
    MONITOR = 0x05, "MONITOR";
    MONITOR_BT = 0x85, "MONITOR_BT";
    MONITOR_CONTENTION = 0x15, "MONITOR_ev1";
    MONITOR_DONE = 0x25, "MONITOR_ev2";
    MONITOR_FAIL = 0x35, "MONITOR_ev3";
    MONITOR_CONTENTION_BT = 0x95, "MONITOR_ev1_BT";
    HEAP_START = 0x06, "HEAP_START";
    HEAP_END = 0x16, "HEAP_END";
    HEAP_OBJECT = 0x26, "HEAP_OBJECT";
    HEAP_ROOT = 0x36, "HEAP_ROOT";
    HEAP_ROOT_REGISTER = 0x46, "HEAP_ROOT_REGISTER";
    HEAP_ROOT_UNREGISTER = 0x56, "HEAP_ROOT_UNREGISTER";
    SAMPLE_HIT = 0x07, "SAMPLE_HIT";
    SAMPLE_USYM = 0x17, "SAMPLE_USYM";
    SAMPLE_UBIN = 0x27, "SAMPLE_UBIN";
    COUNTERS_DESC = 0x37, "COUNTERS_DESC";
    COUNTERS = 0x47, "COUNTERS";
    JITHELPER = 0x18, "JITHELPER";
    COVERAGE_ASSEMBLY = 0x09, "COVERAGE_ASSEMBLY";
    COVERAGE_METHOD = 0x19, "COVERAGE_METHOD";
    COVERAGE_STATEMENT = 0x29, "COVERAGE_STATEMENT";
    COVERAGE_CLASS = 0x39, "COVERAGE_CLASS";
    SYNC_POINT = 0x0a, "SYNC_POINT";
    AOT_ID = 0x1a, "AOT_ID";
}

/// A set of event kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindSet(u64);

/// The bit of each event byte. Used for every event.
static BITS: [u64; 256] = {
    let mut bits = [0; 256];
    let mut byte = 0;
    #[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated at compile time")]
    while byte < 256 {
        bits[byte] = EventByte(byte as u8).bit();
        byte += 1;
    }
    bits
};

impl KindSet {
    /// All kinds.
    #[must_use]
    pub const fn all() -> Self {
        Self(u64::MAX)
    }

    /// The given kinds.
    #[must_use]
    pub const fn of(kinds: &[EventByte]) -> Self {
        let mut set = 0;
        let mut rest = kinds;
        while let [kind, others @ ..] = rest {
            set |= kind.bit();
            rest = others;
        }
        Self(set)
    }

    /// Union of two sets.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The kinds of this set that are not in the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The kinds that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Adds a kind.
    #[inline]
    pub fn add(&mut self, kind: EventByte) {
        self.0 |= BITS.get(usize::from(kind.0)).copied().unwrap_or(0);
    }

    /// Whether the set contains a kind.
    #[must_use]
    #[inline]
    pub fn has(self, kind: EventByte) -> bool {
        self.0 & BITS.get(usize::from(kind.0)).copied().unwrap_or(0) != 0
    }

    /// Whether the two sets have a kind in common.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl fmt::Display for EventByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "Unknown event {:#04x}", self.0),
        }
    }
}

impl fmt::Debug for EventByte {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

macro_rules! numbers {
    ($(#[doc = $doc:literal])+ $module:ident { $($(#[doc = $vdoc:literal])+ $name:ident = $value:literal,)+ }) => {
        $(#[doc = $doc])+
        pub mod $module {
            $($(#[doc = $vdoc])+ pub const $name: u64 = $value;)+
        }
    };
}

numbers! {
    /// Values of `GC_EVENT.event`.
    gc {
        /// A collection starts.
        START = 0,
        /// A collection ends.
        END = 5,
        /// The threads are about to be stopped.
        PRE_STOP_WORLD = 6,
        /// The threads are stopped: the pause starts.
        POST_STOP_WORLD = 7,
        /// The threads are about to run again: the pause ends.
        PRE_START_WORLD = 8,
        /// The threads run again.
        POST_START_WORLD = 9,
        /// The threads are about to be stopped; the collector's lock is held (since data version 13).
        PRE_STOP_WORLD_LOCKED = 10,
        /// The threads run again and the lock is released (since data version 13).
        POST_START_WORLD_UNLOCKED = 11,
    }
}

numbers! {
    /// Values of `METADATA.mtype`.
    metadata {
        /// A class.
        CLASS = 1,
        /// An image: the file of an assembly.
        IMAGE = 2,
        /// An assembly.
        ASSEMBLY = 3,
        /// An application domain.
        DOMAIN = 4,
        /// A thread.
        THREAD = 5,
        /// A remoting context.
        CONTEXT = 6,
        /// The table of virtual methods of a class in one domain.
        VTABLE = 7,
    }
}

numbers! {
    /// Values of `MONITOR.event`.
    monitor {
        /// A thread waits for the lock.
        CONTENTION = 1,
        /// The thread has acquired the lock.
        DONE = 2,
        /// The thread has given up.
        FAIL = 3,
    }
}

numbers! {
    /// Values of `COUNTERS.type`.
    counter {
        /// A signed 32-bit number.
        INT = 0,
        /// An unsigned 32-bit number.
        UINT = 1,
        /// A signed number of pointer size.
        WORD = 2,
        /// A signed 64-bit number.
        LONG = 3,
        /// An unsigned 64-bit number.
        ULONG = 4,
        /// A double.
        DOUBLE = 5,
        /// Text, or null.
        STRING = 6,
        /// A time in microseconds.
        TIME_INTERVAL = 7,
    }
}

/// Section of counters that come from performance counters. They have a category, and their values are absolute.
pub const PERFCOUNTERS: u64 = 1 << 15;

/// Name of a counter section; `None` for an unknown one.
#[must_use]
pub fn section_name(section: u64) -> Option<&'static str> {
    Some(match section {
        0x100 => "JIT",
        0x200 => "GC",
        0x400 => "Metadata",
        0x800 => "Generics",
        0x1000 => "Security",
        0x2000 => "Runtime",
        0x4000 => "System",
        0x8000 => "Performance counters",
        0x1_0000 => "Profiler",
        0x2_0000 => "Interpreter",
        _ => return None,
    })
}

/// Unit of a counter, from bits 24 to 27; `None` for an unknown one.
#[must_use]
pub fn unit_name(unit: u64) -> Option<&'static str> {
    Some(match unit >> 24 & 0xf {
        0 => "raw",
        1 => "bytes",
        2 => "time",
        3 => "count",
        4 => "percentage",
        _ => return None,
    })
}

/// Name of a GC handle type.
#[must_use]
pub fn handle_name(kind: u64) -> &'static str {
    match kind {
        0 => "weak",
        1 => "weak_track_resurrection",
        2 => "normal",
        3 => "pinned",
        _ => "unknown",
    }
}

/// Origin of a registered root, from `HEAP_ROOT_REGISTER.source` (since data version 15).
#[must_use]
pub fn root_source_name(source: u64) -> &'static str {
    const NAMES: [&str; 17] = [
        "external",
        "stack",
        "finalizer_queue",
        "static",
        "thread_static",
        "context_static",
        "gc_handle",
        "jit",
        "threading",
        "domain",
        "reflection",
        "marshal",
        "thread_pool",
        "debugger",
        "handle",
        "ephemeron",
        "toggleref",
    ];
    usize::try_from(source).ok().and_then(|at| NAMES.get(at)).copied().unwrap_or("unknown")
}

/// Kind of a root, from the low byte of `HEAP_ROOT.type` (data versions 3 to 14).
#[must_use]
pub fn root_type_name(version: u8, kind: u64) -> &'static str {
    match (version, kind & 0xff) {
        (..=13, 0) | (14, 1) => "stack",
        (..=13, 1) | (14, 2) => "finalizer_queue",
        (..=13, 2) | (14, 4) => "gc_handle",
        (..=13, 3) | (14, 8) => "other",
        (..=13, 4) | (14, 16) => "misc",
        _ => "unknown",
    }
}

/// Purpose of a helper that is the code of a method.
pub const METHOD_HELPER: &str = "method";

/// Purpose of code that the runtime generated for itself. Before data version 14 the numbers are one higher.
#[must_use]
pub fn helper_name(version: u8, kind: u64) -> &'static str {
    const NAMES: [&str; 10] = [
        METHOD_HELPER,
        "method trampoline",
        "unbox trampoline",
        "imt trampoline",
        "generics trampoline",
        "specific trampoline",
        "helper",
        "monitor",
        "delegate invoke",
        "exception handling",
    ];
    let number = if version < 14 { kind.checked_sub(1) } else { Some(kind) };
    number.and_then(|at| NAMES.get(usize::try_from(at).ok()?)).copied().unwrap_or("unknown")
}
