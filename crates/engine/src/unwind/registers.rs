use super::machine::{Machine, NUM_REGISTERS};

/// Registers of a frame, as far as they are known.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    machine: Machine,
    /// Where it runs, or returns to.
    pub pc: u64,
    values: [u64; NUM_REGISTERS],
    known: u64,
}

impl Registers {
    /// None known but the program counter.
    #[must_use]
    pub fn new(machine: Machine, pc: u64) -> Self {
        Self { machine, pc, values: [0; NUM_REGISTERS], known: 0 }
    }

    /// From numbers and values in turn; the number of the program counter tells the machine. `None` where it is not among
    /// them.
    #[must_use]
    pub fn from_pairs(pairs: &[u64]) -> Option<Self> {
        let pairs = pairs.as_chunks::<2>().0;
        // The program counter is what comes last: numbers of one machine's mean something else on another.
        let &[number, pc] = pairs.last()?;
        let mut registers = Self::new(Machine::with_pc(number)?, pc);
        for &[number, value] in &pairs[..pairs.len() - 1] {
            if let Ok(number) = u8::try_from(number) {
                registers.set(number, value);
            }
        }
        Some(registers)
    }

    /// The machine they are of.
    #[must_use]
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

    /// Sets a register; those that nothing is unwound through are passed over.
    #[inline]
    pub fn set(&mut self, number: u8, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(number)) {
            *slot = value;
            self.known |= 1 << number;
        }
    }

    /// Forgets a register.
    #[inline]
    pub(super) fn forget(&mut self, number: u8) {
        if usize::from(number) < NUM_REGISTERS {
            self.known &= !(1 << number);
        }
    }

    /// Forgets all registers but these bits.
    #[inline]
    pub(super) fn keep(&mut self, bits: u64) {
        self.known &= bits;
    }

    /// The stack pointer.
    #[must_use]
    pub fn sp(&self) -> Option<u64> {
        self.get(self.machine.sp())
    }
}
