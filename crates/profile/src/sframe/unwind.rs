//! One stack, unwound by the SFrame sections of one file.

use std::collections::HashMap;

use perfuse_engine::unwind::{Code, Machine, Registers, Rows, Stack, Step, StepId, Stop, walk};
use perfuse_wire::Endian;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::recording::PyRecording;
use crate::sframe::sframe;
use crate::unwinding::SFrameRows;

/// A file loaded so many bytes above the addresses it was laid out for.
struct Loaded {
    rows: SFrameRows,
    bias: u64,
    found: Vec<Step>,
}

impl Code for Loaded {
    fn find(&mut self, pc: u64, _all_registers: bool) -> Option<StepId> {
        self.found.push(self.rows.step(pc.wrapping_sub(self.bias))?);
        Some(StepId(self.found.len() as u32 - 1))
    }

    fn step(&self, id: StepId) -> &Step {
        &self.found[id.0 as usize]
    }

    fn is_code(&self, _address: u64) -> bool {
        false
    }

    fn memory(&self, _address: u64, _size: u8) -> Option<u64> {
        None
    }
}

/// `(pc, stack pointer)` of each frame, innermost first, and why there are no more.
type Unwound = (Vec<(u64, u64)>, &'static str);

/// Unwinds a stack: registers are named `pc`, `sp`, `fp`, `ra`, or `r` and a DWARF number; `stack` begins at the stack
/// pointer.
#[pyfunction]
fn sframe_unwind(
    py: Python<'_>,
    recording: &PyRecording,
    registers: HashMap<String, u64>,
    stack: &[u8],
    bias: u64,
) -> PyResult<Unwound> {
    let file = sframe(recording)?;
    let refused = |what: String| PyValueError::new_err(what);
    let piece = file.units().first().ok_or_else(|| refused("there is no SFrame section".to_owned()))?;
    let machine = piece.abi().arch().and_then(Machine::named);
    let machine = machine.ok_or_else(|| refused("the machine is not known".to_owned()))?;
    let mut frame = Registers::new(machine, 0);
    for (name, value) in &registers {
        let number = match name.as_str() {
            "pc" => {
                frame.pc = *value;
                continue;
            }
            "sp" => machine.sp(),
            "fp" => machine.fp(),
            "ra" => machine.ra(),
            other => {
                let number = other.strip_prefix('r').and_then(|number| number.parse().ok());
                number.ok_or_else(|| {
                    refused(format!("{other:?} is not pc, sp, fp, ra or a register such as r10"))
                })?
            }
        };
        frame.set(number, *value);
    }
    let start = frame.sp().filter(|_| registers.contains_key("pc"));
    let start = start.ok_or_else(|| refused("registers need pc and sp at least".to_owned()))?;
    let big_endian = piece.endian == Endian::Big;
    let rows = SFrameRows { file: file.clone(), machine };
    let (frames, stop) = py.detach(|| {
        let mut frames = Vec::new();
        let mut code = Loaded { rows, bias, found: Vec::new() };
        let stop = walk(&frame, &Stack { start, bytes: stack, big_endian }, &mut code, &mut frames);
        (frames, stop)
    });
    Ok((frames.iter().map(|frame| (frame.pc, frame.sp)).collect(), Stop::name(stop)))
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(sframe_unwind, module)?)
}
