//! The symbolizer against programs compiled here, and against what binutils say of them.

mod damage;
mod files;
mod kernel;
mod program;
mod split;
#[path = "../toolchain/mod.rs"]
mod toolchain;
mod truth;
