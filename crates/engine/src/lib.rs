//! Tables in, tables out: what is done for every sample, in Rust.

pub mod symbolize;
