//! Samples and code together: bare addresses become frames, stacks and samples.
//!
//! 1. [`locate`] finds what each address lies in at its time (JIT code, a mapped file, the kernel) and interns the
//!    chains as a tree of locations, so that all later work is per distinct place and not per sample.
//! 2. The caller fetches `line_rows` and `inline_calls` of the code that was hit, and nothing else.
//! 3. [`resolve`] names each location once: function, line, inlined calls.
//! 4. [`emit`] writes tables `frames`, `stacks`, `samples` and the native `functions` and `modules`.

mod emit;
mod lines;
mod locate;
mod perf_maps;
mod places;
mod resolve;

pub use emit::{Tables, emit};
pub use lines::CodeLines;
pub use locate::{Located, Location, locate};
pub use perf_maps::PerfMaps;
pub use places::{Place, Places};
pub use resolve::{CodeNames, Frame, NativeNames, Resolution, resolve};
