//! Stacks from registers and a copy of a thread's stack, as `perf record --call-graph dwarf` leaves them.
//!
//! What is known of a function's frame comes to one shape, a [`Step`]: the rows of SFrame (through [`Formats`], this crate
//! knows none), call frame information of `.eh_frame` and `.debug_frame`, the unwinding record of JIT code, and the frame
//! pointer where nothing else is. [`walk`] goes from frame to frame by steps; [`Lookup`] finds the step of an address once;
//! [`Unwinder`] does so for table `callchains`, in batches.

mod cfi;
mod chains;
mod eh_frame_hdr;
mod expression;
mod frame_pointer;
mod lookup;
mod machine;
mod memory;
mod module;
mod registers;
mod step;
#[cfg(test)]
mod tests;
mod totals;
mod walk;

pub use chains::{Chains, Mark, Unwinder};
pub use lookup::{Lookup, Modules};
pub use machine::Machine;
pub use memory::Stack;
pub use module::{CodeFrames, Formats, Rows, UserStack};
pub use registers::Registers;
pub use step::{Base, Origin, Rule, Step};
pub use totals::Totals;
pub use walk::{Code, Frame, MAX_FRAMES, StepId, Stop, walk};
