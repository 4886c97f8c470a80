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

mod allocations;
mod cached_batches;
pub mod call_log;
mod calls;
pub mod code_images;
mod diagnostics;
mod function_names;
mod heap;
mod inputs;
mod join;
mod prefetch;
mod profile;
mod recordings;
mod selected_rows;
pub mod sframe;
#[cfg(test)]
mod tests;
mod trace;

pub use allocations::{AllocationGrouping, AllocationQuery};
pub use cached_batches::CachedBatches;
pub use calls::CallCosts;
pub use diagnostics::{DiagnosticRow, diagnostics_batch};
pub use function_names::NamingFinding;
pub use heap::{HeapSnapshot, SnapshotSums};
pub use inputs::{Inputs, take_cut};
pub use prefetch::{Prefetch, begin_opening, prefetch_summary, take_opened};
pub use profile::{Profile, ProfileOptions, TableStream};
pub use recordings::{ProfileInput, RecordingSet};
pub use selected_rows::{Columns, Rows};
