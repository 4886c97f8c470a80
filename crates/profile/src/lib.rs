//! Several recordings as one profile: their tables on one clock with common keys, samples joined with code, unwound stacks,
//! call statistics, allocations and heap snapshots.
//!
//! [`Profile`] is the central type. Formats are used through the `Recording` trait; only [`code_images`], [`call_log`] and
//! [`sframe`] are about particular formats.
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

mod address_columns;
mod allocations;
mod cached_batches;
pub mod call_log;
mod calls;
mod calls_near;
pub mod code_images;
mod definitions;
mod diagnostics;
mod early;
mod event_objects;
mod function_names;
mod function_numbers;
mod heap;
mod inputs;
mod instructions;
mod join;
mod machine_code;
mod naming_finding;
mod prefetch;
mod profile;
mod recordings;
mod same_functions;
pub mod saved;
pub mod saved_events;
mod saved_sums;
mod saved_tables;
mod selected_rows;
pub mod sframe;
mod table_stream;
#[cfg(test)]
mod tests;
mod timeline;
mod trace;

pub use allocations::{AllocationGrouping, AllocationQuery};
pub use cached_batches::CachedBatches;
pub use calls::CallCosts;
pub use definitions::DefinedLines;
pub use diagnostics::{DiagnosticRow, diagnostics_batch};
pub use early::{begin_opening, begin_summary, forget_opened, take_opened, take_profile};
pub use heap::{HeapSnapshot, SnapshotSums};
pub use inputs::{Damage, Inputs, Unreadable, take_unreadable};
pub use machine_code::CodeTarget;
pub use naming_finding::NamingFinding;
pub use prefetch::Prefetch;
pub use profile::{Profile, ProfileOptions};
pub use recordings::{ProfileInput, RecordingSet, process_numbers};
pub use selected_rows::{Columns, Rows};
pub use table_stream::{StreamError, TableStream};
