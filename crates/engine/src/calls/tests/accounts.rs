//! What calls cost.

use arrow_array::RecordBatch;
use perfuse_tables::CallEvent::{Enter, ExceptionExit, Exit, TailExit};
use perfuse_tables::{CallEvent, call_events};

use super::{batch, formatted_rows};
use crate::calls::*;

fn of(events: &RecordBatch, options: &Options) -> Account {
    account(|| vec![std::iter::once(events.clone())], std::iter::empty(), options).unwrap()
}

fn of_functions(events: &[(i64, CallEvent, u32)], columns: &[&str]) -> Vec<String> {
    formatted_rows(&of(&batch(events), &Options::default()).functions, columns)
}

#[test]
fn recursion_counts_once_in_totals() {
    let events = [(0, Enter, 1), (1, Enter, 2), (2, Enter, 1), (5, Exit, 1), (7, Exit, 2), (9, Exit, 1)];
    let columns = ["function_id", "num_calls", "sum_ns", "self_ns", "total_ns", "recursive_calls"];
    assert_eq!(of_functions(&events, &columns), ["1 2 12 6 9 1", "2 1 6 3 6 0"]);
}

#[test]
fn only_calls_that_were_seen_whole_have_a_duration() {
    let events = [(2, Exit, 7), (3, Enter, 1), (5, Exit, 1), (6, Enter, 1), (9, Enter, 2)];
    let columns = [
        "function_id",
        "num_calls",
        "num_timed",
        "max_ns",
        "sum_ns",
        "total_ns",
        "num_lost",
        "num_truncated",
    ];
    assert_eq!(of_functions(&events, &columns), ["1 2 1 2 2 5 0 1", "2 1 0 - 0 0 0 1", "7 1 0 - 0 0 1 0"]);
}

#[test]
fn ways_to_end_are_counted() {
    let events = [
        (0, Enter, 1),
        (1, Enter, 2),
        (2, TailExit, 2),
        (2, Enter, 2),
        (3, Exit, 9),
        (4, ExceptionExit, 2),
        (5, Enter, 2),
        (8, Exit, 1),
    ];
    let columns = ["function_id", "num_calls", "num_timed", "num_tail_calls", "num_unwound", "num_orphans"];
    assert_eq!(of_functions(&events, &columns), ["1 1 1 0 0 0", "2 3 3 1 2 0", "9 0 0 0 0 1"]);
}

#[test]
fn percentiles_are_values_that_occurred() {
    let mut events = Vec::new();
    let mut now = 0;
    // 10 calls of 10, 20 ... 100 ns, then two so long that they need 64 bits.
    for length in [50, 20, 100, 10, 30, 90, 40, 60, 80, 70, 5_000_000_000, 6_000_000_000] {
        events.extend([(now, Enter, 1), (now + length, Exit, 1)]);
        now += length;
    }
    let columns = ["min_ns", "median_ns", "p90_ns", "p99_ns", "max_ns", "sum_ns"];
    let of_rank = |events: &[_], rank| {
        let options = Options { rank, ..Options::default() };
        formatted_rows(&of(&batch(events), &options).functions, &columns)
    };
    assert_eq!(of_rank(&events[..20], Rank::Nearest), ["10 50 90 100 100 550"]);
    assert_eq!(of_rank(&events[..20], Rank::Llvm), ["10 60 100 100 100 550"]);
    assert_eq!(of_rank(&events, Rank::Nearest), ["10 60 5000000000 6000000000 6000000000 11000000550"]);
    assert_eq!(of_rank(&events[..2], Rank::Llvm), ["50 50 50 50 50 50"]);
}

/// Two threads in turns on two processors.
fn threads() -> RecordBatch {
    let mut table = call_events::Builder::new();
    for (row, (ts_ns, thread, cpu, kind, function)) in (0..).zip([
        (0, 0, Some(0), Enter, 1),
        (1, 0, Some(0), Enter, 2),
        (3, 0, Some(1), Exit, 2),
        (2, 1, Some(1), Enter, 1),
        (8, 1, Some(1), Exit, 1),
        (4, 0, Some(0), Enter, 2),
        (5, 0, Some(1), Exit, 2),
        (6, 0, None, Enter, 2),
        (9, 0, Some(1), Exit, 2),
        (9, 0, Some(1), Exit, 1),
    ]) {
        table.push(ts_ns, thread, cpu, kind, function, None, 0, row);
    }
    table.finish()
}

