//! The contract between formats and everything else: what a format declares ([`Format`]), and what an open file of any format
//! offers ([`Recording`]).
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

mod format;
pub mod listing;
mod packed;
mod pages;
mod record_rows;
mod recorded_programs;
mod recording;
mod sampling;
mod source;
#[cfg(test)]
mod tests;

pub use format::{Capabilities, ClockPolicy, RecordingDirectory, Role, Sniff};
pub use packed::head_of;
pub use pages::PassPages;
pub use perfuse_mapped::{CUT, TooLarge, UnpackLimit, open_regular};
pub use record_rows::table_of;
pub use recorded_programs::RecordedPrograms;
pub use recording::{
    BatchStream, CallStream, Change, Clock, ClockMap, Format, Open, Placement, Position, Rate, Recording,
    Repaired, Scale, Summary, TableRequest, WallClockTime, call_stream, one_batch, position_of,
};
pub use sampling::{AddressSpaceStart, CodeMarker, SamplingFacts};
pub use source::{Source, Spill, in_memory_bytes};
