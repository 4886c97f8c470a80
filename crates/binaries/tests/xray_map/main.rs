//! Instrumentation maps of programs compiled here, of real programs, and of damaged ones.

mod absolute;
mod compiled;
mod corpus;
mod crafted;
mod damage;
mod extracted;
mod linked;
mod naming;
#[path = "../toolchain/mod.rs"]
mod toolchain;
mod tools;
