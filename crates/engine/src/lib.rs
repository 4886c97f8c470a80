//! Tables in, tables out: what is too hot for Python. Knows no format.

pub mod address_spaces;
pub mod align;
pub mod allocated;
mod batch;
pub mod calls;
pub mod code_map;
pub mod code_mappings;
pub mod handles;
pub mod heap;
pub mod join;
pub mod mappings;
pub mod selected;
pub mod stacks;
pub mod timed_space;
pub mod unwind;
