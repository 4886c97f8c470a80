//! Constants of XRay's file formats.

use std::fmt;

/// `type` of a Basic mode ("naive") log.
pub const NAIVE_LOG: u16 = 0;

/// `type` of a flight data recorder log.
pub const FDR_LOG: u16 = 1;

/// The first word of a profile (Profiling mode): "xrayprof".
pub const PROFILE_MAGIC: u64 = 0x7872_6179_7072_6f66;

/// The only version of a profile.
pub const PROFILE_VERSION: u64 = 0x2018_0424;

/// The latest version of FDR logs, written by LLVM 8 to 22.
pub const LAST_FDR_VERSION: u16 = 5;

/// The latest version of Basic mode logs, written by LLVM 7 to 22.
pub const LAST_BASIC_VERSION: u16 = 3;

/// Size in bytes of the header of a log.
pub const HEADER_BYTES: usize = 32;

/// Size in bytes of a function record.
pub const FUNCTION_BYTES: usize = 8;

/// Size in bytes of a metadata record.
pub const METADATA_BYTES: usize = 16;

/// Size in bytes of a record of a Basic mode log.
pub const BASIC_BYTES: usize = 32;

/// Frequency of the emulated counter: `clock_gettime` in nanoseconds.
pub const EMULATED_HZ: u64 = 1_000_000_000;

/// Bits of a function id in FDR logs. Packed ids with an object number are truncated to these.
pub const FUNCTION_ID_BITS: u32 = 28;

/// What a function record reports; three bits, so any number up to 7 may occur.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Action(pub u8);

/// The kind of a metadata record; seven bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct MetadataKind(pub u8);

macro_rules! names {
    ($ty:ident: $($(#[doc = $doc:literal])+ $name:ident = $value:literal, $text:literal;)+) => {
        impl $ty {
            $($(#[doc = $doc])+ pub const $name: Self = Self($value);)+

            /// The specification's name, where the number is known.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)+
                    _ => None,
                }
            }
        }

        impl fmt::Debug for $ty {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

names! { Action:
    /// A function was entered.
    ENTRY = 0, "Entry";
    /// A function returned.
    EXIT = 1, "Exit";
    /// A function was left by a tail call; the id is that of the function left.
    TAIL_EXIT = 2, "Tail_Exit";
    /// A function was entered whose first argument follows.
    ENTRY_ARGS = 3, "Entry_Args";
}

names! { MetadataKind:
    /// Starts a buffer: its thread.
    NEW_BUFFER = 0, "NewBuffer";
    /// Ends a buffer of version 1.
    END_OF_BUFFER = 1, "EndOfBuffer";
    /// The processor from here on, and its counter.
    NEW_CPU_ID = 2, "NewCPUId";
    /// The absolute counter, where a delta is too small for the step.
    TSC_WRAP = 3, "TSCWrap";
    /// The wall time when the buffer was started.
    WALL_TIME_MARKER = 4, "WallTimeMarker";
    /// An event with bytes of the program's choice.
    CUSTOM_EVENT_MARKER = 5, "CustomEventMarker";
    /// An argument of the function entered before this record.
    CALL_ARGUMENT = 6, "CallArgument";
    /// Precedes a buffer from version 2 on: its size.
    BUFFER_EXTENTS = 7, "BufferExtents";
    /// An event with bytes of the program's choice and an event type.
    TYPED_EVENT_MARKER = 8, "TypedEventMarker";
    /// The process id, from version 3 on.
    PID = 9, "Pid";
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "Unknown Action {}", self.0),
        }
    }
}

impl fmt::Display for MetadataKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "Unknown Kind {}", self.0),
        }
    }
}
