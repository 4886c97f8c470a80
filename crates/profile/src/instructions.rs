//! Table `instructions`: the machine code of a profile's code objects, disassembled.

use arrow_array::types::{UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use perfuse_disassembly::{Architecture, Disassembler, Syntax};
use perfuse_formats::jitdump::JitDump;
use perfuse_tables::access::{ColumnError, bytes, numbers};
use perfuse_tables::{BATCH_ROWS, instructions};

use crate::profile::Profile;

impl Profile {
    /// The instructions of all code whose bytes were recorded, made on demand.
    pub(crate) fn instructions(&self) -> impl Iterator<Item = RecordBatch> + Send + 'static {
        let machines = (0..self.placed.len()).map(|source| self.architecture(source)).collect();
        let codes = Box::new(self.stream("code_objects", true));
        InstructionBatches { codes, machines, batch: None, row: 0, offset: 0, started: false }
    }

    /// The instruction set of a recording's code: as its header states, else that of the samples, else of this machine.
    fn architecture(&self, source: usize) -> Architecture {
        let recording = self.placed.get(source).map(|placed| &placed.recording);
        let dump = recording.and_then(|recording| recording.as_any().downcast_ref::<JitDump>());
        let stated = dump.and_then(|dump| u16::try_from(dump.start().header.elf_mach).ok());
        if let Some(machine) = stated.filter(|&machine| machine != 0) {
            return Architecture::of_elf_machine(machine);
        }
        let names = self.recordings().filter(|recording| recording.format().name == "perf_data");
        let sampled = names.filter_map(|recording| recording.summary().arch).next();
        let name = sampled.unwrap_or(std::env::consts::ARCH);
        let known = [Architecture::X86_64, Architecture::X86, Architecture::Aarch64];
        known.into_iter().find(|one| one.name() == name).unwrap_or(Architecture::Other)
    }
}

/// Batches of instructions.
struct InstructionBatches {
    codes: Box<dyn Iterator<Item = RecordBatch> + Send>,
    /// By `source_id`.
    machines: Vec<Architecture>,
    batch: Option<RecordBatch>,
    /// The next row of the batch, and the next byte of its code.
    row: usize,
    offset: usize,
    started: bool,
}

impl Iterator for InstructionBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        let mut table = instructions::Builder::new();
        while table.len() < BATCH_ROWS {
            let Some(batch) = self.batch.take().or_else(|| self.codes.next()) else { break };
            if self.row >= batch.num_rows() {
                (self.row, self.offset) = (0, 0);
                continue;
            }
            // Batches of code objects are as declared.
            if self.push(&batch, &mut table).is_err() {
                break;
            }
            self.batch = Some(batch);
        }
        // An empty table has one batch, for its schema.
        let batch = !self.started || !table.is_empty();
        self.started = true;
        batch.then(|| table.finish())
    }
}

impl InstructionBatches {
    /// Adds instructions of the current row until the table is full, or the code ends.
    fn push(&mut self, batch: &RecordBatch, table: &mut instructions::Builder) -> Result<(), ColumnError> {
        let codes = bytes(batch, "code")?;
        let row = self.row;
        let code = if codes.is_valid(row) { codes.value(row) } else { &[] };
        let id = numbers::<UInt32Type>(batch, "code_object_id")?.value(row);
        let start = numbers::<UInt64Type>(batch, "start_address")?.value(row);
        let source = numbers::<UInt32Type>(batch, "source_id")?.value(row);
        let architecture = self.machines.get(source as usize).copied().unwrap_or(Architecture::Other);
        let first = self.offset;
        let rest = code.get(first..).unwrap_or_default();
        let address = start.wrapping_add(first as u64);
        let mut decoder = Disassembler::new(architecture, rest, address, Syntax::Att);
        let mut text = String::new();
        while let Some(one) = decoder.next(&mut text) {
            let offset = first.saturating_add(one.offset);
            table.push(id, offset as u64, one.size as u32, &text, one.flow.name(), one.target);
            self.offset = offset.saturating_add(one.size);
            if table.len() >= BATCH_ROWS {
                return Ok(());
            }
        }
        (self.row, self.offset) = (row.saturating_add(1), 0);
        Ok(())
    }
}
