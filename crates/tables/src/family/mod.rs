//! The declarations, a file a family.

mod callstacks;
mod code;
mod provenance;
mod sampling;
mod tasks;
mod tracing;
mod unwinding;

pub use callstacks::{frames, stacks};
pub use code::{code_moves, code_objects, embedded_files, functions, inline_calls, line_rows, modules};
pub use provenance::{clocks, diagnostics, records, sources};
pub use sampling::{callchains, samples};
pub use tasks::{mappings, processes, threads};
pub use tracing::{CallEvent, EndReason, SliceKind, StartReason, call_events, call_sums, instants, slices};
pub use unwinding::{PcType, UnwindOrigin, unwind_functions, unwind_lookups, unwind_rows};
