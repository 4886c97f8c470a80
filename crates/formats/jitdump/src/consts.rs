//! Constants of the JITDUMP specification (sections III and IV) and of samply's extensions.

use std::fmt;

/// The magic as a number in the file's own byte order: `JiTD` read most significant byte first.
pub const MAGIC: u32 = 0x4A69_5444;

/// `flags` bit 0: time stamps are the architecture's counter (TSC on x86), not nanoseconds.
pub const JITDUMP_FLAGS_ARCH_TIMESTAMP: u64 = 1;

/// Value of `pad1` in files of V8; no other known producer writes it.
pub const V8_PAD: u32 = 0xDEAD_BEEF;

/// Name of a debug entry that repeats the previous entry's name (documented only in perf's jitdump.h).
pub const REPEATED_NAME: &[u8] = b"\xff";

/// Number that V8 and LLVM add to the address of every debug entry: the size of an ELF64 header.
pub const ELF64_HEADER_SKEW: u64 = 0x40;

/// The same number on 32-bit machines: the size of an ELF32 header.
pub const ELF32_HEADER_SKEW: u64 = 0x34;

/// Kind of a record. Numbers without a name may occur.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RecordTag(pub u32);

macro_rules! record_tags {
    ($($name:ident = $value:literal;)+) => {
        impl RecordTag {
            $(#[doc = concat!("`", stringify!($name), "`")] pub const $name: Self = Self($value);)+

            /// Name in the specification; `None` for other numbers.
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
