//! Tests of the rows of small logs.

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use perfuse_recording::{Placement, Recording, TableRequest};
use perfuse_tables::access::{nullable, numbers, text};

use crate::recording::MonoLog;
use crate::tests::assemble::*;

fn rows(log: &MonoLog, name: &str) -> Vec<RecordBatch> {
    log.table(name, &Placement::alone(log), &TableRequest::default()).unwrap().collect()
}

fn texts(log: &MonoLog, table: &str, column: &'static str) -> Vec<Option<String>> {
    let batches = rows(log, table);
    let column = batches.iter().flat_map(|batch| {
        let column = text(batch, column).unwrap();
        (0..batch.num_rows()).map(move |row| column.get(row).map(str::to_owned)).collect::<Vec<_>>()
    });
    column.collect()
}

fn keys(log: &MonoLog, table: &str, column: &'static str) -> Vec<Option<u32>> {
    let batches = rows(log, table);
    let column = batches.iter().flat_map(|batch| {
        let column = numbers::<UInt32Type>(batch, column).unwrap();
        (0..batch.num_rows()).map(move |row| nullable(column, row)).collect::<Vec<_>>()
    });
    column.collect()
}

fn sleb(value: i8) -> Vec<u8> {
    assert!((-64..64).contains(&value));
    vec![value as u8 & 0x7f]
}

/// METADATA of a class at 0x1000 + `at`.
fn class(at: i8, name: &str) -> Vec<u8> {
    event(0x22, &[&[1], &sleb(at), &[0], &text_(name)])
}

fn text_(value: &str) -> Vec<u8> {
    super::assemble::text(value)
}

fn vtable(at: i8, class: i8) -> Vec<u8> {
    event(0x22, &[&[7], &sleb(at), &[0], &sleb(class)])
}

fn jit(method: i8, name: &str) -> Vec<u8> {
    event(0x43, &[&sleb(method), &[0], &[0], &text_(name)])
}

fn alloc(vtable: i8, frames: &[i8]) -> Vec<u8> {
    let methods: Vec<_> = frames.iter().map(|frame| *frame as u8 & 0x7f).collect();
    event(0x10, &[&sleb(vtable), &[0], &[16], &[frames.len() as u8], &methods])
}

#[test]
fn a_reused_address_is_resolved_by_time() {
    let log = log(&[buffer(&[
        class(1, "First"),
        class(2, "Second"),
        vtable(8, 1),
        alloc(8, &[]),
        vtable(8, 2),
        alloc(8, &[]),
        alloc(9, &[]),
    ])]);
    assert_eq!(texts(&log, "types", "name"), [Some("First".to_owned()), Some("Second".to_owned())]);
    assert_eq!(keys(&log, "allocations", "type_id"), [Some(0), Some(1), None]);
}

#[test]
fn a_late_name_applies_to_earlier_events() {
    let log =
        log(&[buffer(&[alloc(8, &[])]), buffer_of(THREAD, TIME + 10, &[vtable(8, 1), class(1, "Late")])]);
    assert_eq!(keys(&log, "allocations", "type_id"), [Some(0)]);
}

#[test]
fn equal_backtraces_are_one_stack() {
    // Methods are differences: 0x1000 is A, one higher is B, then back.
    let log = log(&[buffer(&[
        jit(0, "A"),
        jit(1, "B"),
        alloc(8, &[-1, 1]),
        alloc(8, &[-1, 1]),
        alloc(8, &[-1]),
        alloc(8, &[]),
    ])]);
    let stacks = keys(&log, "allocations", "stack_id");
    assert_eq!(stacks, [Some(1), Some(1), Some(0), None]);
    assert_eq!(keys(&log, "stacks", "parent_stack_id"), [None, Some(0)], "outermost first in the file");
    assert_eq!(keys(&log, "frames", "function_id"), [Some(0), Some(1)]);
}

#[test]
fn a_reused_thread_id_is_another_thread() {
    let start = event(0x22, &[&[5], &[0]]);
    let end = event(0x42, &[&[5], &[0]]);
    let named = |name: &str| event(0x02, &[&[5], &[0], &text_(name)]);
    let log = log(&[
        buffer_of(0x1000, TIME, &[start.clone(), named("one"), end.clone()]),
        buffer_of(0x1000, TIME + 50, &[start, named("two"), alloc(8, &[])]),
    ]);
    assert_eq!(texts(&log, "threads", "name"), [Some("one".to_owned()), Some("two".to_owned())]);
    assert_eq!(keys(&log, "allocations", "thread_id"), [Some(1)]);
    let threads = rows(&log, "threads");
    let ends = numbers::<Int64Type>(&threads[0], "end_ns").unwrap();
    assert_eq!([nullable(ends, 0), nullable(ends, 1)], [Some(TIME as i64 + 3), None]);
}

