//! Walks a stack from frame to frame by steps.

use super::expression::{EvaluationContext, evaluate};
use super::memory::StackCopy;
use super::registers::Machine;
use super::registers::Registers;
use super::step::{FrameOrigin, PreparedStep, SavedRegisters, UnwindBase, UnwindRule, UnwindStep};

/// Why unwinding ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The outermost frame was reached.
    Outermost,
    /// The next frame is beyond the copied part of the stack.
    Cut,
    /// No unwinding information covers the address, and the frame pointer leads nowhere.
    NoRule,
    /// Memory that was not recorded would have to be read.
    BadRead,
    /// A register would be needed whose value is not known.
    LostRegister,
    /// The caller's frame would be below the frame itself.
    NotMonotonic,
    /// The return address is not an address of user space.
    BadReturnAddress,
    /// [`MAX_FRAMES`] frames were found.
    DepthLimit,
    /// The registers are of a machine that is not supported, such as those of a 32-bit program on a 64-bit machine.
    UnsupportedMachine,
}

impl Stop {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::Outermost,
        Self::Cut,
        Self::NoRule,
        Self::BadRead,
        Self::LostRegister,
        Self::NotMonotonic,
        Self::BadReturnAddress,
        Self::DepthLimit,
        Self::UnsupportedMachine,
    ];

    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Outermost => "outermost",
            Self::Cut => "cut",
            Self::NoRule => "no_rule",
            Self::BadRead => "bad_read",
            Self::LostRegister => "lost_register",
            Self::NotMonotonic => "not_monotonic",
            Self::BadReturnAddress => "bad_return_address",
            Self::DepthLimit => "depth_limit",
            Self::UnsupportedMachine => "unsupported_machine",
        }
    }
}

/// A frame found by unwinding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnwoundFrame {
    /// Program counter, or the address it returns to.
    pub pc: u64,
    /// Its stack pointer; 0 where unknown.
    pub sp: u64,
    /// Source of the information that led to it.
    pub origin: FrameOrigin,
    /// Whether `pc` is a return address; the call precedes it.
    pub is_return: bool,
}

/// Number of a step that a [`StepSource`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepId(pub u32);

/// Steps by address, of the code a stack is unwound through.
pub trait StepSource {
    /// Finds the step of the function at an address. With `all_registers` only from information about all registers.
    fn find(&mut self, pc: u64, all_registers: bool) -> Option<StepId>;

    /// A step found since unwinding of the stack began.
    fn step(&self, id: StepId) -> Option<&PreparedStep>;

    /// Whether there is code at an address.
    fn is_code(&self, address: u64) -> bool;

    /// Number in memory that cannot have changed since it was loaded.
    fn memory(&self, address: u64, size: u8) -> Option<u64>;
}

/// Smallest address at which Linux maps code: what an entry point finds as its return address is the number of arguments.
const FIRST_MAPPED: u64 = 0x1000;
/// Most frames of a stack, perf's own default.
pub const MAX_FRAMES: usize = 1024;

/// Unwinds a stack. Frames are added innermost first, the interrupted one at least.
pub fn unwind_stack(
    registers: &Registers,
    stack: &StackCopy<'_>,
    code: &mut impl StepSource,
    frames: &mut Vec<UnwoundFrame>,
) -> Stop {
    let first = frames.len();
    for restored in [RestoredRegisters::Frame, RestoredRegisters::Described, RestoredRegisters::All] {
        frames.truncate(first);
        match unwind_with(registers, stack, code, frames, restored) {
            Stop::LostRegister => {}
            stop => return stop,
        }
    }
    Stop::LostRegister
}

/// Which registers a walk restores. Rules of few outer frames need more than the first of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RestoredRegisters {
    /// The return address, the stack pointer and the frame pointer.
    Frame,
    /// All that the information on each function describes.
    Described,
    /// All, by information that describes all of them, as SFrame does not.
    All,
}

