//! What is at an address: code at a time ([`code_map`]), the calls inlined in it ([`inlined`]), functions that a recording lists
//! ([`recorded_symbols`]), and the rules by which its frame is left ([`unwinding`]). Knows no format and no tables.
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

pub mod code_map;
pub mod inlined;
mod layered_space;
pub mod mapped_memory;
pub mod recorded_symbols;
pub mod timed_space;
pub mod unwinding;
