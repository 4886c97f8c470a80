//! perf.data: what Linux's `perf record` writes. See the README of this folder.
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

mod attribute;
pub mod check;
pub mod consts;
mod directory;
mod features;
mod header;
mod hidden;
mod ingest;
pub mod layout;
mod order;
mod reader;
mod recording;
mod records;
mod repair;
mod sample;
mod survey;
mod tasks;
mod unpacked;
mod user_registers;
mod view;
pub mod writer;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use perfuse_wire::ParseError;

use perfuse_recording::{
    Capabilities, ClockPolicy, Format, Recording, RecordingDirectory, Role, Sniff, Source,
};
use perfuse_tables::Alignment;

pub use layout::{ClockData, TimeConv};
pub use recording::PerfData;
pub use sample::{Registers, Sample, SampleHead, Words};
pub use survey::{JitMarker, PidNamespace};
pub use tasks::Exec;
pub use writer::{InjectError, InjectedBuildId, InjectedMmap, Injection, inject};

/// perf.data.
pub static FORMAT: Format = Format {
    name: "perf_data",
    title: "perf.data",
    about: "What Linux's perf record writes: samples with call chains, mappings, threads and their names.",
    role: Role::Samples,
    report: "profile",
    clock: ClockPolicy {
        kinds: &["perf", "monotonic", "monotonic_raw", "realtime", "boottime", "tai", "unknown"],
        alignments: &[Alignment::SameClock],
        start_field: None,
    },
    process_field: None,
    files: &["perf.data", "*.perf.data"],
    directory: Some(RecordingDirectory { main_file: directory::MAIN_FILE, read: directory::read }),
    capabilities: Capabilities { writer: true, repair: true },
    sniff: |head| {
        Sniff::by_magic(head.starts_with(consts::MAGIC_LITTLE) || head.starts_with(consts::MAGIC_BIG))
    },
    open,
    refused: None,
    rules: check::RULES,
    layouts: layout::LAYOUTS,
    tables: &["processes", "threads", "mappings", "callchains"],
};

fn open(source: Arc<Source>) -> Result<Arc<dyn Recording>, ParseError> {
    Ok(Arc::new(PerfData::open(source)?))
}
