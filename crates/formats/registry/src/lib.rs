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

pub use perfuse_jitdump as jitdump;
pub use perfuse_mono as mono;
pub use perfuse_perf_data as perf_data;
pub use perfuse_recording::*;
pub use perfuse_sframe as sframe;
pub use perfuse_xray as xray;
