//! Steps from a frame to its caller, independent of the source of the information.

use std::sync::Arc;

use perfuse_tables::{self as tables, FrameRecovery, Recovery};

use super::memory::StackCopy;
use super::registers::{Machine, NUM_REGISTERS, Registers};

/// Source of the information that led to a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FrameOrigin {
    /// The interrupted frame itself.
    Sampled,
    /// The recorder's own call chain.
    Callchain,
    /// SFrame of the callee.
    SFrame,
    /// `.eh_frame` of the callee.
    EhFrame,
    /// `.debug_frame` of the callee.
    DebugFrame,
    /// The unwinding record of a JITDUMP.
    JitDump,
    /// The frame pointer.
    FramePointer,
}

impl FrameOrigin {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Sampled,
        Self::Callchain,
        Self::SFrame,
        Self::EhFrame,
        Self::DebugFrame,
        Self::JitDump,
        Self::FramePointer,
    ];

    /// Value in column `frames.unwound_by`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sampled => "sampled",
            Self::Callchain => "callchain",
            Self::SFrame => "sframe",
            Self::EhFrame => "eh_frame",
            Self::DebugFrame => "debug_frame",
            Self::JitDump => "jitdump",
            Self::FramePointer => "frame_pointer",
        }
    }
}

/// A DWARF expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DwarfExpression {
    /// Its operations.
    pub bytes: Arc<[u8]>,
    /// Their encoding.
    pub encoding: gimli::Encoding,
}

/// Base of an offset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnwindBase {
    /// The canonical frame address.
    Cfa,
    /// A register of the frame.
    Register(u8),
    /// Result of an expression.
    Expression(DwarfExpression),
}

/// How the caller's value of a register, or the CFA, is computed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum UnwindRule {
    /// Not recoverable: the frame has overwritten it.
    Undefined,
    /// The value `base + offset`.
    Value(UnwindBase, i64),
    /// The word in memory at `base + offset`.
    Memory(UnwindBase, i64),
}

impl UnwindRule {
    fn from_expression(
        tables::Expression { base, offset, deref }: tables::Expression,
        machine: Machine,
    ) -> Option<Self> {
        let base = match base {
            tables::Base::Cfa => UnwindBase::Cfa,
            tables::Base::Sp => UnwindBase::Register(machine.sp()),
            tables::Base::Fp => UnwindBase::Register(machine.fp()),
            tables::Base::Register(number) => UnwindBase::Register(u8::try_from(number).ok()?),
        };
        Some(if deref { Self::Memory(base, offset) } else { Self::Value(base, offset) })
    }
}

/// How to get from a frame to its caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UnwindStep {
    /// Source of this information.
    pub origin: FrameOrigin,
    /// The canonical frame address (CFA): the caller's stack pointer.
    pub cfa: UnwindRule,
    /// Registers with a rule. The return address is among them; where it is [`UnwindRule::Undefined`] there is no caller.
    pub rules: Box<[(u8, UnwindRule)]>,
    /// Bit set of the registers without a rule that keep their values.
    pub unchanged: u64,
    /// Whether a signal entered the frame: its return address is the interrupted instruction, not one after a call.
    pub is_signal: bool,
}

impl UnwindStep {
    /// The step of a frame without a caller.
    #[must_use]
    pub fn outermost(origin: FrameOrigin, ra: u8) -> Self {
        let rules = Box::from([(ra, UnwindRule::Undefined)]);
        Self { origin, cfa: UnwindRule::Undefined, rules, unchanged: 0, is_signal: false }
    }

    /// The step for a row of unwinding information; `None` for a register that unwinding does not track.
    pub fn from_recovery(
        FrameRecovery { recovery, is_signal }: FrameRecovery,
        machine: Machine,
        origin: FrameOrigin,
    ) -> Option<Self> {
        let Recovery::Caller { cfa, fp, ra, ra_mangled: _ } = recovery else {
            return Some(Self::outermost(origin, machine.ra()));
        };
        let (mut rules, mut unchanged) = (Vec::with_capacity(2), 0);
        for (register, recover) in [(machine.ra(), ra), (machine.fp(), fp)] {
            match recover.expression() {
                None => unchanged |= 1 << register,
                Some(expression) => rules.push((register, UnwindRule::from_expression(expression, machine)?)),
            }
        }
        let cfa = UnwindRule::from_expression(cfa, machine)?;
        Some(Self { origin, cfa, rules: rules.into(), unchanged, is_signal })
    }

    /// Whether the frame has no caller.
    #[must_use]
    pub fn is_outermost(&self, ra: u8) -> bool {
        self.rules.iter().any(|(register, rule)| *register == ra && *rule == UnwindRule::Undefined)
    }

    /// Whether any rule reads registers of the frame other than its CFA.
    fn reads_registers(&self) -> bool {
        let is_plain = |rule: &UnwindRule| {
            matches!(
                rule,
                UnwindRule::Memory(UnwindBase::Cfa, _)
                    | UnwindRule::Value(UnwindBase::Cfa, _)
                    | UnwindRule::Undefined
            )
        };
        !self.rules.iter().all(|(_, rule)| is_plain(rule))
    }
}

/// A step with what a walk asks of its rules at each frame.
#[derive(Debug)]
pub struct PreparedStep {
    pub(super) step: UnwindStep,
    pub(super) is_outermost: bool,
    pub(super) reads_registers: bool,
    pub(super) saved: Option<SavedRegisters>,
}

