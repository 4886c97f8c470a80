//! Conversion of user registers from perf's numbers (`asm/perf_regs.h`) to DWARF's numbers, which unwinding information uses.

use linux_perf_event_reader::constants as abi;

use super::attribute::EventAttribute;
use super::sample::SampleRegisters;

/// Register numbers of an architecture.
struct Numbering {
    /// DWARF's number of a general register with one of perf's numbers.
    general: fn(u32) -> Option<u64>,
    /// perf's number of the program counter, and DWARF's number.
    pc: (u32, u64),
}

const X86_64: Numbering = Numbering {
    general: |number| match number {
        0..=7 => [0, 3, 2, 1, 4, 5, 6, 7].get(number as usize).copied(), // ax bx cx dx si di bp sp
        16..=23 => Some(u64::from(number).saturating_sub(8)), // r8 to r15, after flags and segment registers
        _ => None,
    },
    pc: (8, 16),
};
const AARCH64: Numbering = Numbering {
    general: |number| (number < 32).then_some(number.into()), // x0 to x30, sp
    pc: (32, 32),
};
const S390X: Numbering = Numbering {
    general: |number| (number < 16).then_some(number.into()),
    pc: (33, 65), // the address in the program status word
};

/// perf's and DWARF's number of the link register of 64-bit Arm.
const LINK_REGISTER: u32 = 30;

/// Value of `abi` in samples without registers, such as those of kernel threads.
pub(crate) const ABI_NONE: u64 = 0;
/// Value of `abi` for registers of 64-bit code; other values are for 32-bit code.
const ABI_64: u64 = 2;

/// The user registers in samples of an event, with DWARF's numbers.
#[derive(Clone, Debug, Default)]
pub struct UserRegisters {
    /// Index among the values of a sample, and DWARF's number.
    registers: Vec<(usize, u64)>,
    /// Whether they are of a copied stack.
    pub have_stack: bool,
}

impl UserRegisters {
    /// Registers of an event that was recorded with `--call-graph dwarf`, and the link register alone of one recorded with frame
    /// pointers on 64-bit Arm; none for other events. Without the name of the architecture, the set of registers identifies it.
    #[must_use]
    pub fn of(attribute: &EventAttribute, arch: Option<&str>) -> Self {
        let mask = attribute.fields.sample_regs_user;
        let is_link_register =
            mask == 1 << LINK_REGISTER && arch.is_none_or(|arch| arch.starts_with("aarch64"));
        if is_link_register && attribute.layout.has(abi::PERF_SAMPLE_REGS_USER) {
            return Self { registers: vec![(0, LINK_REGISTER.into())], have_stack: false };
        }
        let required = abi::PERF_SAMPLE_REGS_USER | abi::PERF_SAMPLE_STACK_USER;
        let has_user_callchain = attribute.fields.flags & abi::ATTR_FLAG_BIT_EXCLUDE_CALLCHAIN_USER == 0
            && attribute.layout.has(abi::PERF_SAMPLE_CALLCHAIN);
        if attribute.layout.sample_type & required != required || has_user_callchain {
            return Self::default();
        }
        let Numbering { general, pc } = match arch {
            Some("x86_64") => X86_64,
            Some("aarch64") => AARCH64,
            Some("s390x") => S390X,
            Some(_) => return Self { registers: Vec::new(), have_stack: true },
            // x86-64 samples never contain the segment registers 12 to 15; s390x has the status word and floating-point
            // registers after r15.
            None if mask & 0xf000 == 0 => X86_64,
            None if mask >> 33 == 0 => AARCH64,
            None => S390X,
        };
        let bit = |number: u32| 1u64.checked_shl(number).unwrap_or(0);
        let index = |number: u32| {
            let below = mask & bit(number).wrapping_sub(1);
            (mask & bit(number) != 0).then_some(below.count_ones() as usize)
        };
        let Some(pc_index) = index(pc.0) else { return Self::default() };
        let numbered = (0..u64::BITS).filter_map(|number| Some((index(number)?, general(number)?)));
        Self { registers: numbered.chain([(pc_index, pc.1)]).collect(), have_stack: true }
    }

    /// Replaces the content of `pairs` with DWARF's number and the value of each register of a sample, the program counter
    /// last. `pairs` is empty for a sample without registers of 64-bit code.
    pub fn pairs(&self, registers: Option<SampleRegisters<'_>>, pairs: &mut Vec<u64>) {
        pairs.clear();
        let Some(values) = registers.filter(|set| set.abi == ABI_64) else { return };
        // A loop, because `extend` with flattened pairs checks the capacity for each word.
        for (index, dwarf) in &self.registers {
            if let Some(value) = values.values.get(*index) {
                pairs.extend_from_slice(&[*dwarf, value]);
            }
        }
    }

    /// Whether samples have neither registers nor copies of stacks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.registers.is_empty() && !self.have_stack
    }
}
