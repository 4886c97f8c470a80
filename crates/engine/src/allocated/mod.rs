//! Allocations: sums, samples, and the objects at given addresses.
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

mod origins;
mod sampled;
mod sums;
#[cfg(test)]
mod tests;

pub use origins::{AllocationOrigin, origin_rows, origins};
pub use sampled::samples;
pub use sums::{AllocationGroup, AllocationGrouping, AllocationSums, GroupSum};
