//! The declarations of the common tables, one module for each group of related tables.

mod callstacks;
mod code;
mod code_coverage;
mod exception_events;
mod hardware;
mod heap;
mod kernel_code;
mod locks;
mod memory;
mod metrics;
mod provenance;
mod resolved_sums;
mod retention;
mod sampling;
mod scheduling;
mod tasks;
mod tracing;
mod unwinding;

pub use callstacks::{frames, stacks};
pub use code::{
    code_moves, code_objects, embedded_files, functions, inline_calls, instructions, line_rows, modules,
};
pub use code_coverage::coverage;
pub use exception_events::{ExceptionEvent, exceptions};
pub use hardware::{branches, memory_accesses};
pub use heap::{heap_objects, heap_references, heap_roots, heap_snapshots};
pub use kernel_code::{kernel_symbols, text_pokes};
pub use locks::{LockEvent, lock_events};
pub use memory::{allocations, event_objects, gc_handles, object_moves, types};
pub use metrics::{counter_samples, counters};
pub use provenance::{Alignment, clocks, diagnostics, records, sources};
pub use resolved_sums::{
    allocation_sums, call_functions, call_migrations, call_paths, call_threads, call_totals,
};
pub use retention::{heap_classes, heap_dominators, heap_sites};
pub use sampling::{callchains, samples};
pub use scheduling::{
    SchedState, cgroups, namespaces, sched_states, thread_counts, tracepoint_fields, wake_ups,
};
pub use tasks::{mappings, processes, thread_names, threads};
pub use tracing::{
    CallEvent, EndReason, SliceKind, StartReason, border_events, call_events, call_sums, instants, slices,
};
pub use unwinding::{PcType, UnwindOrigin, unwind_functions, unwind_lookups, unwind_rows};
