//! What the recorder added up itself.

use arrow_array::RecordBatch;
use perfuse_tables::call_sums;

use super::{batch, formatted_rows};
use crate::calls::*;

/// Thread, functions, calls, time with and without callees.
type Sum<'a> = (u32, &'a [u64], u64, i64, i64);

fn of(sums: &[Sum], options: &Options) -> Account {
    let mut table = call_sums::Builder::new();
    for (row, &(thread, functions, num_calls, total_ns, self_ns)) in (0..).zip(sums) {
        table.push(thread, functions, num_calls, total_ns, self_ns, 0, row);
    }
    let no_events = batch(&[]);
    account(|| vec![std::iter::once(no_events.clone())], std::iter::once(table.finish()), options).unwrap()
}

const SUMS: [Sum; 4] =
    [(0, &[1], 1, 40, 10), (0, &[2, 1], 5, 30, 23), (0, &[1, 2, 1], 2, 7, 7), (4, &[2], 3, 1, 1)];

#[test]
fn sums_are_calls_without_durations() {
    let account = of(&SUMS, &Options::default());
    let columns = [
        "function_id",
        "num_calls",
        "num_timed",
        "max_ns",
        "sum_ns",
        "self_ns",
        "total_ns",
        "recursive_calls",
    ];
    assert_eq!(formatted_rows(&account.functions, &columns), ["1 3 0 - 47 17 40 2", "2 8 0 - 31 24 31 0"]);
    let columns = ["thread_id", "first_ns", "num_calls", "max_depth", "busy_ns"];
    assert_eq!(formatted_rows(&account.threads, &columns), ["0 - 8 3 40", "4 - 3 1 1"]);
    let edges = of(&SUMS, &Options { edges: true, ..Options::default() }).edges.unwrap();
    let columns = ["caller_id", "function_id", "num_calls", "sum_ns"];
    assert_eq!(formatted_rows(&edges, &columns), ["2 1 2 7", "- 1 1 40", "1 2 5 30", "- 2 3 1"]);
    let columns = ["path_id", "parent_path_id", "thread_id", "num_calls", "total_ns", "self_ns"];
    let expected = ["0 - 0 1 40 10", "1 0 0 5 30 23", "2 1 0 2 7 7", "3 - 4 3 1 1"];
    assert_eq!(formatted_rows(&account.paths.batch(&account.path_rows), &columns), expected);
}

#[test]
fn sums_have_threads_but_no_time() {
    let only = |selection| of(&SUMS, &Options { selection, ..Options::default() }).totals.num_calls;
    assert_eq!(only(Selection { threads: Some(vec![4]), time_ns: None }), 3);
    assert_eq!(only(Selection { threads: None, time_ns: Some(0..i64::MAX) }), 0);
}

#[test]
fn deep_paths_take_no_more_time_than_they_are_long() {
    let deep: Vec<u64> = (0..200_000).collect();
    let account = of(&[(0, &deep, 1, 5, 5), (0, &[], 9, 9, 9)], &Options::default());
    assert_eq!(account.functions.num_rows(), 200_000);
    let last: RecordBatch = account.paths.batch(&account.path_rows);
    assert_eq!(formatted_rows(&last, &["path_id", "depth", "self_ns"]), ["199999 199999 5"]);
}
