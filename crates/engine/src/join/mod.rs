//! Samples and code together: bare addresses become frames, stacks and samples.
//!
//! 1. [`locate`] finds what each address belongs to at its time (JIT code, a mapped file, the kernel) and interns the
//!    chains as a tree of locations, so that all later work is per distinct location and not per sample.
//! 2. The caller fetches `line_rows` and `inline_calls` of the code that samples are in, and nothing else.
//! 3. [`resolve`] finds function, line and inlined calls of each location once.
//! 4. [`emit`] writes tables `frames`, `stacks`, `samples` and the native `functions` and `modules`.

mod emit;
mod lines;
mod locate;
mod recorded;
mod resolve;
mod same_names;
#[cfg(test)]
mod tests;

pub use emit::{JoinedTables, NO_FRAME, emit};
pub use lines::{CodeLines, SourcePosition};
pub use locate::{AddressColumn, LocatedSamples, Location, locate};
pub use recorded::RecordedNames;
pub use resolve::{
    CodeFunctions, DEFERRED, DescribeName, FrameFunction, MapFunction, NO_MODULE, NativeNames, PerfMapDirs,
    PerfMaps, Resolution, ResolvedFrame, UnusedMap, resolve,
};
