//! SFrame: a compact stack trace format that a running program can unwind by. See the README of this folder.
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

pub mod address_index;
mod check;
pub mod consts;
pub mod container;
mod describe;
mod file;
mod ingest;
pub mod layout;
mod prefetch;
pub mod readelf;
pub mod reader;
mod recording;
pub mod records;
pub mod recovery;
mod repair;
pub mod row;
mod row_survey;
pub mod rules;
#[cfg(test)]
mod tests;
pub mod unit;
pub mod writer;

use std::sync::Arc;

use perfuse_recording::{Capabilities, ClockPolicy, Format, Role};

pub use file::SFrame;
pub use ingest::look_up;

/// The format's entry in the registry.
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
        "build it with -Wa,--gsframe, or `perfuse sframe from-eh-frame` makes a section of its .eh_frame",
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
