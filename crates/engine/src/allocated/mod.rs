//! What was allocated: summed up, as samples, and which object an address was.

mod origins;
mod sampled;
mod sums;
#[cfg(test)]
mod tests;

pub use origins::{Origin, origin_rows, origins};
pub use sampled::samples;
pub use sums::{By, Key, Sum, Sums};