/// The caller of an interrupted function, where no memory is needed to find it.
pub fn caller_in_registers(registers: &Registers, code: &mut impl StepSource) -> Option<UnwoundFrame> {
    let stack = StackCopy { start: 0, bytes: &[], big_endian: false };
    let id = code.find(registers.pc, false)?;
    let prepared = code.step(id).filter(|prepared| prepared.step.origin != FrameOrigin::FramePointer)?;
    let mut frame = FrameState {
        registers: *registers,
        stack: &stack,
        cfa: None,
        low: 0,
        restored: RestoredRegisters::Frame,
    };
    frame.leave(prepared, false, code).ok()?;
    let step = &prepared.step;
    Some(UnwoundFrame { pc: frame.registers.pc, sp: 0, origin: step.origin, is_return: !step.is_signal })
}

pub(super) fn unwind_with(
    registers: &Registers,
    stack: &StackCopy<'_>,
    code: &mut impl StepSource,
    frames: &mut Vec<UnwoundFrame>,
    restored: RestoredRegisters,
) -> Stop {
    let low = registers.sp().unwrap_or(0);
    let mut frame = FrameState { registers: *registers, stack, cfa: None, low, restored };
    let (mut origin, mut is_return) = (FrameOrigin::Sampled, false);
    for _ in 0..MAX_FRAMES {
        perfuse_stopping::checkpoint();
        let pc = frame.registers.pc;
        let sp = frame.registers.sp().unwrap_or(0);
        frames.push(UnwoundFrame { pc, sp, origin, is_return });
        let Some(id) = code.find(pc.wrapping_sub(u64::from(is_return)), restored == RestoredRegisters::All)
        else {
            return Stop::NoRule;
        };
        let Some(prepared) = code.step(id) else { return Stop::NoRule };
        let step = &prepared.step;
        // The kernel enters the code that a signal handler returns to at its first instruction: no call precedes it.
        if step.is_signal
            && let Some(trampoline) = frames.last_mut()
        {
            trampoline.is_return = false;
        }
        if let Err(stop) = frame.leave(prepared, is_return, code) {
            let is_guess =
                step.origin == FrameOrigin::FramePointer && !matches!(stop, Stop::Outermost | Stop::Cut);
            return if is_guess { Stop::NoRule } else { stop };
        }
        (origin, is_return) = (step.origin, !step.is_signal);
    }
    Stop::DepthLimit
}

/// Registers of the current frame.
struct FrameState<'a> {
    registers: Registers,
    stack: &'a StackCopy<'a>,
    cfa: Option<u64>,
    /// Lower bound of the next stack pointer.
    low: u64,
    restored: RestoredRegisters,
}

