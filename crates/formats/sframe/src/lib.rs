//! SFrame: how to unwind stacks, in a table small and plain enough to be used while a program runs. See this folder's README.
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

pub mod ahead;
mod check;
pub mod consts;
pub mod container;
mod describe;
mod file;
mod ingest;
pub mod layout;
pub mod lookup;
pub mod readelf;
pub mod reader;
pub mod records;
pub mod recovery;
mod repair;
pub mod row;
pub mod rules;
pub mod starts;
mod survey;
#[cfg(test)]
mod tests;
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
