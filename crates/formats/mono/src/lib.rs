//! Logs of the Mono log profiler (`.mlpd`), data versions 1 to 17. See the README in the crate's folder.
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

use std::sync::Arc;

use perfuse_recording::{Capabilities, ClockPolicy, Format, Role, Sniff};
use perfuse_tables::Alignment;

pub mod check;
pub mod consts;
pub mod convert;
pub mod decode;
pub mod dialect;
pub mod encode;
pub mod fields;
pub mod header;
mod ingest;
pub mod layout;
pub mod log;
pub mod named_fields;
pub mod named_log;
pub mod names;
pub mod open_calls;
pub mod ranges;
pub mod reader;
mod recording;
pub mod records;
mod repair;
pub mod rules;
pub mod stacks;
pub mod survey;
#[cfg(test)]
mod tests;
pub mod writer;

pub use log::LogData;
pub use recording::MonoLog;

/// The format's entry in the registry.
pub static FORMAT: Format = Format {
    name: "mono",
    title: "Mono log",
    about: "what Mono's log profiler writes: allocations, collections, heap snapshots, calls, samples, locks, exceptions and counters",
    role: Role::RuntimeLog,
    report: "runtime",
    clock: ClockPolicy {
        kinds: &["monotonic"],
        alignments: &[Alignment::SameClock, Alignment::FirstUse, Alignment::NotAligned],
        start_field: None,
    },
    process_field: Some("pid"),
    files: &["*.mlpd"],
    directory: None,
    capabilities: Capabilities { writer: true, repair: true },
    sniff: |head| Sniff::by_magic(head.starts_with(&consts::HEADER_ID.to_le_bytes())),
    open: |source| Ok(Arc::new(MonoLog::open(source)?)),
    refused: None,
    rules: check::RULES,
    layouts: layout::events::LAYOUTS,
    tables: ingest::TABLES,
};
