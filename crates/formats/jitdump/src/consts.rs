//! Numbers of the JITDUMP specification (sections III and IV) and of samply's extensions.

use std::fmt;

/// The magic as a number in the file's own byte order: `JiTD` read most significant byte first.
pub const MAGIC: u32 = 0x4A69_5444;

/// `flags` bit 0: time stamps are the architecture's own counter (TSC on x86), not nanoseconds.
pub const JITDUMP_FLAGS_ARCH_TIMESTAMP: u64 = 1;

/// V8 writes this into `pad1`, and nobody else does.
pub const V8_PAD: u32 = 0xDEAD_BEEF;

/// The name of a debug entry whose file is the previous entry's (documented in perf's jitdump.h only).
pub const REPEATED_NAME: &[u8] = b"\xff";

/// What V8 and LLVM add to the address of every debug entry: the size of an ELF header they do not write.
pub const ELF64_HEADER_SKEW: u64 = 0x40;

/// The same on 32-bit machines.
pub const ELF32_HEADER_SKEW: u64 = 0x34;

/// The kind of a record; any number may occur.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordTag(pub u32);

macro_rules! record_tags {
    ($($name:ident = $value:literal;)+) => {
        impl RecordTag {
            $(#[doc = concat!("`", stringify!($name), "`")] pub const $name: Self = Self($value);)+

            /// The specification's name, where the number is known.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some(stringify!($name)),)+
                    _ => None,
                }
            }
        }
    };
}

record_tags! {
    JIT_CODE_LOAD = 0;
    JIT_CODE_MOVE = 1;
    JIT_CODE_DEBUG_INFO = 2;
    JIT_CODE_CLOSE = 3;
    JIT_CODE_UNWINDING_INFO = 4;
    JIT_CODE_INLINE_INFO = 5;
    SAMPLY_JIT_CODE_DEBUG_INFO2 = 827346259;
    SAMPLY_JIT_TIER = 827346260;
    SAMPLY_EMBEDDED_SOURCE_FILE = 827346261;
}

impl fmt::Display for RecordTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "Unknown RecordTag {}", self.0),
        }
    }
}

impl fmt::Debug for RecordTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