impl FrameState<'_> {
    /// Replaces the registers by those of the caller.
    #[inline]
    fn leave(
        &mut self,
        prepared: &PreparedStep,
        is_return: bool,
        code: &impl StepSource,
    ) -> Result<(), Stop> {
        let step = &prepared.step;
        let machine = self.registers.machine();
        let by_frame_pointer = step.origin == FrameOrigin::FramePointer;
        // Programs and threads begin with a frame pointer of 0.
        let is_last = by_frame_pointer && self.registers.get(machine.fp()) == Some(0);
        if is_last || prepared.is_outermost {
            return Err(Stop::Outermost);
        }
        let cfa = match &prepared.saved {
            Some(saved) => saved.cfa(&self.registers).ok_or(Stop::LostRegister)?,
            None => {
                self.cfa = None;
                self.value(&step.cfa, code)?
            }
        };
        self.cfa = Some(cfa);
        let sp = cfa.wrapping_sub(machine.cfa_above_sp());
        // A caller's frame is above its callee's. A leaf with a link register may have no frame, a signal handler a stack of its own.
        let leaf = !is_return && machine.has_link_register();
        if !(step.is_signal || sp > self.low || (leaf && sp == self.low)) {
            return Err(Stop::NotMonotonic);
        }
        let ra = self.restore_caller(prepared, cfa, sp, code)?;
        let pc = machine.without_signature(ra);
        // The upper half holds the kernel's addresses and the markers of call chains; nothing is mapped at the lowest addresses.
        match pc {
            0 => return Err(Stop::Outermost),
            ..FIRST_MAPPED | 0x8000_0000_0000_0000.. => return Err(Stop::BadReturnAddress),
            _ if by_frame_pointer && !code.is_code(pc.wrapping_sub(1)) => {
                return Err(Stop::NoRule);
            }
            _ => self.registers.pc = pc,
        }
        self.low = if step.is_signal { 0 } else { sp };
        Ok(())
    }

    /// Sets the caller's registers; returns the return address.
    #[inline]
    fn restore_caller(
        &mut self,
        PreparedStep { step, saved, reads_registers, .. }: &PreparedStep,
        cfa: u64,
        sp: u64,
        code: &impl StepSource,
    ) -> Result<u64, Stop> {
        let machine = self.registers.machine();
        let FrameState { registers, stack, restored, .. } = self;
        let all_registers = *restored != RestoredRegisters::Frame;
        let restore = |saved: &SavedRegisters| saved.restore(cfa, sp, stack, registers, all_registers);
        match saved.as_ref().is_some_and(restore) {
            true => {}
            false if *reads_registers => self.by_registers(step, sp, code)?,
            false => self.in_place(step, sp, code)?,
        }
        self.registers.get(machine.ra()).ok_or(Stop::LostRegister)
    }

    /// Sets the caller's registers where all rules depend on the CFA alone.
    fn in_place(&mut self, step: &UnwindStep, sp: u64, code: &impl StepSource) -> Result<(), Stop> {
        let machine = self.registers.machine();
        self.registers.keep(step.unchanged);
        self.registers.set(machine.sp(), sp);
        for (register, rule) in &step.rules {
            match self.value(rule, code) {
                Ok(value) => self.registers.set(*register, value),
                Err(stop) if *register == machine.ra() => return Err(stop),
                // An error only where a later rule needs it.
                Err(_) => self.registers.forget(*register),
            }
        }
        Ok(())
    }

    /// The same where rules read registers: they see the values from before any changed.
    fn by_registers(&mut self, step: &UnwindStep, sp: u64, code: &impl StepSource) -> Result<(), Stop> {
        let machine = self.registers.machine();
        let mut caller = self.registers;
        caller.keep(step.unchanged);
        caller.set(machine.sp(), sp);
        for (register, rule) in &step.rules {
            match self.value(rule, code) {
                Ok(value) => caller.set(*register, value),
                Err(stop) if *register == machine.ra() => return Err(stop),
                Err(_) => caller.forget(*register),
            }
        }
        self.registers = caller;
        Ok(())
    }

    #[inline]
    fn value(&self, rule: &UnwindRule, code: &impl StepSource) -> Result<u64, Stop> {
        match rule {
            UnwindRule::Undefined => Err(Stop::LostRegister),
            UnwindRule::Value(base, offset) => Ok(self.base(base, code)?.wrapping_add_signed(*offset)),
            UnwindRule::Memory(base, offset) => {
                let address = self.base(base, code)?.wrapping_add_signed(*offset);
                let word = self.stack.word(address).or_else(|| code.memory(address, 8));
                word.ok_or(if self.stack.is_cut_before(address) { Stop::Cut } else { Stop::BadRead })
            }
        }
    }

    #[inline]
    fn base(&self, base: &UnwindBase, code: &impl StepSource) -> Result<u64, Stop> {
        match base {
            UnwindBase::Cfa => self.cfa.ok_or(Stop::LostRegister),
            UnwindBase::Register(number) => self.registers.get(*number).ok_or(Stop::LostRegister),
            UnwindBase::Expression(expression) => {
                let context = ExpressionContext { frame: self, code };
                // An expression may have needed a register that was not restored.
                let stop = match self.restored {
                    RestoredRegisters::Frame => Stop::LostRegister,
                    RestoredRegisters::Described | RestoredRegisters::All => Stop::BadRead,
                };
                evaluate(expression, self.stack.big_endian, &context).ok_or(stop)
            }
        }
    }
}

/// Registers and memory that an expression may read.
struct ExpressionContext<'a, C> {
    frame: &'a FrameState<'a>,
    code: &'a C,
}

impl<C: StepSource> EvaluationContext for ExpressionContext<'_, C> {
    fn register(&self, number: u16) -> Option<u64> {
        let registers = &self.frame.registers;
        let machine = registers.machine();
        // The expression of PLTs reads the program counter.
        if machine == Machine::Amd64 && u64::from(number) == machine.pc() {
            return Some(registers.pc);
        }
        registers.get(machine.register_number(gimli::Register(number))?)
    }

    fn memory(&self, address: u64, size: u8) -> Option<u64> {
        self.frame.stack.number(address, size).or_else(|| self.code.memory(address, size))
    }

    fn cfa(&self) -> Option<u64> {
        self.frame.cfa
    }
}
