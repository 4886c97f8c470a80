//! Which tables have rows, by the kinds of events in a log.

use super::TABLES;
use crate::consts::EventByte;
use crate::recording::LogData;
use crate::stacks::WITH_STACK;

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
        return survey.kinds.iter().any(|kinds| kinds.meets(WITH_STACK));
    }
    TABLES.contains(&table) && (events.is_empty() || events.iter().any(|event| survey.count(*event) > 0))
}
