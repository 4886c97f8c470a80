//! Stacks from registers and a copy of a thread's stack, as `perf record --call-graph dwarf` leaves them.
//!
//! All unwinding information takes one form, an [`UnwindStep`]: rows of SFrame and the unwinding records of JIT code (through
//! [`UnwindSources`]), call frame information of `.eh_frame` and `.debug_frame`, and the frame pointer where there is nothing
//! else. [`unwind_stack`] goes from frame to frame by steps; [`StepLookup`] finds the step of an address once; [`Unwinder`]
//! does so for table `callchains`, in batches.

mod cfi;
mod chains;
mod expression;
mod lookup;
mod memory;
mod module;
mod registers;
mod step;
#[cfg(test)]
mod tests;
mod walk;

pub use chains::{Chains, UnwindTotals, Unwinder, UnwoundAddress};
pub use lookup::{StepLookup, UnwindModules};
pub use memory::StackCopy;
pub use module::{UnwindRows, UnwindSources};
pub use registers::{Machine, Registers};
pub use step::{FrameOrigin, PreparedStep, UnwindBase, UnwindRule, UnwindStep};
pub use walk::{MAX_FRAMES, StepId, StepSource, Stop, UnwoundFrame, unwind_stack};
