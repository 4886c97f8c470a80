//! Constants of the specification, in its spelling.

use std::fmt;

use perfuse_wire::Endian;

/// The magic, in the byte order of the target machine: `e2 de` or `de e2`.
pub const SFRAME_MAGIC: u16 = 0xdee2;

/// Function entries are sorted by start address.
pub const SFRAME_F_FDE_SORTED: u8 = 0x1;
/// All functions preserve the frame pointer (versions 1 and 2; no producer sets it).
pub const SFRAME_F_FRAME_POINTER: u8 = 0x2;
/// Start addresses are relative to their own field (version 2 errata 1, version 3).
pub const SFRAME_F_FDE_FUNC_START_PCREL: u8 = 0x4;

/// The flags with their names.
pub const FLAGS: &[(u8, &str)] = &[
    (SFRAME_F_FDE_SORTED, "SFRAME_F_FDE_SORTED"),
    (SFRAME_F_FRAME_POINTER, "SFRAME_F_FRAME_POINTER"),
    (SFRAME_F_FDE_FUNC_START_PCREL, "SFRAME_F_FDE_FUNC_START_PCREL"),
];

/// The flags that a version defines.
#[must_use]
pub const fn known_flags(version: u8) -> u8 {
    match version {
        1 => SFRAME_F_FDE_SORTED | SFRAME_F_FRAME_POINTER,
        2 => SFRAME_F_FDE_SORTED | SFRAME_F_FRAME_POINTER | SFRAME_F_FDE_FUNC_START_PCREL,
        _ => SFRAME_F_FDE_SORTED | SFRAME_F_FDE_FUNC_START_PCREL,
    }
}

/// `p_type` of the segment that contains the section.
pub const PT_GNU_SFRAME: u32 = 0x6474_e554;
/// `sh_type` since binutils 2.45; PROGBITS before.
pub const SHT_GNU_SFRAME: u32 = 0x6fff_fff4;

/// FDE type: row starts are offsets in the function.
pub const SFRAME_FDE_TYPE_PCINC: u8 = 0;
/// FDE type: a block of code that repeats (a PLT); row starts are offsets in that block.
pub const SFRAME_FDE_TYPE_PCMASK: u8 = 1;

/// Version 3: rows contain the offsets of registers from the CFA, in the ABI's fixed order.
pub const SFRAME_FDE_TYPE_DEFAULT: u8 = 0;
/// Version 3: rows name registers and may read memory.
pub const SFRAME_FDE_TYPE_FLEX: u8 = 1;

/// Size of the block that a PCMASK entry repeats. Version 1 has no field for it; every linker writes PLTs with this
/// one.
pub const VERSION_1_REPEAT_BYTES: u8 = 16;

/// s390x: CFA offsets are stored less this value, and in units of 8 bytes.
pub const S390X_CFA_ADJUSTMENT: i64 = 160;
/// s390x: unit of CFA offsets.
pub const S390X_CFA_SCALE: i64 = 8;

/// An ABI with its byte order; any number may occur.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Abi(pub u8);

/// DWARF numbers of the registers used in unwinding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbiRegisters {
    /// Stack pointer.
    pub sp: u32,
    /// Frame pointer.
    pub fp: u32,
    /// Return address.
    pub ra: u32,
}

impl Abi {
    /// aarch64, big endian.
    pub const AARCH64_ENDIAN_BIG: Self = Self(1);
    /// aarch64, little endian.
    pub const AARCH64_ENDIAN_LITTLE: Self = Self(2);
    /// amd64.
    pub const AMD64_ENDIAN_LITTLE: Self = Self(3);
    /// s390x (version 2 errata 1).
    pub const S390X_ENDIAN_BIG: Self = Self(4);

    /// All defined ABIs.
    pub const ALL: [Self; 4] = [
        Self::AARCH64_ENDIAN_BIG,
        Self::AARCH64_ENDIAN_LITTLE,
        Self::AMD64_ENDIAN_LITTLE,
        Self::S390X_ENDIAN_BIG,
    ];

    /// Machine, in the spelling of `uname -m`.
    #[must_use]
    pub const fn arch(self) -> Option<&'static str> {
        match self {
            Self::AARCH64_ENDIAN_BIG => Some("aarch64_be"),
            Self::AARCH64_ENDIAN_LITTLE => Some("aarch64"),
            Self::AMD64_ENDIAN_LITTLE => Some("x86_64"),
            Self::S390X_ENDIAN_BIG => Some("s390x"),
            _ => None,
        }
    }

    /// Byte order of sections for this ABI.
    #[must_use]
    pub const fn endian(self) -> Option<Endian> {
        match self {
            Self::AARCH64_ENDIAN_BIG | Self::S390X_ENDIAN_BIG => Some(Endian::Big),
            Self::AARCH64_ENDIAN_LITTLE | Self::AMD64_ENDIAN_LITTLE => Some(Endian::Little),
            _ => None,
        }
    }

    /// The registers of this ABI.
    #[must_use]
    pub const fn registers(self) -> Option<AbiRegisters> {
        match self {
            Self::AARCH64_ENDIAN_BIG | Self::AARCH64_ENDIAN_LITTLE => {
                Some(AbiRegisters { sp: 31, fp: 29, ra: 30 })
            }
            Self::AMD64_ENDIAN_LITTLE => Some(AbiRegisters { sp: 7, fp: 6, ra: 16 }),
            Self::S390X_ENDIAN_BIG => Some(AbiRegisters { sp: 15, fp: 11, ra: 14 }),
            _ => None,
        }
    }

    /// Whether return addresses may be signed.
    #[must_use]
    pub const fn has_pointer_authentication(self) -> bool {
        matches!(self, Self::AARCH64_ENDIAN_BIG | Self::AARCH64_ENDIAN_LITTLE)
    }
}

impl fmt::Display for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AARCH64_ENDIAN_BIG => f.write_str("SFRAME_ABI_AARCH64_ENDIAN_BIG"),
            Self::AARCH64_ENDIAN_LITTLE => f.write_str("SFRAME_ABI_AARCH64_ENDIAN_LITTLE"),
            Self::AMD64_ENDIAN_LITTLE => f.write_str("SFRAME_ABI_AMD64_ENDIAN_LITTLE"),
            Self::S390X_ENDIAN_BIG => f.write_str("SFRAME_ABI_S390X_ENDIAN_BIG"),
            Self(number) => write!(f, "Unknown ABI {number}"),
        }
    }
}

impl fmt::Debug for Abi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
