//! Rows of `slices`, and of the tables that profiles of samples consist of.

use arrow_array::RecordBatch;
use perfuse_tables::CallEvent::{Argument, Enter, Exit, TailExit};
use perfuse_tables::call_events;
use rustc_hash::FxHashSet;

use super::{batch, formatted_rows};
use crate::calls::*;

fn rows(events: &RecordBatch, columns: &[&str]) -> Vec<String> {
    let made = slices(|| std::iter::once(events.clone()), 100).unwrap();
    made.flat_map(|batch| formatted_rows(&batch, columns)).collect()
}

#[test]
fn slices_are_numbered_by_start_and_come_by_end() {
    let events =
        batch(&[(0, Enter, 1), (1, Enter, 2), (3, TailExit, 2), (3, Enter, 3), (4, Exit, 3), (9, Exit, 1)]);
    let columns = [
        "slice_id",
        "parent_slice_id",
        "depth",
        "function_id",
        "start_ns",
        "duration_ns",
        "self_ns",
        "end_reason",
    ];
    let expected = ["101 100 1 2 1 2 2 tail_call", "102 100 1 3 3 1 1 exit", "100 - 0 1 0 9 6 exit"];
    assert_eq!(rows(&events, &columns), expected);
}

#[test]
fn lost_starts_and_ends_are_marked() {
    let events = batch(&[(0, Enter, 1), (1, Exit, 5), (2, Exit, 1), (4, Exit, 8), (5, Enter, 2)]);
    let columns = [
        "slice_id",
        "parent_slice_id",
        "function_id",
        "start_ns",
        "duration_ns",
        "start_reason",
        "end_reason",
    ];
    let expected = [
        "102 101 5 1 0 lost exit",
        "101 100 1 0 2 entry exit",
        "100 - 8 0 4 lost exit",
        "103 - 2 5 0 entry truncated",
    ];
    assert_eq!(rows(&events, &columns), expected);
    assert_eq!(rows(&events, &["record_offset"]), ["1", "0", "3", "4"]);
}

#[test]
fn arguments_are_json() {
    let mut table = call_events::Builder::new();
    table.push(0, 0, Some(2), Enter, 1, None, 0, 0);
    table.push(0, 0, Some(2), Argument, 1, Some(7), 0, 8);
    table.push(0, 0, Some(2), Argument, 1, Some(u64::MAX), 0, 16);
    table.push(1, 0, Some(2), Enter, 2, None, 0, 24);
    table.push(2, 0, Some(2), Exit, 2, None, 0, 32);
    table.push(3, 0, Some(2), Exit, 1, None, 0, 40);
    let expected = ["2 - 2 call", "1 [7,18446744073709551615] 2 call"];
    assert_eq!(rows(&table.finish(), &["function_id", "args", "cpu", "kind"]), expected);
}

#[test]
fn slices_come_in_batches() {
    let events: Vec<_> = (0..100_000).flat_map(|at| [(2 * at, Enter, 1), (2 * at + 1, Exit, 1)]).collect();
    let batches: Vec<_> = events.chunks(1000).map(batch).collect();
    let made: Vec<_> = slices(|| batches.iter().cloned(), 0).unwrap().map(|batch| batch.num_rows()).collect();
    assert_eq!(made.iter().sum::<usize>(), 100_000);
    assert!(made.len() > 1 && made.iter().all(|&rows| rows < 70_000));
}

