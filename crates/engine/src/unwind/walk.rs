use super::expression::{Context, evaluate};
use super::machine::Machine;
use super::memory::Stack;
use super::registers::Registers;
use super::step::{Base, Origin, Rule, Step};

/// Why no further frame was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The outermost frame was reached.
    Outermost,
    /// The next frame lies behind the part of the stack that was copied.
    Cut,
    /// Nothing tells how to go on from here, and the frame pointer leads nowhere.
    NoRule,
    /// Memory that was not recorded would have to be read.
    BadRead,
    /// A register would be needed whose value is not known.
    LostRegister,
    /// The caller's frame would lie below the frame itself.
    NotMonotonic,
    /// The return address is none.
    BadReturnAddress,
    /// There are more frames than anybody wants.
    DepthLimit,
}

impl Stop {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Outermost,
        Self::Cut,
        Self::NoRule,
        Self::BadRead,
        Self::LostRegister,
        Self::NotMonotonic,
        Self::BadReturnAddress,
        Self::DepthLimit,
    ];

    /// A word for it.
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
        }
    }
}

/// A frame that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it runs, or returns to.
    pub pc: u64,
    /// Its stack pointer; 0 where not known.
    pub sp: u64,
    /// What found it.
    pub origin: Origin,
    /// Whether `pc` is a return address: the call lies before it.
    pub is_return: bool,
}

/// A step that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepId(pub u32);

/// The code that a stack is unwound through.
pub trait Code {
    /// Finds how to get out of the function an address is in. With `all_registers` only from what tells of all of them.
    fn find(&mut self, pc: u64, all_registers: bool) -> Option<StepId>;

    /// A step that was found since the walk began.
    fn step(&self, id: StepId) -> &Step;

    /// Whether code lies at an address.
    fn is_code(&self, address: u64) -> bool;

    /// A number in memory that cannot have changed since it was loaded.
    fn memory(&self, address: u64, size: u8) -> Option<u64>;
}

/// Frames at most, as perf's own default has it.
pub const MAX_FRAMES: usize = 1024;

/// Unwinds a stack. Frames are added innermost first, the interrupted one at least.
pub fn walk(registers: &Registers, stack: &Stack<'_>, code: &mut impl Code, frames: &mut Vec<Frame>) -> Stop {
    let first = frames.len();
    match walk_with(registers, stack, code, frames, false) {
        // SFrame says nothing of registers that other rules may need further out.
        Stop::LostRegister => {
            frames.truncate(first);
            walk_with(registers, stack, code, frames, true)
        }
        stop => stop,
    }
}

fn walk_with(
    registers: &Registers,
    stack: &Stack<'_>,
    code: &mut impl Code,
    frames: &mut Vec<Frame>,
    all_registers: bool,
) -> Stop {
    let low = registers.sp().unwrap_or(0);
    let mut frame = Machinery { registers: *registers, stack, cfa: None, low };
    let (mut origin, mut is_return) = (Origin::Sampled, false);
    for _ in 0..MAX_FRAMES {
        let pc = frame.registers.pc;
        let sp = frame.registers.sp().unwrap_or(0);
        frames.push(Frame { pc, sp, origin, is_return });
        let Some(id) = code.find(pc.wrapping_sub(u64::from(is_return)), all_registers) else {
            return Stop::NoRule;
        };
        let step = code.step(id);
        if let Err(stop) = frame.leave(step, is_return, code) {
            let is_guess =
                step.origin == Origin::FramePointer && !matches!(stop, Stop::Outermost | Stop::Cut);
            return if is_guess { Stop::NoRule } else { stop };
        }
        (origin, is_return) = (step.origin, !step.is_signal);
    }
    Stop::DepthLimit
}

/// A frame on the way out.
struct Machinery<'a> {
    registers: Registers,
    stack: &'a Stack<'a>,
    cfa: Option<u64>,
    /// The stack pointer, or what it must be above.
    low: u64,
}

