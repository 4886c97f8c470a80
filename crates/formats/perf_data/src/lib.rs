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

use perfuse_recording::{Format, Recording, Source};

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
    sniff: |head| head.starts_with(consts::MAGIC_LITTLE) || head.starts_with(consts::MAGIC_BIG),
    open,
    refused: None,
    rules: check::RULES,
    layouts: layout::LAYOUTS,
    tables: &["processes", "threads", "mappings", "callchains"],
};

fn open(source: Arc<Source>) -> Result<Arc<dyn Recording>, ParseError> {
    Ok(Arc::new(PerfData::open(source)?))
}
