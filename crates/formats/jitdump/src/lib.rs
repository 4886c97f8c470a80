//! JITDUMP: what JIT compilers write for Linux perf, with samply's extension records. See this folder's README.
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
use std::sync::{Arc, OnceLock};

use perfuse_tables::{Alignment, CodeUnwinding, Offsets};
use perfuse_wire::{Diagnostics, ParseError, RecordView, Value};

use perfuse_recording::{
    BatchStream, Capabilities, ClockPolicy, Format, Placement, Position, Recording, Repaired, Role, Sniff,
    Source, Summary, TableRequest, machine_name, machine_pointer_bytes,
};

pub mod check;
pub mod consts;
mod describe;
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
#[cfg(test)]
mod tests;
mod unwinding;
pub mod writer;

use consts::{JITDUMP_FLAGS_ARCH_TIMESTAMP, MAGIC};
use index::Index;
use reader::{Reader, Start, Step};

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

/// An open dump.
#[derive(Debug)]
pub struct JitDump {
    shared: Arc<Shared>,
}

/// What tables made from a dump keep alive.
#[derive(Debug)]
pub struct Shared {
    /// The bytes.
    pub source: Arc<Source>,
    start: Start,
    index: OnceLock<Index>,
}

impl Shared {
    /// What one pass over the file finds; made once.
    #[must_use]
    pub fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::build(&self.source, self.start))
    }
}

impl JitDump {
    /// Reads the header.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        let start = reader::start(&source)?;
        Ok(Self { shared: Arc::new(Shared { source, start, index: OnceLock::new() }) })
    }

    /// What one pass over the file finds; made once.
    #[must_use]
    pub fn index(&self) -> &Index {
        self.shared.index()
    }

    /// A handle that tables can keep.
    #[must_use]
    pub fn share(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Where records begin.
    #[must_use]
    pub fn start(&self) -> Start {
        self.shared.start
    }

    /// Whether the records' times are the architecture's counter: the flag, unless the flags are garbage.
    #[must_use]
    pub fn has_arch_timestamps(&self) -> bool {
        self.shared.start.header.flags == JITDUMP_FLAGS_ARCH_TIMESTAMP
    }
}

impl Recording for JitDump {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        &self.shared.source
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
            header: vec![
                ("magic", Value::Hex(header.magic.into())),
                ("version", Value::Unsigned(header.version.into())),
                ("total_size", Value::Unsigned(header.total_size.into())),
                ("elf_mach", Value::Unsigned(header.elf_mach.into())),
                ("pad1", Value::Hex(header.pad1.into())),
                ("pid", Value::Unsigned(header.pid.into())),
                ("timestamp", Value::Unsigned(header.timestamp)),
                ("flags", Value::Hex(header.flags)),
            ],
        }
    }

    fn next_record<'a>(&'a self, at: &mut Position) -> Option<RecordView<'a>> {
        let offset = if at.offset == 0 { self.start().first_record } else { at.offset };
        let mut reader =
            Reader::new(self.source(), self.start().endian, offset, at.index).after(at.inner.checked_sub(1));
        loop {
            let step = reader.next()?;
            let inner = reader.previous().map_or(0, |last| last.saturating_add(1));
            *at = Position { offset: reader.offset(), index: reader.index(), inner };
            if let Step::Record(record) = step {
                return Some(describe::view(&record));
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

    fn as_any(&self) -> &dyn Any {
        self
    }
}
