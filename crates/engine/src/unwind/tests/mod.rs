mod call_frames;
mod garbage;
mod walks;

use std::collections::HashMap;

use super::{
    Machine, PreparedStep, Registers, StackCopy, StepId, StepSource, Stop, UnwindStep, UnwoundFrame,
    unwind_stack,
};

/// Steps given by address; the frame pointer for all other addresses.
#[derive(Default)]
struct GivenSteps {
    steps: HashMap<u64, UnwindStep>,
    /// Steps used where all registers are needed.
    full: HashMap<u64, UnwindStep>,
    frame_pointer: Option<UnwindStep>,
    /// Addresses without information about all registers.
    only_sframe: Vec<u64>,
    machine: Option<Machine>,
    found: Vec<PreparedStep>,
}

impl GivenSteps {
    fn at(mut self, pc: u64, step: UnwindStep) -> Self {
        self.steps.insert(pc, step);
        self
    }
}

impl StepSource for GivenSteps {
    fn find(&mut self, pc: u64, all_registers: bool) -> Option<StepId> {
        if all_registers && self.only_sframe.contains(&pc) {
            return None;
        }
        let full = self.full.get(&pc).filter(|_| all_registers);
        let step = full.or(self.steps.get(&pc)).or(self.frame_pointer.as_ref()).cloned()?;
        let machine = self.machine.unwrap_or(Machine::Amd64);
        self.found.push(PreparedStep::new(step, machine));
        Some(StepId(self.found.len() as u32 - 1))
    }

    fn step(&self, id: StepId) -> Option<&PreparedStep> {
        self.found.get(id.0 as usize)
    }

    fn is_code(&self, address: u64) -> bool {
        (0x1000..0x9000).contains(&address)
    }

    fn memory(&self, _address: u64, _size: u8) -> Option<u64> {
        None
    }
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn unwound(registers: &Registers, stack: &[u8], code: &mut GivenSteps) -> (Vec<UnwoundFrame>, Stop) {
    let stack = StackCopy { start: registers.sp().unwrap_or(0), bytes: stack, big_endian: false };
    code.machine = Some(registers.machine());
    let mut frames = Vec::new();
    let stop = unwind_stack(registers, &stack, code, &mut frames);
    (frames, stop)
}

fn amd64(pc: u64, sp: u64, fp: u64) -> Registers {
    let mut registers = Registers::new(Machine::Amd64, pc);
    registers.set(7, sp);
    registers.set(6, fp);
    registers
}
