//! User registers by DWARF's numbers, as unwinding information has them. perf numbers each machine's in its own way
//! (`asm/perf_regs.h`).

use linux_perf_event_reader::constants as abi;

use super::attribute::Attribute;
use super::sample::Registers;

/// How a machine's registers are numbered.
struct Numbering {
    /// DWARF's number of each general register, by perf's.
    general: fn(u32) -> Option<u64>,
    /// perf's number of the program counter, and DWARF's.
    pc: (u32, u64),
}

const X86_64: Numbering = Numbering {
    general: |number| match number {
        0..=7 => [0, 3, 2, 1, 4, 5, 6, 7].get(number as usize).copied(), // ax bx cx dx si di bp sp
        16..=23 => Some(u64::from(number).saturating_sub(8)), // r8 to r15, after flags and segments
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

/// Registers of 64-bit code; else they are those of a 32-bit program.
const ABI_64: u64 = 2;

/// Which registers samples of an event have, ready to be renumbered.
#[derive(Clone, Debug, Default)]
pub struct UserRegisters {
    /// Place among a sample's values, and DWARF's number.
    places: Vec<(usize, u64)>,
}

impl UserRegisters {
    /// Of an event recorded with `--call-graph dwarf` on a machine that is named, or told by which registers it has; none of
    /// any other event.
    #[must_use]
    pub fn of(attribute: &Attribute, arch: Option<&str>) -> Self {
        let mask = attribute.fields.sample_regs_user;
        let wanted = abi::PERF_SAMPLE_REGS_USER | abi::PERF_SAMPLE_STACK_USER;
        let walks_itself = attribute.fields.flags & abi::ATTR_FLAG_BIT_EXCLUDE_CALLCHAIN_USER == 0
            && attribute.shape.has(abi::PERF_SAMPLE_CALLCHAIN);
        if attribute.shape.sample_type & wanted != wanted || walks_itself {
            return Self::default();
        }
        let Numbering { general, pc } = match arch {
            Some("x86_64") => X86_64,
            Some("aarch64") => AARCH64,
            Some("s390x") => S390X,
            Some(_) => return Self::default(),
            // x86-64 never has the segment registers 12 to 15; s390x has the status word and floating point behind r15.
            None if mask & 0xf000 == 0 => X86_64,
            None if mask >> 33 == 0 => AARCH64,
            None => S390X,
        };
        let bit = |number: u32| 1u64.checked_shl(number).unwrap_or(0);
        let place = |number: u32| {
            let below = mask & bit(number).wrapping_sub(1);
            (mask & bit(number) != 0).then_some(below.count_ones() as usize)
        };
        let Some(pc_place) = place(pc.0) else { return Self::default() };
        let numbered = (0..u64::BITS).filter_map(|number| Some((place(number)?, general(number)?)));
        Self { places: numbered.chain([(pc_place, pc.1)]).collect() }
    }

    /// A sample's registers as pairs, the program counter last; none where it has none, or those of a 32-bit program.
    pub fn pairs(&self, registers: Option<Registers<'_>>, pairs: &mut Vec<u64>) {
        pairs.clear();
        let Some(registers) = registers.filter(|it| it.abi == ABI_64) else { return };
        // One after the other: flattened pairs are added word by word, each with a look at the room there is.
        for (place, dwarf) in &self.places {
            if let Some(value) = registers.values.get(*place) {
                pairs.extend_from_slice(&[*dwarf, value]);
            }
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}
