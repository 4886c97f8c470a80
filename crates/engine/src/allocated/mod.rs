//! Allocations: sums, samples, and the objects at given addresses.

mod origins;
mod sampled;
mod sums;
#[cfg(test)]
mod tests;

pub use origins::{AllocationOrigin, origin_rows, origins};
pub use sampled::{TypeFunctions, TypedStacks, samples};
pub use sums::{AllocationGrouping, AllocationSums};
