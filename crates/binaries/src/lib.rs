//! Programs and libraries: symbols, DWARF, `.eh_frame`, XRay instrumentation maps, and ELF images of JIT code. Knows no format
//! of a recording.
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

pub mod dependencies;
pub mod eh_frame;
pub mod elf_image;
pub mod symbolize;
pub mod xray_map;
