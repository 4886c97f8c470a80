//! Machines whose stacks can be unwound, and the registers of a frame.

use gimli::Register;

/// Machines whose stacks can be unwound. Register numbers are DWARF's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Machine {
    /// x86-64.
    Amd64,
    /// 64-bit Arm.
    Aarch64,
    /// IBM Z.
    S390x,
}

/// Registers that are unchanged count of: none of the machines unwinds through one of a higher number.
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
    #[inline]
    pub fn sp(self) -> u8 {
        match self {
            Self::Amd64 => 7,
            Self::Aarch64 => 31,
            Self::S390x => 15,
        }
    }

    /// The frame pointer.
    #[must_use]
    #[inline]
    pub fn fp(self) -> u8 {
        match self {
            Self::Amd64 => 6,
            Self::Aarch64 => 29,
            Self::S390x => 11,
        }
    }

    /// Where rules put the return address: a column of its own, or the link register.
    #[must_use]
    #[inline]
    pub fn ra(self) -> u8 {
        match self {
            Self::Amd64 => 16,
            Self::Aarch64 => 30,
            Self::S390x => 14,
        }
    }

    /// Distance from the caller's stack pointer up to the CFA: the register save area, on machines that have one.
    #[inline]
    pub(super) fn cfa_above_sp(self) -> u64 {
        match self {
            Self::Amd64 | Self::Aarch64 => 0,
            Self::S390x => 160,
        }
    }

    /// Whether the call instruction leaves the return address in a register.
    #[inline]
    pub(super) fn has_link_register(self) -> bool {
        self != Self::Amd64
    }

    /// A return address without its signature bits (pointer authentication), which no user space address uses.
    #[inline]
    pub(super) fn without_signature(self, address: u64) -> u64 {
        match self {
            Self::Aarch64 => address & ((1 << 48) - 1),
            Self::Amd64 | Self::S390x => address,
        }
    }

    /// Number of a tracked register; `None` for vector registers, flags and the like.
    pub(super) fn register_number(self, register: Register) -> Option<u8> {
        u8::try_from(register.0).ok().filter(|&number| usize::from(number) < NUM_REGISTERS)
    }
}

/// Values of a frame's registers, where known.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    machine: Machine,
    /// Program counter, or the address the frame returns to.
    pub pc: u64,
    values: [u64; NUM_REGISTERS],
    known: u64,
}

impl Registers {
    /// Only the program counter is known.
    #[must_use]
    pub fn new(machine: Machine, pc: u64) -> Self {
        Self { machine, pc, values: [0; NUM_REGISTERS], known: 0 }
    }

    /// From register numbers and values in turn. The last pair is the program counter, whose number determines the machine;
    /// `None` where it does not.
    #[must_use]
    pub fn from_pairs(pairs: &[u64]) -> Option<Self> {
        let pairs = pairs.as_chunks::<2>().0;
        // Only the last pair can be the program counter: its number is another register on other machines.
        let (&[number, pc], others) = pairs.split_last()?;
        let mut registers = Self::new(Machine::with_pc(number)?, pc);
        for &[number, value] in others {
            if let Ok(number) = u8::try_from(number) {
                registers.set(number, value);
            }
        }
        Some(registers)
    }

    /// The machine.
    #[must_use]
    #[inline]
    pub fn machine(&self) -> Machine {
        self.machine
    }

    /// A register's value.
    #[must_use]
    #[inline]
    pub fn get(&self, number: u8) -> Option<u64> {
        let value = *self.values.get(usize::from(number))?;
        (self.known >> number & 1 == 1).then_some(value)
    }

    /// Sets a register; untracked ones are ignored.
    #[inline]
    pub fn set(&mut self, number: u8, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(number)) {
            *slot = value;
            self.known |= 1 << number;
        }
    }

    /// Marks a register as unknown.
    #[inline]
    pub(super) fn forget(&mut self, number: u8) {
        if usize::from(number) < NUM_REGISTERS {
            self.known &= !(1 << number);
        }
    }

    /// Marks all registers outside a bit set as unknown.
    #[inline]
    pub(super) fn keep(&mut self, bits: u64) {
        self.known &= bits;
    }

    /// The stack pointer.
    #[must_use]
    #[inline]
    pub fn sp(&self) -> Option<u64> {
        self.get(self.machine.sp())
    }
}
