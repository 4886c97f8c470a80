//! A dump as a [`Recording`]: its summary, records, tables, check and repair.

use std::any::Any;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use perfuse_recording::{
    BatchStream, Format, Placement, Position, Recording, Repaired, Source, Summary, TableRequest,
};
use perfuse_tables::{CodeUnwinding, Offsets};
use perfuse_wire::{Diagnostics, RecordView, machine_name, machine_pointer_bytes};

use super::dump::JitDump;
use super::reader::{Reader, ReaderStep};
use super::records::{self, LoadRecord};
use super::{FORMAT, check, ingest, repair};

impl Recording for JitDump {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        self.bytes()
    }

    fn summary(&self) -> Summary {
        let index = self.index();
        let header = &index.header;
        Summary {
            version: Some(header.version.to_string()),
            endian: index.endian,
            pointer_bytes: machine_pointer_bytes(header.elf_mach),
            arch: machine_name(header.elf_mach),
            producer: Some(index.producer.to_string()),
            clock: if self.has_arch_timestamps() { "tsc" } else { "monotonic" },
            span: index.span,
            counts: index.counts.iter().map(|(tag, count)| (tag.to_string(), *count)).collect(),
            header: header.values(),
        }
    }

    fn read_record<'a>(&'a self, at: &mut Position, wanted: &dyn Fn(&str) -> bool) -> Option<RecordView<'a>> {
        let offset = if at.offset == 0 { self.start().first_record } else { at.offset };
        let mut reader = Reader::new(self.bytes(), self.start().endian, offset, at.index)
            .with_previous(at.inner.checked_sub(1));
        loop {
            let step = reader.next()?;
            let inner = reader.previous().map_or(0, |previous| previous.saturating_add(1));
            *at = Position { offset: reader.offset(), index: reader.index(), inner };
            if let ReaderStep::Record(record) = step {
                return Some(records::view(&record, wanted));
            }
        }
    }

    fn check(&self, sink: &mut Diagnostics) {
        check::check(self, sink);
    }

    fn findings(&self, sink: &mut Diagnostics) {
        check::findings(self, sink);
    }

    fn repair(&self, out: &mut File) -> io::Result<Repaired> {
        let mut out = BufWriter::new(out);
        let done = repair::repair(self, &mut out)?;
        out.flush()?;
        Ok(done)
    }

    fn extent(&self) -> Offsets {
        let index = self.index();
        Offsets {
            source: 1,
            function: index.functions.rows().len() as u32,
            module: 1,
            code_object: index.codes.len() as u32,
            ..Offsets::default()
        }
    }

    fn table(&self, name: &str, placement: &Placement, request: &TableRequest) -> Option<BatchStream> {
        ingest::table(self, name, placement, request)
    }

    fn code_unwinding(&self, code_object: u32) -> Option<CodeUnwinding<'_>> {
        self.unwinding(code_object)
    }

    fn omissible_bytes(&self, keep_code: &dyn Fn(u32) -> bool) -> Vec<Range<u64>> {
        let (index, source) = (self.index(), self.bytes());
        let omitted = (0u32..).zip(&index.codes).filter(|(number, _)| !keep_code(*number));
        let ranges = omitted.filter_map(|(_, code)| {
            let record = index.record_at(source, code.offset, code.index)?;
            let load = LoadRecord::decode(record.cursor()).ok()?;
            Some(load.code_offset..load.code_offset.saturating_add(load.code.len() as u64))
        });
        let mut ranges: Vec<_> = ranges.collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
