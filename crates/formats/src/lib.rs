//! One folder a format. Decoders know bytes and the common tables; they know no exporter and no analysis.
//!
//! Every format folder has the same files, so a newcomer who knows one knows all: `README.md mod.rs consts.rs layout.rs
//! records.rs reader.rs writer.rs check.rs ingest.rs tests.rs testdata/`. [`registry`] is the one list of formats.
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

pub mod fusing;
pub mod instrumentation_map;
pub mod jitdump;
pub mod mono;
pub mod perf_data;
pub mod registry;
pub mod sframe;
pub mod xray;

mod machine;
mod recording;
mod source;
mod sums;

pub use machine::{machine_endian, machine_name, machine_pointer_bytes};
pub use recording::{
    BatchStream, CallStream, Change, Clock, ClockMap, Format, Open, Placement, Position, Rate, Recording,
    Repaired, Scale, Summary, TableRequest, call_stream, one_batch,
};
pub use source::Source;
pub use sums::{AllocationSum, ShotSum};
