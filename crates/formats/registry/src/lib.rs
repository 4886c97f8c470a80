//! The one list of formats, and what opens a file of any of them.
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
pub mod registry;

pub use perfuse_recording::*;
pub use registry::formats::*;
