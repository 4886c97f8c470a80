//! An SFrame file as a [`Recording`]: its summary, records, tables, check and repair.

use std::any::Any;
use std::fs::File;
use std::io;
use std::sync::Arc;

use perfuse_recording::{
    BatchStream, Clock, Format, Placement, Position, Rate, Recording, Repaired, Source, Summary, TableRequest,
};
use perfuse_tables::{FrameRecovery, Offsets};
use perfuse_wire::{Diagnostics, Endian, RecordView, Value};

use super::unit::SFrameUnit;
use super::{FORMAT, SFrame, check, describe, ingest, repair};

impl Recording for SFrame {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        self.file_source()
    }

    fn summary(&self) -> Summary {
        let first = self.units().first();
        let mut versions: Vec<_> = self.units().iter().map(SFrameUnit::version).collect();
        versions.sort_unstable();
        versions.dedup();
        let versions: Vec<_> = versions.iter().map(ToString::to_string).collect();
        Summary {
            version: (!versions.is_empty()).then(|| versions.join(", ")),
            endian: first.map_or(Endian::Little, |unit| unit.endian),
            pointer_bytes: Some(8),
            arch: first.and_then(|unit| unit.abi().arch()),
            producer: None,
            clock: "unknown",
            span: None,
            counts: self.row_survey().counts(),
            header: first.map(|unit| self.header_fields(unit)).unwrap_or_default(),
        }
    }

    /// The format has no time stamps.
    fn clock(&self, _rate: Rate) -> Clock {
        Clock::nanoseconds("unknown")
    }

    fn span(&self) -> Option<(u64, u64)> {
        None
    }

    fn read_record<'a>(
        &'a self,
        at: &mut Position,
        _wanted: &dyn Fn(&str) -> bool,
    ) -> Option<RecordView<'a>> {
        describe::next_record(self, at)
    }

    fn seek_offset(&self, _offset: u64) -> Option<Position> {
        // The rows of each function are after all entries.
        None
    }

    fn check(&self, sink: &mut Diagnostics) {
        check::check(self, sink);
    }

    fn repair(&self, out: &mut File) -> io::Result<Repaired> {
        repair::repair(self, out)
    }

    fn extent(&self) -> Offsets {
        let functions = self.units().iter().map(|unit| unit.num_functions);
        Offsets { source: 1, unwind_function: functions.fold(0, u32::saturating_add), ..Offsets::default() }
    }

    fn table(&self, name: &str, placement: &Placement, _request: &TableRequest) -> Option<BatchStream> {
        ingest::table(self, name, placement)
    }

    /// Signed return addresses are not marked: signatures are removed from every return address.
    fn recovery(&self, address: u64) -> Option<FrameRecovery> {
        let found = self.find(address)?;
        // Before version 3 the flag of a signal frame has another meaning.
        let is_signal = found.function.info.is_signal() && self.units().get(found.unit)?.version() >= 3;
        Some(FrameRecovery { recovery: found.recovery?.ok()?, is_signal })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl SFrame {
    /// The fields of a unit's header, with what start addresses are relative to.
    fn header_fields(&self, unit: &SFrameUnit) -> Vec<(&'static str, Value<'static>)> {
        let mut fields = describe::header(unit);
        let section = self.sections().get(unit.section);
        fields.push(("section_address", Value::Hex(section.map_or(0, |section| section.address))));
        fields.push(("starts_count_from", Value::Text(unit.starts.name().into())));
        fields.push(("because", Value::Text(unit.starts.reason().into())));
        if self.units().len() > 1 {
            fields.push(("num_headers", Value::Unsigned(self.units().len() as u64)));
        }
        fields
    }
}
