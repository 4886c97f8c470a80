//! SFrame: a compact stack trace format that a running program can unwind by. See the README of this folder.
//!
//! Feature `tables`, which is on unless `default-features` is off, adds what perfuse itself needs: the common tables as Arrow
//! record batches, the checker, the repair, readelf's text, the writer. Without it the crate reads sections and finds the row of an
//! address ([`SFrameFile::find`]).
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
// Some items are used by these parts alone.
#![cfg_attr(not(feature = "tables"), allow(dead_code))]

pub mod address_index;
#[cfg(feature = "tables")]
mod check;
pub mod consts;
pub mod container;
#[cfg(feature = "tables")]
mod describe;
mod file;
#[cfg(feature = "tables")]
mod ingest;
pub mod layout;
#[cfg(feature = "tables")]
#[cfg(feature = "tables")]
pub mod readelf;
pub mod reader;
#[cfg(feature = "tables")]
mod recording;
pub mod records;
pub mod recovery;
#[cfg(feature = "tables")]
mod repair;
pub mod row;
mod row_survey;
pub mod rules;
#[cfg(all(test, feature = "tables"))]
mod tests;
pub mod unit;
#[cfg(feature = "tables")]
pub mod writer;

#[cfg(feature = "tables")]
use std::sync::Arc;

#[cfg(feature = "tables")]
use perfuse_recording::{Capabilities, ClockPolicy, Format, Role};

#[cfg(feature = "tables")]
pub use file::SFrame;
pub use file::{AddressMatch, SFrameFile};
#[cfg(feature = "tables")]
pub use ingest::look_up;

/// The format's entry in the registry.
#[cfg(feature = "tables")]
pub static FORMAT: Format = Format {
    name: "sframe",
    title: "SFrame",
    about: "how to unwind stacks: sections that assemblers and linkers put into programs, libraries and object files",
    role: Role::UnwindTables,
    report: "unwind_tables",
    clock: ClockPolicy::TIMELESS,
    process_field: None,
    files: &["*.sframe"],
    directory: None,
    capabilities: Capabilities { writer: true, repair: true },
    sniff: container::sniff,
    open: |source| Ok(Arc::new(SFrame::open(source)?)),
    refused: Some(
        "a program names the functions of an XRay log with --map PROGRAM, and of samples with --symbols DIR; to report on its \
         own unwinding, build it with -Wa,--gsframe, or `perfuse sframe from-eh-frame` makes a section of its .eh_frame",
    ),
    rules: rules::RULES,
    layouts: &[
        &layout::Header::LAYOUT,
        &layout::FuncDescV1::LAYOUT,
        &layout::FuncDescV2::LAYOUT,
        &layout::FuncDescIdxV3::LAYOUT,
        &layout::FuncDescAttrV3::LAYOUT,
        &layout::FRAME_ROW,
    ],
    tables: &["unwind_functions", "unwind_rows"],
};