impl Machinery<'_> {
    /// Makes the registers those of the caller.
    fn leave(&mut self, step: &Step, is_return: bool, code: &impl Code) -> Result<(), Stop> {
        let machine = self.registers.machine();
        let by_frame_pointer = step.origin == Origin::FramePointer;
        // Programs and threads begin with a frame pointer of 0.
        let is_last = by_frame_pointer && self.registers.get(machine.fp()) == Some(0);
        if is_last || step.is_outermost(machine.ra()) {
            return Err(Stop::Outermost);
        }
        self.cfa = None;
        let cfa = self.value(&step.cfa, code)?;
        self.cfa = Some(cfa);
        let sp = cfa.wrapping_sub(machine.cfa_above_sp());
        // Callers lie above what they call. A leaf with a link register may have no frame, a handler a stack of its own.
        let leaf = !is_return && machine.has_link_register();
        if !(step.is_signal || sp > self.low || (leaf && sp == self.low)) {
            return Err(Stop::NotMonotonic);
        }
        let ra = if step.needs_registers() {
            self.by_registers(step, sp, code)
        } else {
            self.in_place(step, sp, code)
        }?;
        let pc = machine.unsigned(ra);
        // Beyond the user's half are the kernel's addresses, and the markers of call chains.
        match pc {
            0 => return Err(Stop::Outermost),
            _ if pc >> 63 == 1 => return Err(Stop::BadReturnAddress),
            _ if by_frame_pointer && !code.is_code(pc.wrapping_sub(1)) => {
                return Err(Stop::NoRule);
            }
            _ => self.registers.pc = pc,
        }
        self.low = if step.is_signal { 0 } else { sp };
        Ok(())
    }

    /// Sets the caller's registers, all of which are found from the CFA; returns the return address.
    #[inline]
    fn in_place(&mut self, step: &Step, sp: u64, code: &impl Code) -> Result<u64, Stop> {
        let machine = self.registers.machine();
        self.registers.keep(step.kept);
        self.registers.set(machine.sp(), sp);
        for (register, rule) in &step.rules {
            match self.value(rule, code) {
                Ok(value) => self.registers.set(*register, value),
                Err(stop) if *register == machine.ra() => return Err(stop),
                // Whether it is missed is seen where it is needed.
                Err(_) => self.registers.forget(*register),
            }
        }
        self.registers.get(machine.ra()).ok_or(Stop::LostRegister)
    }

    /// The same where rules name registers, which are those before any has changed.
    fn by_registers(&mut self, step: &Step, sp: u64, code: &impl Code) -> Result<u64, Stop> {
        let machine = self.registers.machine();
        let mut caller = self.registers;
        caller.keep(step.kept);
        caller.set(machine.sp(), sp);
        for (register, rule) in &step.rules {
            match self.value(rule, code) {
                Ok(value) => caller.set(*register, value),
                Err(stop) if *register == machine.ra() => return Err(stop),
                Err(_) => caller.forget(*register),
            }
        }
        self.registers = caller;
        self.registers.get(machine.ra()).ok_or(Stop::LostRegister)
    }

    #[inline]
    fn value(&self, rule: &Rule, code: &impl Code) -> Result<u64, Stop> {
        match rule {
            Rule::Lost => Err(Stop::LostRegister),
            Rule::Is(base, offset) => Ok(self.base(base, code)?.wrapping_add_signed(*offset)),
            Rule::At(base, offset) => {
                let address = self.base(base, code)?.wrapping_add_signed(*offset);
                let word = self.stack.word(address).or_else(|| code.memory(address, 8));
                word.ok_or(if self.stack.is_cut_before(address) { Stop::Cut } else { Stop::BadRead })
            }
        }
    }

    #[inline]
    fn base(&self, base: &Base, code: &impl Code) -> Result<u64, Stop> {
        match base {
            Base::Cfa => self.cfa.ok_or(Stop::LostRegister),
            Base::Register(number) => self.registers.get(*number).ok_or(Stop::LostRegister),
            Base::Expression(expression) => {
                let context = At { frame: self, code };
                evaluate(expression, self.stack.big_endian, &context).ok_or(Stop::BadRead)
            }
        }
    }
}

/// What an expression sees.
struct At<'a, C> {
    frame: &'a Machinery<'a>,
    code: &'a C,
}

impl<C: Code> Context for At<'_, C> {
    fn register(&self, number: u16) -> Option<u64> {
        let registers = &self.frame.registers;
        let machine = registers.machine();
        // The PLT's expression asks where in a stub it is.
        if machine == Machine::Amd64 && u64::from(number) == machine.pc() {
            return Some(registers.pc);
        }
        registers.get(machine.counted(gimli::Register(number))?)
    }

    fn memory(&self, address: u64, size: u8) -> Option<u64> {
        self.frame.stack.number(address, size).or_else(|| self.code.memory(address, size))
    }

    fn cfa(&self) -> Option<u64> {
        self.frame.cfa
    }
}
