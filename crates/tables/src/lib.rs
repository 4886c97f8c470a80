//! The common tables: their schemas and builders of Arrow record batches. This crate does not depend on any format.
//!
//! Each `table!` declaration defines the columns of a table, their types, their documentation, and its builder. [`TABLES`] lists
//! all tables; the reference page is generated from it.
//!
//! Conventions: surrogate keys are `<singular>_id`; `pid` and `tid` are those of the operating system; times are `*_ns`, sizes
//! `*_bytes`; addresses are unsigned; null means not recorded; rows of facts end with their origin.

pub mod access;
mod calls;
mod column;
pub mod context;
mod family;
mod identities;
mod schema;
mod sums;

pub use calls::{CallExit, CallRow, CallRows, CallRun};
pub use column::Choices;
pub use family::{
    Alignment, CallEvent, EndReason, ExceptionEvent, LockEvent, PcType, SchedState, SliceKind, StartReason,
    UnwindOrigin, allocation_sums, allocations, border_events, branches, call_events, call_functions,
    call_migrations, call_paths, call_sums, call_threads, call_totals, callchains, cgroups, clocks,
    code_moves, code_objects, counter_samples, counters, coverage, diagnostics, embedded_files,
    event_objects, exceptions, frames, functions, gc_handles, heap_classes, heap_dominators, heap_objects,
    heap_references, heap_roots, heap_sites, heap_snapshots, inline_calls, instants, instructions,
    kernel_symbols, line_rows, lock_events, mappings, memory_accesses, modules, namespaces, object_moves,
    processes, records, samples, sched_states, slices, sources, stacks, text_pokes, thread_counts,
    thread_names, threads, tracepoint_fields, types, unwind_functions, unwind_lookups, unwind_rows, wake_ups,
};
pub use identities::{Identities, Offsets, ProcessIdentity};
pub use perfuse_addresses::unwinding::{
    Base, CodeUnwinding, Expression, FrameRecovery, Recover, Recovery, UserStack,
};
pub use schema::{ColumnSpec, TableSpec};
pub use sums::{AllocationGroup, AllocationSum, SnapshotSum};

/// Rows of a batch of a large table, which is made batch by batch.
pub const BATCH_ROWS: usize = 1 << 16;

/// Every common table, in the order of the documentation.
pub static TABLES: &[&TableSpec] = &[
    &sources::SPEC,
    &clocks::SPEC,
    &processes::SPEC,
    &threads::SPEC,
    &thread_names::SPEC,
    &mappings::SPEC,
    &modules::SPEC,
    &functions::SPEC,
    &code_objects::SPEC,
    &code_moves::SPEC,
    &line_rows::SPEC,
    &inline_calls::SPEC,
    &instructions::SPEC,
    &embedded_files::SPEC,
    &unwind_functions::SPEC,
    &unwind_rows::SPEC,
    &callchains::SPEC,
    &frames::SPEC,
    &stacks::SPEC,
    &samples::SPEC,
    &branches::SPEC,
    &memory_accesses::SPEC,
    &tracepoint_fields::SPEC,
    &sched_states::SPEC,
    &wake_ups::SPEC,
    &thread_counts::SPEC,
    &cgroups::SPEC,
    &namespaces::SPEC,
    &text_pokes::SPEC,
    &kernel_symbols::SPEC,
    &call_events::SPEC,
    &call_sums::SPEC,
    &slices::SPEC,
    &instants::SPEC,
    &lock_events::SPEC,
    &exceptions::SPEC,
    &counters::SPEC,
    &counter_samples::SPEC,
    &types::SPEC,
    &allocations::SPEC,
    &object_moves::SPEC,
    &gc_handles::SPEC,
    &heap_snapshots::SPEC,
    &heap_objects::SPEC,
    &heap_references::SPEC,
    &heap_roots::SPEC,
    &heap_dominators::SPEC,
    &heap_classes::SPEC,
    &heap_sites::SPEC,
    &coverage::SPEC,
    &records::SPEC,
    &diagnostics::SPEC,
];

/// Tables that saved profiles have beside the common tables: what ranges of time need, `slices` without calls, and sums.
pub static RESOLVED_TABLES: [&TableSpec; 9] = [
    &border_events::SPEC,
    &event_objects::SPEC,
    &slices::SPEC,
    &call_functions::SPEC,
    &call_paths::SPEC,
    &call_threads::SPEC,
    &call_migrations::SPEC,
    &call_totals::SPEC,
    &allocation_sums::SPEC,
];

/// The table with a name.
#[must_use]
pub fn table(name: &str) -> Option<&'static TableSpec> {
    TABLES.iter().copied().find(|spec| spec.name == name)
}
