//! What formats say of unwinding, for the engine, which knows none of them.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

use arrow_array::RecordBatch;
use perfuse_engine::join::{self, Located, Places};
use perfuse_engine::unwind::{
    Base, CodeFrames, Formats, Machine, Origin, Rows, Rule, Step, Stop, Totals, Unwinder, UserStack,
};
use perfuse_formats::jitdump::JitDump;
use perfuse_formats::perf_data::PerfData;
use perfuse_formats::sframe::SFrame;
use perfuse_formats::sframe::recovery::{self, Expression, Recover, Recovery};
use perfuse_formats::{Source, jitdump};
use perfuse_tables::access::ColumnError;
use perfuse_wire::Endian;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fusion::{Fusion, Placed};
use crate::read_ahead::ReadAhead;

/// Unwinding rows and records of the formats there are.
pub struct KnownFormats<'a> {
    pub placed: &'a [Placed],
}

impl Formats for KnownFormats<'_> {
    fn rows(&self, machine: Machine, path: &Path, bytes: &[u8]) -> Option<Box<dyn Rows>> {
        let name = path.to_string_lossy();
        // What is no file is small: the vdso.
        let source = if path.is_file() {
            Source::open(&name).ok()?
        } else {
            Source::from_bytes(&name, bytes.to_vec()).ok()?
        };
        Some(Box::new(SFrameRows { file: SFrame::open(Arc::new(source)).ok()?, machine }))
    }

    fn code(&self, code_object_id: u32) -> Option<CodeFrames> {
        self.placed.iter().find_map(|placed| {
            let id = code_object_id.checked_sub(placed.placement.first.code_object)?;
            let dump = placed.recording().as_any().downcast_ref::<JitDump>()?;
            code_frames(dump, id)
        })
    }

    fn user_stack(&self, source_id: u32, number: u64, registers: &mut Vec<u64>) -> Option<UserStack<'_>> {
        let placed = self.placed.iter().find(|placed| placed.placement.source_id == source_id)?;
        let perf = placed.recording().as_any().downcast_ref::<PerfData>()?;
        let big_endian = perf.endian() == Endian::Big;
        Some(UserStack { bytes: perf.user_stack(number, registers)?, big_endian })
    }
}

fn code_frames(dump: &JitDump, id: u32) -> Option<CodeFrames> {
    let index = dump.index();
    let code = index.codes.get(id as usize)?;
    let jitdump::Unwinding { eh_frame, address, is_own } = dump.unwinding(id)?;
    let big_endian = index.endian == Endian::Big;
    Some(CodeFrames::new(eh_frame, code.start, address, is_own, big_endian))
}

/// The SFrame sections of a file.
pub struct SFrameRows {
    pub file: SFrame,
    pub machine: Machine,
}

impl Rows for SFrameRows {
    fn step(&self, address: u64) -> Option<Step> {
        let found = self.file.find(address)?;
        // A function without rows that is entered by a signal is one the assembler could not translate.
        let is_signal = found.function.info.is_signal() && self.file.units().get(found.unit)?.version() >= 3;
        match found.recovery?.ok()? {
            Recovery::Outermost => Some(Step::outermost(Origin::SFrame, self.machine.ra())),
            // Signatures are taken off any return address.
            Recovery::Caller { cfa, fp, ra, ra_mangled: _ } => {
                let (mut rules, mut kept) = (Vec::with_capacity(2), 0);
                for (register, recover) in [(self.machine.ra(), ra), (self.machine.fp(), fp)] {
                    match recover {
                        Recover::Same => kept |= 1 << register,
                        Recover::Fixed(offset) => rules.push((register, Rule::At(Base::Cfa, offset.into()))),
                        Recover::At(expression) => rules.push((register, self.at(expression)?)),
                    }
                }
                let (origin, cfa, rules) = (Origin::SFrame, self.at(cfa)?, rules.into());
                Some(Step { origin, cfa, rules, kept, is_signal })
            }
        }
    }
}

impl SFrameRows {
    fn at(&self, Expression { base, offset, deref }: Expression) -> Option<Rule> {
        let base = match base {
            recovery::Base::Cfa => Base::Cfa,
            recovery::Base::Sp => Base::Register(self.machine.sp()),
            recovery::Base::Fp => Base::Register(self.machine.fp()),
            recovery::Base::Register(number) => Base::Register(u8::try_from(number).ok()?),
        };
        Some(if deref { Rule::At(base, offset) } else { Rule::Is(base, offset) })
    }
}

/// Batches that may wait between decoding, unwinding and locating.
const WAITING: usize = 4;

/// Unwinds in one thread and finds what addresses lie in in another, while the next chains are decoded.
pub fn unwind_and_locate(
    mut unwinder: Unwinder<'_>,
    chains: impl Iterator<Item = RecordBatch> + Send + 'static,
    places: Places<'_>,
) -> (Result<Located, ColumnError>, Totals) {
    std::thread::scope(|scope| {
        let (make, made) = sync_channel(WAITING);
        let thread = scope.spawn(move || {
            // Nobody waits for the rest once the other end is gone.
            let chains = ReadAhead::new(chains);
            let _ = chains.map(|batch| make.send(unwinder.unwind(batch))).take_while(Result::is_ok).count();
            *unwinder.totals()
        });
        let located = join::locate(made.into_iter(), places);
        (located, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

impl Fusion {
    /// How unwinding copies of stacks went; `None` where there are none.
    pub fn unwinding(&self) -> Result<Option<&Totals>, ColumnError> {
        if self.has_user_stacks() {
            self.joined()?;
        }
        Ok(self.unwound.get())
    }
}

/// As `perfuse.profile.Unwinding` has it.
pub fn totals<'py>(py: Python<'py>, totals: &Totals) -> PyResult<Bound<'py, PyDict>> {
    let (frames, stops) = (PyDict::new(py), PyDict::new(py));
    for (origin, count) in Origin::ALL.into_iter().zip(totals.frames).filter(|(_, count)| *count != 0) {
        frames.set_item(origin.name(), count)?;
    }
    for (stop, count) in Stop::ALL.into_iter().zip(totals.stops).filter(|(_, count)| *count != 0) {
        stops.set_item(stop.name(), count)?;
    }
    let all = PyDict::new(py);
    all.set_item("num_stacks", totals.num_stacks)?;
    all.set_item("frames", frames)?;
    all.set_item("stops", stops)?;
    all.set_item("cut_bytes", (totals.cut_bytes != 0).then_some(totals.cut_bytes))?;
    Ok(all)
}
