//! JITDUMP: files that JIT compilers write for Linux perf, with samply's extension records. See this folder's README.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        clippy::panic
    )
)]

use std::any::Any;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::sync::Arc;

use perfuse_tables::{Alignment, CodeUnwinding, Offsets};
use perfuse_wire::{Diagnostics, RecordView};

use perfuse_recording::{
    BatchStream, Capabilities, ClockPolicy, Format, Placement, Position, Recording, Repaired, Role, Sniff,
    Source, Summary, TableRequest, machine_name, machine_pointer_bytes,
};

mod build_index;
pub mod check;
pub mod consts;
pub mod dump;
pub mod encode;
pub mod functions;
pub mod index;
mod ingest;
pub mod inline;
pub mod layout;
pub mod lines;
pub mod names;
pub mod producer;
pub mod reader;
pub mod records;
mod repair;
pub mod rules;
mod skew;
#[cfg(test)]
mod tests;
pub mod writer;

use consts::MAGIC;
pub use dump::{DumpContents, JitDump};
use reader::{Reader, ReaderStep};
use records::LoadRecord;

/// The format's entry in the registry.
pub static FORMAT: Format = Format {
    name: "jitdump",
    title: "JITDUMP",
    about: "what JIT compilers write for Linux perf: names, code, lines and unwinding information of compiled functions",
    role: Role::CodeDump,
    report: "code",
    clock: ClockPolicy {
        kinds: &["monotonic", "tsc"],
        alignments: &[
            Alignment::SameClock,
            Alignment::TimeConv,
            Alignment::Marker,
            Alignment::MarkerAndRate,
            Alignment::NotAligned,
        ],
        start_field: Some("timestamp"),
    },
    process_field: Some("pid"),
    files: &["jit-*.dump"],
    directory: None,
    capabilities: Capabilities { writer: true, repair: true },
    sniff: |head| {
        let magic = head.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes));
        Sniff::by_magic(magic.is_some_and(|magic| [MAGIC, MAGIC.swap_bytes()].contains(&magic)))
    },
    open: |source| Ok(Arc::new(JitDump::open(source)?)),
    refused: None,
    rules: check::RULES,
    layouts: &[
        &layout::FileHeader::LAYOUT,
        &layout::RecordPrefix::LAYOUT,
        &layout::Load::LAYOUT,
        &layout::Move::LAYOUT,
        &layout::DebugInfo::LAYOUT,
        &layout::DebugEntry::LAYOUT,
        &layout::UnwindingInfo::LAYOUT,
        &inline::debug_info2::DebugInfo2Counts::LAYOUT,
        &inline::debug_info2::FunctionRecord::LAYOUT,
        &inline::debug_info2::InlineCallRecord::LAYOUT,
        &inline::debug_info2::Range::LAYOUT,
        &inline::debug_info2::LineRecord::LAYOUT,
        &inline::frames::FramesCounts::LAYOUT,
        &inline::frames::CodeOffset::LAYOUT,
        &inline::frames::SourcePosition::LAYOUT,
        &inline::inline_info1::InlineInfo1Counts::LAYOUT,
        &inline::inline_info1::InlineEntry1Fixed::LAYOUT,
        &inline::inline_info2::InlineInfo2Counts::LAYOUT,
        &inline::inline_info2::InlineEntry2Fixed::LAYOUT,
        &inline::tier::TierFixed::LAYOUT,
        &inline::embedded::EmbeddedFixed::LAYOUT,
    ],
    tables: &[
        "modules",
        "functions",
        "code_objects",
        "code_moves",
        "line_rows",
        "inline_calls",
        "embedded_files",
    ],
};

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
