use gimli::Register;

/// Machines whose stacks can be unwound, with what unwinding has to know of their registers. Numbers are DWARF's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// x86-64.
    Amd64,
    /// 64-bit Arm.
    Aarch64,
    /// IBM Z.
    S390x,
}

/// Registers that are kept count of: none of the machines unwinds through one of a higher number.
pub(super) const NUM_REGISTERS: usize = 33;

impl Machine {
    /// The machine as `uname -m` spells it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "x86_64" => Some(Self::Amd64),
            "aarch64" | "aarch64_be" => Some(Self::Aarch64),
            "s390x" => Some(Self::S390x),
            _ => None,
        }
    }

    /// The machine whose program counter has this number.
    #[must_use]
    pub fn with_pc(number: u64) -> Option<Self> {
        [Self::Amd64, Self::Aarch64, Self::S390x].into_iter().find(|machine| machine.pc() == number)
    }

    /// The program counter, as register sets number it.
    #[must_use]
    pub fn pc(self) -> u64 {
        match self {
            Self::Amd64 => 16,
            Self::Aarch64 => 32,
            Self::S390x => 65,
        }
    }

    /// The stack pointer.
    #[must_use]
    pub fn sp(self) -> u8 {
        match self {
            Self::Amd64 => 7,
            Self::Aarch64 => 31,
            Self::S390x => 15,
        }
    }

    /// The frame pointer.
    #[must_use]
    pub fn fp(self) -> u8 {
        match self {
            Self::Amd64 => 6,
            Self::Aarch64 => 29,
            Self::S390x => 11,
        }
    }

    /// Where rules put the return address: a column of its own, or the link register.
    #[must_use]
    pub fn ra(self) -> u8 {
        match self {
            Self::Amd64 => 16,
            Self::Aarch64 => 30,
            Self::S390x => 14,
        }
    }

    /// What the CFA lies above the caller's stack pointer: the register save area, where callers leave one.
    pub(super) fn cfa_above_sp(self) -> u64 {
        match self {
            Self::Amd64 | Self::Aarch64 => 0,
            Self::S390x => 160,
        }
    }

    /// Whether the call instruction leaves the return address in a register.
    pub(super) fn has_link_register(self) -> bool {
        self != Self::Amd64
    }

    /// An address without what the machine signs it with: a pointer to user space has none of these bits.
    pub(super) fn unsigned(self, address: u64) -> u64 {
        match self {
            Self::Aarch64 => address & ((1 << 48) - 1),
            Self::Amd64 | Self::S390x => address,
        }
    }

    /// Which of the counted registers DWARF means; `None` for vectors, flags and the like.
    pub(super) fn counted(self, register: Register) -> Option<u8> {
        u8::try_from(register.0).ok().filter(|&number| usize::from(number) < NUM_REGISTERS)
    }
}
