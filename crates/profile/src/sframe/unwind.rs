//! One stack, unwound by the SFrame sections of one file.

use perfuse_engine::unwind::{
    FrameOrigin, Machine, PreparedStep, Registers, StackCopy, StepId, StepSource, Stop, UnwindStep,
    UnwoundFrame, unwind_stack,
};
use perfuse_formats::Recording;
use perfuse_formats::sframe::SFrame;
use perfuse_wire::Endian;

/// Steps of a file that is loaded `bias` bytes above the addresses of its own layout.
struct LoadedFile<'a> {
    file: &'a SFrame,
    machine: Machine,
    bias: u64,
    found: Vec<PreparedStep>,
}

impl StepSource for LoadedFile<'_> {
    fn find(&mut self, pc: u64, _all_registers: bool) -> Option<StepId> {
        let recovery = self.file.recovery(pc.wrapping_sub(self.bias))?;
        let id = StepId(self.found.len() as u32);
        let step = UnwindStep::from_recovery(recovery, self.machine, FrameOrigin::SFrame)?;
        self.found.push(PreparedStep::new(step, self.machine));
        Some(id)
    }

    fn step(&self, id: StepId) -> Option<&PreparedStep> {
        self.found.get(id.0 as usize)
    }

    fn is_code(&self, _address: u64) -> bool {
        false
    }

    fn memory(&self, _address: u64, _size: u8) -> Option<u64> {
        None
    }
}

/// Registers by name: `pc`, `sp`, `fp`, `ra`, or `r` and a DWARF number. The machine is that of the file.
///
/// # Errors
/// A message where the file has no section or is of an unknown machine, and for an unknown name.
pub fn parse_registers<'a>(
    file: &SFrame,
    values: impl IntoIterator<Item = (&'a str, u64)>,
) -> Result<Registers, String> {
    let unit = file.units().first().ok_or("there is no SFrame section")?;
    let machine = unit.abi().arch().and_then(Machine::named).ok_or("the machine is not known")?;
    let mut registers = Registers::new(machine, 0);
    let mut has_pc = false;
    for (name, value) in values {
        let number = match name {
            "pc" => {
                registers.pc = value;
                has_pc = true;
                continue;
            }
            "sp" => machine.sp(),
            "fp" => machine.fp(),
            "ra" => machine.ra(),
            other => {
                let number = other.strip_prefix('r').and_then(|number| number.parse().ok());
                number.ok_or_else(|| format!("{other:?} is not pc, sp, fp, ra or a register such as r10"))?
            }
        };
        registers.set(number, value);
    }
    match registers.sp() {
        Some(_) if has_pc => Ok(registers),
        _ => Err("registers need pc and sp at least".to_owned()),
    }
}

/// Frames of a stack, innermost first, and why there are no more. `stack` begins at the stack pointer; the file is loaded
/// `bias` bytes above the addresses of its own layout.
#[must_use]
pub fn unwind_by_sframe(
    file: &SFrame,
    registers: &Registers,
    stack: &[u8],
    bias: u64,
) -> (Vec<UnwoundFrame>, Stop) {
    let big_endian = file.units().first().is_some_and(|unit| unit.endian == Endian::Big);
    let start = registers.sp().unwrap_or_default();
    let mut source = LoadedFile { file, machine: registers.machine(), bias, found: Vec::new() };
    let mut frames = Vec::new();
    let stop =
        unwind_stack(registers, &StackCopy { start, bytes: stack, big_endian }, &mut source, &mut frames);
    (frames, stop)
}