#[test]
fn functions_are_counted_by_thread_or_processor() {
    let columns = ["function_id", "thread_id", "cpu", "num_calls", "sum_ns", "self_ns"];
    let by = |by| formatted_rows(&of(&threads(), &Options { by, ..Options::default() }).functions, &columns);
    assert_eq!(by(CallGrouping::Function), ["1 - - 2 15 9", "2 - - 3 6 6"]);
    assert_eq!(by(CallGrouping::Thread), ["1 0 - 1 9 3", "1 1 - 1 6 6", "2 0 - 3 6 6"]);
    assert_eq!(by(CallGrouping::Cpu), ["1 - 0 1 9 3", "1 - 1 1 6 6", "2 - 0 2 3 3", "2 - - 1 3 3"]);
}

#[test]
fn edges_are_callers_and_what_they_call() {
    let events = [(0, Enter, 1), (1, Enter, 2), (2, Enter, 2), (5, Exit, 2), (7, Exit, 2), (9, Exit, 1)];
    let options = Options { edges: true, ..Options::default() };
    let columns = ["caller_id", "function_id", "num_calls", "sum_ns", "total_ns", "recursive_calls"];
    let edges = of(&batch(&events), &options).edges.unwrap();
    assert_eq!(formatted_rows(&edges, &columns), ["- 1 1 9 9 0", "1 2 1 6 6 0", "2 2 1 3 3 0"]);
    assert!(of(&batch(&events), &Options::default()).edges.is_none());
}

#[test]
fn requested_functions_are_counted() {
    let events = [(0, Enter, 1), (1, Enter, 2), (2, Enter, 1), (5, Exit, 1), (7, Exit, 2), (9, Exit, 1)];
    let columns = ["function_id", "num_calls", "num_timed", "sum_ns"];
    let some = Options { functions: Some(vec![2]), ..Options::default() };
    assert_eq!(formatted_rows(&of(&batch(&events), &some).functions, &columns), ["2 1 1 6"]);
    let recursive = Options { recursive_only: true, edges: true, ..Options::default() };
    let account = of(&batch(&events), &recursive);
    assert_eq!(formatted_rows(&account.functions, &columns), ["1 2 1 3", "2 1 0 0"]);
    assert_eq!(account.totals.num_calls, 3);
}

#[test]
fn threads_have_rows() {
    let account = of(&threads(), &Options::default());
    let columns = [
        "thread_id",
        "first_ns",
        "last_ns",
        "num_events",
        "num_calls",
        "max_depth",
        "busy_ns",
        "num_migrations",
    ];
    assert_eq!(formatted_rows(&account.threads, &columns), ["0 0 9 8 4 2 9 3", "1 2 8 2 1 1 6 0"]);
    let columns = ["thread_id", "from_cpu", "to_cpu", "num_migrations"];
    assert_eq!(formatted_rows(&account.migrations, &columns), ["0 0 1 2", "0 1 0 1"]);
    let CallTotals { num_events, num_calls, span_ns, .. } = account.totals;
    assert_eq!((num_events, num_calls, span_ns), (10, 5, Some((0, 9))));
}

#[test]
fn a_selection_is_all_that_is_looked_at() {
    let selection = Selection { threads: Some(vec![0]), time_ns: Some(2..5) };
    let account = of(&threads(), &Options { selection, ..Options::default() });
    let columns = ["function_id", "num_calls", "num_timed", "total_ns", "num_lost", "num_truncated"];
    assert_eq!(formatted_rows(&account.functions, &columns), ["1 1 0 3 1 1", "2 2 1 2 1 0"]);
    assert_eq!(formatted_rows(&account.threads, &["thread_id", "num_events", "busy_ns"]), ["0 2 3"]);
    let columns = ["path_id", "num_calls", "self_ns", "first_ns"];
    assert_eq!(formatted_rows(&account.paths.batch(&account.path_rows), &columns), ["0 1 1 2", "1 2 2 2"]);
}

#[test]
fn no_events_give_empty_tables() {
    let account = of(&batch(&[]), &Options::default());
    assert_eq!((account.functions.num_rows(), account.threads.num_rows()), (0, 0));
    assert_eq!(account.totals, CallTotals::default());
}
