//! Tables in, tables out: what is too hot for Python. Knows no format.

pub mod code_map;
pub mod join;
pub mod mappings;
pub mod timed_space;
