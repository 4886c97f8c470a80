//! The common tables of a log.

mod calls;
mod counters;
mod coverage;
mod evidence;
mod heap;
mod lifetime;
mod memory;
mod moments;
mod pass;
mod program;
mod roots;
mod stacked;
mod threads;

use std::sync::Arc;

pub use evidence::fills;
use perfuse_tables::Offsets;

pub use self::calls::segments as call_segments;
pub use self::heap::totals as heapshot_totals;
pub use self::memory::totals as allocation_totals;
pub use self::roots::RootRanges;
use super::consts::EventByte;
use super::recording::LogData;
use perfuse_recording::{BatchStream, Placement, TableRequest};

/// The tables it fills besides `sources`, `clocks`, `records` and `diagnostics`.
pub const TABLES: &[&str] = &[
    "processes",
    "threads",
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
        "processes" | "threads" => threads::table(log, name, placement),
        "mappings" => program::mappings(log, placement),
        "modules" => program::modules(log, placement),
        "functions" => program::functions(log, placement),
        "code_objects" => program::code_objects(log, placement),
        "types" => program::types(log, placement),
        "frames" => stacked::frames(log, placement, request),
        "stacks" => stacked::stacks(log, placement, request),
        "samples" => stacked::samples(log, placement),
        "call_events" => calls::call_events(log, placement),
        "slices" => moments::slices(log, placement),
        "instants" => moments::instants(log, placement),
        "lock_events" => moments::lock_events(log, placement, request),
        "exceptions" => moments::exceptions(log, placement, request),
        "counters" => counters::counters(log, placement),
        "counter_samples" => counters::counter_samples(log, placement),
        "allocations" => memory::allocations(log, placement, request),
        "object_moves" => memory::object_moves(log, placement, request),
        "gc_handles" => memory::gc_handles(log, placement, request),
        "heap_snapshots" => heap::snapshots(log, placement),
        "heap_objects" => heap::objects(log, placement, request),
        "heap_references" => heap::references(log, placement, request),
        "heap_roots" => roots::heap_roots(log, placement, request),
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
    let functions = program::first_helper(names).saturating_add(count(survey.definitions.helpers.len()));
    let frames = u32::try_from(survey.definitions.num_frames).unwrap_or(u32::MAX);
    Offsets {
        source: 1,
        function: functions,
        module: count(names.modules.len()),
        code_object: count(program::machine_code(log).count()),
        mapping: count(survey.definitions.binaries.len()),
        sample: survey.count(EventByte::SAMPLE_HIT),
        slice: survey.num_events(),
        frame: frames,
        stack: frames,
        type_: count(names.types.len()),
        counter: count(survey.definitions.counters.len()),
        snapshot: count(survey.definitions.heapshots.len()),
        ..Offsets::default()
    }
}