#[test]
fn a_pause_extends_from_stop_to_start() {
    let phase = |event: u8| super::assemble::event(0x11, &[&[event, 1]]);
    let log = log(&[buffer(&[phase(6), phase(7), phase(0), phase(5), phase(8), phase(9)])]);
    assert_eq!(
        texts(&log, "slices", "name"),
        [Some("major pause".to_owned()), Some("major collection".to_owned())]
    );
    let batches = rows(&log, "slices");
    let durations = numbers::<Int64Type>(&batches[0], "duration_ns").unwrap();
    let own = numbers::<Int64Type>(&batches[0], "self_ns").unwrap();
    assert_eq!((durations.values().to_vec(), own.values().to_vec()), (vec![3, 1], vec![2, 1]));
}

#[test]
fn a_root_has_its_registered_memory() {
    let register = event(0x46, &[&sleb(16), &[64], &[3], &sleb(8), &text_("Static Fields")]);
    let root = event(0x36, &[&[2], &sleb(24), &[0], &sleb(-8), &[1]]);
    let log = log(&[buffer(&[
        class(1, "Owner"),
        vtable(8, 1),
        register,
        event(0x06, &[]),
        root,
        event(0x16, &[]),
    ])]);
    assert_eq!(texts(&log, "heap_roots", "kind"), [Some("static".to_owned()), Some("unknown".to_owned())]);
    assert_eq!(texts(&log, "heap_roots", "name"), [Some("Static Fields".to_owned()), None]);
    assert_eq!(keys(&log, "heap_roots", "owner_type_id"), [Some(0), None]);
    assert_eq!(keys(&log, "heap_roots", "snapshot_id"), [Some(0), Some(0)]);
}

#[test]
fn continued_references_belong_to_the_same_object() {
    let object =
        |size: u8, refs: &[u8]| event(0x26, &[&[4], &sleb(8), &[size, 1, (refs.len() / 2) as u8], refs]);
    let log =
        log(&[buffer(&[event(0x06, &[]), object(40, &[16, 1]), object(0, &[24, 2]), event(0x16, &[])])]);
    assert_eq!(rows(&log, "heap_objects").iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    let references = rows(&log, "heap_references");
    let column = |name| numbers::<UInt64Type>(&references[0], name).unwrap().values().to_vec();
    assert_eq!(column("owner_address"), [0x8020, 0x8020]);
    assert_eq!(column("target_address"), [0x8008, 0x8010]);
    assert_eq!(column("field_offset"), [16, 24]);
}

#[test]
fn a_handle_that_is_never_freed_has_no_end() {
    let made = |number: u8| event(0x41, &[&[2, number], &[0]]);
    let log = log(&[buffer(&[made(1), event(0x51, &[&[2, 1]]), made(1), made(2)])]);
    let batches = rows(&log, "gc_handles");
    let ends = numbers::<Int64Type>(&batches[0], "destroyed_ns").unwrap();
    let freed = (0..batches[0].num_rows()).filter(|row| nullable(ends, *row).is_some()).count();
    assert_eq!((batches[0].num_rows(), freed), (3, 1));
}

#[test]
fn counter_values_at_time_0_have_the_time_of_their_buffer() {
    let describe = [uleb(0x200), text_("plain"), vec![3, 0, 0, 1]].concat();
    let values = [vec![0x47], uleb((TIME + 1).wrapping_neg()), vec![1, 3, 5, 0]].concat();
    let later = [vec![0x81], uleb(TIME + 9)].concat();
    let log = log(&[buffer(&[event(0x37, &[&[1], &describe]), values, later])]);
    assert_eq!(log.survey().events.span, Some((TIME, TIME + 9)));
    let batches = rows(&log, "counter_samples");
    assert_eq!(numbers::<Int64Type>(&batches[0], "ts_ns").unwrap().values().to_vec(), [TIME as i64]);
}

#[test]
fn counters_add_up_except_performance_counters() {
    let describe =
        |section: &[u8], name: &[u8], index: u8| [section, name, &[3], &[0], &[0], &[index]].concat();
    let plain = describe(&uleb(0x200), &text_("plain"), 1);
    let performance = describe(&[uleb(0x8000), text_("Memory")].concat(), &text_("absolute"), 2);
    let values = event(0x47, &[&[1, 3, 5, 2, 3, 5, 0]]);
    let log = log(&[buffer(&[event(0x37, &[&[2], &plain, &performance]), values.clone(), values])]);
    assert_eq!(texts(&log, "counters", "section"), [Some("GC".to_owned()), Some("Memory".to_owned())]);
    let batches = rows(&log, "counter_samples");
    let values = numbers::<arrow_array::types::Float64Type>(&batches[0], "value").unwrap();
    assert_eq!(values.values().to_vec(), [5.0, 5.0, 10.0, 5.0]);
}
