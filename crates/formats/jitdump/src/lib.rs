//! JITDUMP: files that JIT compilers write for Linux perf, with samply's extension records. See this folder's README.
//!
//! Feature `tables`, which is on unless `default-features` is off, adds what perfuse itself needs: the common tables as Arrow
//! record batches, the checker and the repair. Without it the crate reads records ([`reader`]), builds the index of a dump
//! ([`growing`], also while it is written), decodes lines and inlined calls ([`code_lines`]), and writes dumps ([`writer`]).
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

mod build_index;
#[cfg(feature = "tables")]
pub mod check;
pub mod code_lines;
pub mod consts;
#[cfg(feature = "tables")]
pub mod dump;
pub mod encode;
pub mod functions;
pub mod growing;
pub mod index;
#[cfg(feature = "tables")]
mod ingest;
pub mod inline;
pub mod layout;
pub mod lines;
pub mod names;
pub mod producer;
pub mod reader;
#[cfg(feature = "tables")]
mod recording;
pub mod records;
#[cfg(feature = "tables")]
mod repair;
pub mod rules;
mod skew;
#[cfg(all(test, feature = "tables"))]
mod tests;
pub mod writer;

#[cfg(feature = "tables")]
use std::sync::Arc;

#[cfg(feature = "tables")]
use perfuse_recording::{Capabilities, ClockPolicy, Format, Role, Sniff};
#[cfg(feature = "tables")]
use perfuse_tables::Alignment;

#[cfg(feature = "tables")]
use consts::MAGIC;
#[cfg(feature = "tables")]
pub use dump::{DumpContents, JitDump};

/// The format's entry in the registry.
#[cfg(feature = "tables")]
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
            Alignment::FirstUse,
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
