//! Tests. Their input is assembled without the layouts and encoders under test.

pub mod assemble;
mod breaches;
mod damage;
mod filled;
mod layouts;
mod lean;
mod prerelease;
mod round_trips;
mod runs;
mod shots;
mod sums;
mod tables;