impl PreparedStep {
    /// Prepares a step of a machine.
    #[must_use]
    pub fn new(step: UnwindStep, machine: Machine) -> Self {
        Self {
            is_outermost: step.is_outermost(machine.ra()),
            reads_registers: step.reads_registers(),
            saved: SavedRegisters::of(&step, machine),
            step,
        }
    }
}

/// Registers that a function saved in its frame: nearly all steps have only rules for these.
#[derive(Debug)]
pub(super) struct SavedRegisters {
    /// Register and offset whose sum is the CFA.
    cfa: (u8, i64),
    /// Bit set of the registers that keep their values.
    unchanged: u64,
    /// The return address, stack pointer and frame pointer: rules of nearly all outer frames need no others.
    frame: SavedWords,
    all: SavedWords,
}

impl SavedRegisters {
    /// The registers of a step; `None` where a rule reads anything but a word at a distance from the CFA.
    fn of(step: &UnwindStep, machine: Machine) -> Option<Self> {
        let UnwindRule::Value(UnwindBase::Register(register), offset) = step.cfa else { return None };
        let (mut saved, mut unchanged) = (Vec::new(), step.unchanged);
        for (register, rule) in &step.rules {
            if usize::from(*register) >= NUM_REGISTERS {
                continue;
            }
            unchanged &= !(1 << register);
            match rule {
                UnwindRule::Memory(UnwindBase::Cfa, offset) => saved.push((*register, *offset)),
                UnwindRule::Undefined => {}
                UnwindRule::Memory(..) | UnwindRule::Value(..) => return None,
            }
        }
        let all = SavedWords::new(&saved)?;
        saved.retain(|(register, _)| [machine.ra(), machine.sp(), machine.fp()].contains(register));
        Some(Self { cfa: (register, offset), unchanged, frame: SavedWords::new(&saved)?, all })
    }

    /// The canonical frame address; `None` where the value of its register is not known.
    #[inline]
    pub(super) fn cfa(&self, registers: &Registers) -> Option<u64> {
        Some(registers.get(self.cfa.0)?.wrapping_add_signed(self.cfa.1))
    }

    /// Sets the registers of the caller, whose stack pointer is `sp`: with `all_registers` all that were saved, else those of
    /// `frame`. Returns `false`, with none changed, where the copy of the stack lacks one of the words.
    #[inline]
    pub(super) fn restore(
        &self,
        cfa: u64,
        sp: u64,
        stack: &StackCopy<'_>,
        registers: &mut Registers,
        all_registers: bool,
    ) -> bool {
        let saved = if all_registers { &self.all } else { &self.frame };
        let Some(words) = stack.range(cfa.wrapping_add_signed(saved.lowest), saved.size) else {
            return false;
        };
        registers.keep(self.unchanged);
        registers.set(registers.machine().sp(), sp);
        for (register, at) in &saved.places {
            if let Some(word) = words.get(*at as usize..).and_then(<[u8]>::first_chunk) {
                registers.set(*register, stack.number_of(word));
            }
        }
        true
    }
}

/// Words of a frame that registers are restored from.
#[derive(Debug)]
struct SavedWords {
    /// Distance of the lowest word from the CFA.
    lowest: i64,
    /// Bytes from the lowest word to the end of the highest.
    size: usize,
    /// Registers, and the distances of their words above the lowest one.
    places: Box<[(u8, u32)]>,
}

impl SavedWords {
    /// Words farther apart than this are not in one frame.
    const MAX_SIZE: usize = 1 << 20;

    /// Words from registers and distances from the CFA; `None` where there are none, or not in one frame.
    fn new(saved: &[(u8, i64)]) -> Option<Self> {
        let lowest = saved.iter().map(|(_, offset)| *offset).min()?;
        let above_lowest = |offset: i64| usize::try_from(offset.checked_sub(lowest)?).ok();
        let highest = above_lowest(saved.iter().map(|(_, offset)| *offset).max()?)?;
        let size = highest.checked_add(8).filter(|size| *size <= Self::MAX_SIZE)?;
        let place = |(register, offset): &(u8, i64)| Some((*register, above_lowest(*offset)? as u32));
        Some(Self { lowest, size, places: saved.iter().map(place).collect::<Option<_>>()? })
    }
}

/// The step of a function that keeps a frame pointer. Nothing proves that the function does. `None` where functions of the
/// machine do not chain frame pointers.
pub(super) fn frame_pointer_step(machine: Machine) -> Option<UnwindStep> {
    let (fp, ra, sp) = (machine.fp(), machine.ra(), machine.sp());
    // A frame record: the caller's frame pointer, and above it the return address.
    let cfa = UnwindRule::Value(UnwindBase::Register(fp), 16);
    let record =
        [(ra, UnwindRule::Memory(UnwindBase::Cfa, -8)), (fp, UnwindRule::Memory(UnwindBase::Cfa, -16))];
    let rules: Box<[_]> = match machine {
        Machine::Amd64 => record.into(),
        // The record is at the bottom of the frame, so where that ends is not known.
        Machine::Aarch64 => record.into_iter().chain([(sp, UnwindRule::Undefined)]).collect(),
        Machine::S390x => return None,
    };
    Some(UnwindStep { origin: FrameOrigin::FramePointer, cfa, rules, unchanged: 0, is_signal: false })
}
