//! Work per event over the common tables: code map, join, unwinding, stacks, calls, allocations, heap. Knows no format.
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

pub mod address_spaces;
pub mod align;
pub mod allocated;
pub mod batch;
pub mod calls;
pub mod code_map;
pub mod code_mappings;
pub mod forks;
pub mod handles;
pub mod heap;
pub mod join;
pub mod mappings;
pub mod permutation;
pub mod selected;
pub mod stacks;
pub mod timeline;
pub mod unwind;

/// Stands for "none" in columns of keys and row numbers.
pub const NONE: u32 = u32::MAX;
