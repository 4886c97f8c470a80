//! XRay: the logs and profiles of LLVM's function tracing. See the README of this folder.
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

pub mod basic;
pub mod block;
pub mod check;
pub mod consts;
pub mod convert;
mod describe;
pub mod encode;
mod event_payloads;
pub mod fdr;
mod fork;
pub mod header;
mod ids;
mod ingest;
pub mod layout;
mod log;
pub mod profile;
pub mod rate;
pub mod reader;
pub mod record_iter;
mod recording;
pub mod records;
mod repair;
pub mod rules;
mod seek;
#[cfg(test)]
mod tests;
pub mod writer;

use std::sync::Arc;

use perfuse_recording::{Capabilities, ClockPolicy, Format, Role};
use perfuse_tables::Alignment;

pub use log::{LogContent, XRay};

/// The format's entry in the registry.
pub static FORMAT: Format = Format {
    name: "xray",
    title: "XRay",
    about: "what LLVM's function tracing writes: logs of FDR and Basic mode, profiles of Profiling mode",
    role: Role::CallTrace,
    report: "calls",
    clock: ClockPolicy {
        kinds: &["monotonic", "tsc", "realtime", "unknown"],
        alignments: &[Alignment::WallTime, Alignment::NotAligned],
        start_field: None,
    },
    process_field: None,
    files: &["xray-log.*", "*.xray"],
    directory: None,
    capabilities: Capabilities { writer: true, repair: true },
    sniff: header::sniff,
    open: |source| Ok(Arc::new(XRay::open(source)?)),
    refused: None,
    rules: check::RULES,
    layouts: &[
        &layout::FileHeader::LAYOUT,
        &layout::FunctionRecord::LAYOUT,
        &layout::NewBuffer::LAYOUT,
        &layout::EndOfBuffer::LAYOUT,
        &layout::NewCpuId::LAYOUT,
        &layout::TscWrap::LAYOUT,
        &layout::WallTimeMarker::LAYOUT,
        &layout::CustomEventV1::LAYOUT,
        &layout::CustomEventV4::LAYOUT,
        &layout::CustomEventV5::LAYOUT,
        &layout::CallArgument::LAYOUT,
        &layout::BufferExtents::LAYOUT,
        &layout::TypedEventV3::LAYOUT,
        &layout::TypedEventV5::LAYOUT,
        &layout::Pid::LAYOUT,
        &layout::BasicRecord::LAYOUT,
        &layout::BasicArgument::LAYOUT,
        &layout::ProfileHeader::LAYOUT,
        &layout::ProfileBlock::LAYOUT,
    ],
    tables: &["functions", "call_events", "call_sums", "instants"],
};