#[test]
fn a_trace_reads_like_samples() {
    let mut table = call_events::Builder::new();
    for (row, (ts_ns, thread, kind, function)) in (0..).zip([
        (10, 0, Enter, 4),
        (11, 0, Enter, 6),
        (13, 0, Exit, 6),
        (14, 0, Enter, 6),
        (15, 0, Exit, 6),
        (20, 0, Exit, 4),
        (12, 1, Enter, 4),
        (13, 1, Exit, 4),
    ]) {
        table.push(ts_ns, thread, None, kind, function, None, 3, row);
    }
    let events = table.finish();
    let account =
        account(|| vec![std::iter::once(events.clone())], std::iter::empty(), &Options::default()).unwrap();
    let first = FirstKeys { frame: 5, stack: 50, sample: 500 };
    let Sampled { frames, stacks } =
        Sampled::of(&account.paths, first, |function| (function == 6).then_some(9));
    let columns = ["frame_id", "function_id", "code_object_id", "kind", "unwound_by"];
    assert_eq!(formatted_rows(&frames, &columns), ["5 4 - traced trace", "6 6 9 jit trace"]);
    let columns = ["stack_id", "parent_stack_id", "frame_id", "depth"];
    assert_eq!(formatted_rows(&stacks, &columns), ["50 - 5 0", "51 50 6 1"]);
    let samples = Sampled::samples(&account.path_rows, first, &[2]);
    let columns =
        ["sample_id", "ts_ns", "thread_id", "stack_id", "weight", "weight_unit", "event", "record_offset"];
    let expected = [
        "500 10 0 50 7 ns wall-time 0",
        "501 10 0 50 1 calls calls 0",
        "502 11 0 51 3 ns wall-time 1",
        "503 11 0 51 2 calls calls 1",
        "504 12 1 50 1 ns wall-time 6",
        "505 12 1 50 1 calls calls 6",
    ];
    assert_eq!(formatted_rows(&samples, &columns), expected);
    // Of a part the stacks are the same ones.
    let selection = Selection { time_ns: Some(14..30), threads: None };
    let rows =
        path_rows(|| vec![std::iter::once(events.clone())], std::iter::empty(), &selection, &account.paths);
    let samples = Sampled::samples(&rows.unwrap(), first, &[3]);
    let expected =
        ["14 50 5 ticks wall-time", "14 50 1 calls calls", "14 51 1 ticks wall-time", "14 51 1 calls calls"];
    let columns = ["ts_ns", "stack_id", "weight", "weight_unit", "event"];
    assert_eq!(formatted_rows(&samples, &columns), expected);
}

/// The rows of calls of function 2 and within, of batches.
fn kept(batches: &[RecordBatch]) -> Vec<String> {
    let lost = LostEntries::of(batches.iter().cloned()).unwrap();
    let mut within = CallsWithin::new(std::iter::once(2).collect::<FxHashSet<u32>>().into(), lost);
    let columns = ["ts_ns", "kind", "function_id"];
    batches.iter().flat_map(|batch| formatted_rows(&within.rows(batch).unwrap(), &columns)).collect()
}

#[test]
fn events_of_some_functions_are_those_within_their_calls() {
    let events = batch(&[
        (0, Enter, 1),
        (1, Enter, 2),
        (2, Enter, 3),
        (3, Argument, 3),
        (4, Enter, 2),
        // 2 was left without an event of its own.
        (5, Exit, 3),
        (6, Exit, 2),
        (7, Enter, 3),
        (8, Exit, 3),
        (9, Exit, 1),
    ]);
    let expected = ["1 enter 2", "2 enter 3", "3 argument 3", "4 enter 2", "5 exit 3", "6 exit 2"];
    assert_eq!(kept(std::slice::from_ref(&events)), expected);
    // Batches end anywhere.
    assert_eq!(kept(&[events.slice(0, 3), events.slice(3, 7)]), expected);
}

#[test]
fn a_call_that_an_exception_leaves_ends_with_the_call_that_catches_it() {
    let events = batch(&[
        (0, Enter, 1),
        (1, Enter, 2),
        (2, Enter, 3),
        // 3 and 2 are left without events of their own.
        (5, Exit, 1),
        (6, Enter, 1),
        (7, Enter, 2),
        (8, Exit, 2),
        (9, Exit, 1),
    ]);
    let expected = ["1 enter 2", "2 enter 3", "5 exception_exit 2", "7 enter 2", "8 exit 2"];
    assert_eq!(kept(&[events]), expected);
}

#[test]
fn calls_from_before_the_recording_are_around_its_first_events() {
    let events = batch(&[
        (0, Enter, 1),
        (1, Exit, 1),
        // Their starts were lost.
        (2, Exit, 2),
        (3, Enter, 1),
        (4, Exit, 1),
        (5, TailExit, 3),
    ]);
    assert_eq!(kept(&[events]), ["0 enter 1", "1 exit 1", "2 exit 2"]);
}

#[test]
fn an_exit_without_a_call_is_not_the_end_of_a_call_from_before_the_recording() {
    let events = batch(&[(0, Enter, 1), (1, Exit, 2), (2, Exit, 1)]);
    assert_eq!(kept(&[events]), ["1 enter 2", "1 exit 2"]);
}
