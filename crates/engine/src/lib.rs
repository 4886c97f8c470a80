//! engine

pub mod stacks;
