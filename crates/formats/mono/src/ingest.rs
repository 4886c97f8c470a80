//! The common tables of a log: which there are, which have rows, and their keys.

mod counters;
mod coverage;
mod memory;
mod runtime_events;
mod samples;
mod scan;

mod calls;
mod heap;
mod program;
mod threads;

use std::sync::Arc;

use perfuse_recording::{BatchStream, Placement, TableRequest};
use perfuse_tables::Offsets;

use crate::consts::{EventByte, KindSet};
use crate::log::LogData;
use crate::open_calls;
use crate::stacks::with_stack;

pub use crate::ingest::calls::segments as call_segments;
pub use crate::ingest::heap::totals as heapshot_totals;
pub use crate::ingest::memory::totals as allocation_totals;

/// The tables it fills besides `sources`, `clocks`, `records` and `diagnostics`.
pub const TABLES: &[&str] = &[
    "processes",
    "threads",
    "thread_names",
    "mappings",
    "modules",
    "functions",
    "code_objects",
    "frames",
    "stacks",
    "samples",
    "call_events",
    "slices",
    "instants",
    "lock_events",
    "exceptions",
    "counters",
    "counter_samples",
    "types",
    "allocations",
    "object_moves",
    "gc_handles",
    "heap_snapshots",
    "heap_objects",
    "heap_references",
    "heap_roots",
    "coverage",
];

/// Creates one table of a log in batches; `None` for a table that a log does not have.
pub fn table(
    log: &Arc<LogData>,
    name: &str,
    placement: &Placement,
    request: &TableRequest,
) -> Option<BatchStream> {
    Some(match name {
        "processes" | "threads" | "thread_names" => return threads::table(log, name, placement),
        "mappings" => program::mappings(log, placement),
        "modules" => program::modules(log, placement),
        "functions" => program::functions(log, placement),
        "code_objects" => program::code_objects(log, placement),
        "types" => program::types(log, placement),
        "frames" => samples::frames(log, placement, request),
        "stacks" => samples::stacks(log, placement, request),
        "samples" => samples::samples(log, placement),
        "call_events" => calls::call_events(log, placement),
        "slices" => runtime_events::slices(log, placement),
        "instants" => runtime_events::instants(log, placement),
        "lock_events" => runtime_events::lock_events(log, placement, request),
        "exceptions" => runtime_events::exceptions(log, placement, request),
        "counters" => counters::counters(log, placement),
        "counter_samples" => counters::counter_samples(log, placement),
        "allocations" => memory::allocations(log, placement, request),
        "object_moves" => memory::object_moves(log, placement, request),
        "gc_handles" => memory::gc_handles(log, placement, request),
        "heap_snapshots" => heap::snapshots(log, placement),
        "heap_objects" => heap::objects(log, placement, request),
        "heap_references" => heap::references(log, placement, request),
        "heap_roots" => heap::heap_roots(log, placement, request),
        "coverage" => coverage::coverage(log, placement),
        "records" => program::records(log, placement),
        _ => return None,
    })
}

/// Upper bounds of the number of keys that the tables use.
pub fn extent(log: &LogData) -> Offsets {
    let survey = log.survey();
    let names = log.names();
    let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
    let functions =
        program::first_helper(names).saturating_add(count(survey.events.definitions.helpers.len()));
    let recorded = survey.events.definitions.num_frames;
    // Where stacks are those of open calls, each is of an enter, or of a leave whose enter was lost.
    let has_open_calls = open_calls::kinds(survey) != KindSet::default();
    let calls = open_calls::CALLS.iter().fold(0u64, |sum, byte| sum.saturating_add(survey.count(*byte)));
    let with_open_calls = recorded.saturating_add(if has_open_calls { calls } else { 0 });
    let stacks = u32::try_from(with_open_calls).unwrap_or(u32::MAX);
    Offsets {
        source: 1,
        function: functions,
        module: count(names.modules.len()),
        code_object: count(program::machine_code(log).count()),
        mapping: count(survey.events.definitions.binaries.len()),
        sample: survey.count(EventByte::SAMPLE_HIT),
        slice: survey.num_events(),
        frame: stacks,
        stack: stacks,
        type_: count(names.types.len()),
        counter: count(survey.events.definitions.counters.len()),
        snapshot: count(survey.events.definitions.heapshots.len()),
        ..Offsets::default()
    }
}

/// Events that produce rows of a table; empty for tables that every log fills.
fn source_events(table: &str) -> &'static [EventByte] {
    match table {
        "samples" => &[EventByte::SAMPLE_HIT],
        "call_events" => &[EventByte::METHOD_ENTER, EventByte::METHOD_LEAVE, EventByte::METHOD_EXC_LEAVE],
        "slices" => &[
            EventByte::GC_EVENT,
            EventByte::GC_FINALIZE_START,
            EventByte::GC_FINALIZE_OBJECT_START,
            EventByte::MONITOR,
            EventByte::MONITOR_BT,
            EventByte::MONITOR_CONTENTION,
            EventByte::MONITOR_CONTENTION_BT,
        ],
        "lock_events" => &[
            EventByte::MONITOR,
            EventByte::MONITOR_BT,
            EventByte::MONITOR_CONTENTION,
            EventByte::MONITOR_DONE,
            EventByte::MONITOR_FAIL,
            EventByte::MONITOR_CONTENTION_BT,
        ],
        "exceptions" => &[EventByte::THROW, EventByte::THROW_BT, EventByte::CLAUSE],
        "counters" => &[EventByte::COUNTERS_DESC],
        "counter_samples" => &[EventByte::COUNTERS],
        "allocations" => &[EventByte::ALLOC, EventByte::ALLOC_BT],
        "object_moves" => &[EventByte::GC_MOVE],
        "gc_handles" => &[
            EventByte::GC_HANDLE_CREATED,
            EventByte::GC_HANDLE_CREATED_BT,
            EventByte::GC_HANDLE_DESTROYED,
            EventByte::GC_HANDLE_DESTROYED_BT,
        ],
        "heap_snapshots" => &[EventByte::HEAP_START],
        "heap_objects" | "heap_references" => &[EventByte::HEAP_OBJECT],
        "heap_roots" => &[EventByte::HEAP_ROOT],
        "coverage" => &[EventByte::COVERAGE_METHOD],
        _ => &[],
    }
}

/// Whether a log has rows of a table.
pub fn fills(log: &LogData, table: &str) -> bool {
    let survey = log.survey();
    let events = source_events(table);
    if table == "stacks" || table == "frames" {
        let with_stack = with_stack(survey);
        return survey.events.kinds.iter().any(|kinds| kinds.meets(with_stack));
    }
    TABLES.contains(&table) && (events.is_empty() || events.iter().any(|event| survey.count(*event) > 0))
}
