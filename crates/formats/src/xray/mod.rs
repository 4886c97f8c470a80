//! XRay: what LLVM's function tracing writes. See the README of this folder.

pub mod consts;
pub mod layout;
pub mod records;
