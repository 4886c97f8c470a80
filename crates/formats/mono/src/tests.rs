//! Tests. Their input is assembled without the layouts and encoders under test.

pub mod assemble;
mod damage;
mod heap_snapshots;
mod layouts;
mod metadata;
mod named_fields;
mod open_calls;
mod prerelease;
mod round_trips;
mod rules;
mod runs;
mod skipped_backtraces;
mod tables;
mod totals;
