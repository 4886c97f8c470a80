use object::Architecture;

/// DWARF numbers of the registers that unwinding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Stack pointer.
    pub sp: u16,
    /// Frame pointer.
    pub fp: u16,
    /// Return address.
    pub ra: u16,
    /// Whether return addresses may be signed (aarch64).
    pub signs: bool,
}

impl Registers {
    /// amd64.
    pub const X86_64: Self = Self { sp: 7, fp: 6, ra: 16, signs: false };
    /// aarch64, in either byte order.
    pub const AARCH64: Self = Self { sp: 31, fp: 29, ra: 30, signs: true };
    /// s390x.
    pub const S390X: Self = Self { sp: 15, fp: 11, ra: 14, signs: false };

    pub(super) fn of(architecture: Architecture) -> Option<Self> {
        match architecture {
            Architecture::X86_64 => Some(Self::X86_64),
            Architecture::Aarch64 => Some(Self::AARCH64),
            Architecture::S390x => Some(Self::S390X),
            _ => None,
        }
    }
}
