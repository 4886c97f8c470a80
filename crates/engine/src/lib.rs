//! Tables in, tables out: what is too hot for Python. Knows no format.

pub mod align;
pub mod allocated;
mod batch;
pub mod calls;
pub mod code_map;
pub mod code_mappings;
pub mod eh_frame;
pub mod elf_image;
pub mod handles;
pub mod heap;
pub mod join;
pub mod mappings;
pub mod protobuf;
pub mod selected;
pub mod sleds;
pub mod stacks;
pub mod symbolize;
pub mod timed_space;
pub mod trace_output;
pub mod unwind;
