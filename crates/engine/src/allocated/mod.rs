//! What was allocated: summed up, as samples, and which object an address was.
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

pub use origins::{Origin, origin_rows, origins};
pub use sampled::samples;
pub use sums::{By, Key, Sum, Sums};
