//! Arbitrary events: results are compared with a simple interpretation that handles one event at a time.

use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use perfuse_tables::CallEvent::{self, Enter, ExceptionExit, Exit, TailExit};
use perfuse_tables::call_events;
use proptest::prelude::*;

use super::formatted_rows;
use crate::calls::*;

/// Of a thread: what happens, to which function, how long after the event before.
type Step = (u32, CallEvent, u32, i64);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let kind = prop_oneof![4 => Just(Enter), 3 => Just(Exit), 1 => Just(TailExit), 1 => Just(ExceptionExit)];
    prop::collection::vec((0u32..3, kind, 0u32..4, 0i64..20), 0..120)
}

fn table(steps: &[Step]) -> Vec<RecordBatch> {
    let mut now = 0;
    let mut table = call_events::Builder::new();
    let mut batches = Vec::new();
    for (row, &(thread, kind, function, after)) in (0..).zip(steps) {
        now += after;
        table.push(now, thread, Some(thread / 2), kind, function, None, 0, row);
        if row % 7 == 6 {
            batches.push(table.finish());
        }
    }
    batches.push(table.finish());
    batches
}

/// Exits, by step, that show that all calls of their thread were left before: none of these has an exit of its own.
fn exits_after_all(steps: &[Step]) -> Vec<usize> {
    let ends_itself = |thread: u32, enter: usize| {
        let mut stack = Vec::new();
        for (at, &(_, kind, function, _)) in steps.iter().enumerate().filter(|(_, step)| step.0 == thread) {
            if kind == Enter {
                stack.push((function, at));
            } else if let Some(open) = stack.iter().rposition(|&(open, _)| open == function)
                && stack.drain(open..).next() == Some((function, enter))
            {
                return true;
            }
        }
        false
    };
    let mut stacks: [Vec<(u32, usize)>; 3] = Default::default();
    let mut num_left = [0; 3];
    let mut found = Vec::new();
    for (at, &(thread, kind, function, _)) in steps.iter().enumerate() {
        let stack = &mut stacks[thread as usize];
        if kind == Enter {
            stack.push((function, at));
        } else if let Some(open) = stack.iter().rposition(|&(open, _)| open == function) {
            stack.truncate(open);
            num_left[thread as usize] = num_left[thread as usize].min(open);
        } else if let Some(&(_, outermost)) = stack.first() {
            let is_first = steps[..outermost].iter().all(|step| step.0 != thread);
            let is_caught = kind != ExceptionExit || stack.len() == num_left[thread as usize];
            if is_caught && !is_first && !stack.iter().any(|&(_, enter)| ends_itself(thread, enter)) {
                num_left[thread as usize] = stack.len();
                found.push(at);
            }
        }
    }
    found
}

/// Durations of each function's calls that were seen whole, sorted.
fn durations(steps: &[Step]) -> BTreeMap<u32, Vec<u64>> {
    let mut durations: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let mut stacks: [Vec<(u32, i64)>; 3] = Default::default();
    let mut now = 0;
    let after_all = exits_after_all(steps);
    for (at, &(thread, kind, function, after)) in steps.iter().enumerate() {
        now += after;
        let stack = &mut stacks[thread as usize];
        if kind == Enter {
            stack.push((function, now));
            continue;
        }
        let open = stack.iter().rposition(|&(open, _)| open == function);
        if let Some(open) = open.or(after_all.contains(&at).then_some(0)) {
            for (function, from) in stack.drain(open..) {
                durations.entry(function).or_default().push((now - from) as u64);
            }
        }
    }
    durations.values_mut().for_each(|all| all.sort_unstable());
    durations
}

/// What each thread spent in each path, with paths identified by their functions: their numbers follow the order in which they were found
/// which is not that of the events where an end without a beginning waits for the segments before.
fn path_rows_by_functions(account: &Account) -> Vec<(Vec<u32>, u32, [u64; 3], i64)> {
    let functions = |row: &PathRow| -> Vec<u32> {
        let mut next = account.paths.all().get(row.path as usize);
        let path = std::iter::from_fn(|| {
            let here = next?;
            next = account.paths.all().get(here.parent as usize);
            Some(here.function_id)
        });
        path.collect()
    };
    let formatted_rows = |row: &PathRow| {
        (functions(row), row.thread_id, [row.num_calls, row.total_ns, row.self_ns], row.first_ns)
    };
    let mut rows: Vec<_> = account.path_rows.iter().map(formatted_rows).collect();
    rows.sort_unstable();
    rows
}

/// Sum of a column of numbers.
fn sum(batch: &RecordBatch, column: &str) -> u64 {
    formatted_rows(batch, &[column]).iter().map(|value| value.parse::<u64>().unwrap()).sum()
}

/// Durations on both sides of where they are counted and of where they need 64 bits, few and many of them.
fn lengths() -> impl Strategy<Value = Vec<u64>> {
    let around = u64::from(u32::MAX);
    let one = prop_oneof![0u64..9, 2044u64..2052, around - 3..around + 3, 1u64 << 40..(1 << 40) + 9];
    let some = prop::collection::vec(one, 1..60);
    (some, prop_oneof![Just(1), 1usize..900]).prop_map(|(some, times)| some.repeat(times))
}

proptest! {
    #[test]
    fn long_durations_have_the_same_figures(mut lengths in lengths()) {
        let mut durations = Durations::default();
        lengths.iter().for_each(|&length| durations.push(length));
        let (front, back) = lengths.split_at(lengths.len() / 3);
        let [mut joined, other] = [front, back].map(|lengths| {
            let mut durations = Durations::default();
            lengths.iter().for_each(|&length| durations.push(length));
            durations
        });
        joined.append(other);
        prop_assert_eq!(joined.figures(Rank::Nearest), durations.clone().figures(Rank::Nearest));
        lengths.sort_unstable();
        let num = lengths.len();
        let of = |indexes: [usize; 3]| {
            let [median_ns, p90_ns, p99_ns] = indexes.map(|index| lengths[index]);
            let (min_ns, max_ns, sum_ns) = (lengths[0], lengths[num - 1], lengths.iter().sum());
            Some(Figures { min_ns, median_ns, p90_ns, p99_ns, max_ns, sum_ns })
        };
        let nearest = of([50, 90, 99].map(|percent| (num * percent).div_ceil(100) - 1));
        prop_assert_eq!(durations.clone().figures(Rank::Nearest), nearest);
        let llvm = of([num / 2, (num as f64 * 0.9) as usize, (num as f64 * 0.99) as usize]);
        prop_assert_eq!(durations.figures(Rank::Llvm), llvm);
    }

    #[test]
    fn figures_are_those_of_the_sorted_durations(steps in steps()) {
        let batches = table(&steps);
        let account = account(|| vec![batches.iter().cloned()], std::iter::empty(), &Options::default()).unwrap();
        let columns = ["function_id", "num_timed", "min_ns", "median_ns", "p90_ns", "p99_ns", "max_ns", "sum_ns"];
        let timed = |row: &String| row.split(' ').nth(1) != Some("0");
        let formatted_rows: Vec<_> = formatted_rows(&account.functions, &columns).into_iter().filter(timed).collect();
        let expected = durations(&steps).into_iter().map(|(function, all)| {
            let share = |percent: usize| all.iter().copied().nth((all.len() * percent).div_ceil(100) - 1).unwrap();
            let (num, sum) = (all.len(), all.iter().sum::<u64>());
            format!("{function} {num} {} {} {} {} {} {sum}", all[0], share(50), share(90), share(99), all[num - 1])
        });
        prop_assert_eq!(formatted_rows, expected.collect::<Vec<_>>());
    }

    #[test]
    fn every_grouping_counts_the_same_calls(steps in steps(), from in 0i64..500, length in 0i64..900) {
        let batches = table(&steps);
        for time_ns in [None, Some(from..from + length)] {
            let selection = Selection { threads: None, time_ns };
            let of = |by, recursive_only| {
                let selection = selection.clone();
                let options = Options { by, selection, recursive_only, edges: true, ..Options::default() };
                account(|| vec![batches.iter().cloned()], std::iter::empty(), &options).unwrap()
            };
            let whole = of(CallGrouping::Function, false);
            let (calls, busy) = (whole.totals.num_calls, sum(&whole.threads, "busy_ns"));
            let paths = whole.paths.batch(&whole.path_rows);
            prop_assert_eq!((sum(&paths, "num_calls"), sum(&paths, "self_ns")), (calls, busy));
            let rows = path_rows(|| vec![batches.iter().cloned()], std::iter::empty(), &selection, &whole.paths);
            prop_assert_eq!(&rows.unwrap(), &whole.path_rows);
            for (by, recursive_only) in [(CallGrouping::Thread, false), (CallGrouping::Cpu, false), (CallGrouping::Function, true)] {
                let other = of(by, recursive_only);
                prop_assert_eq!(&other.path_rows, &whole.path_rows);
                prop_assert_eq!(other.totals, whole.totals);
                for formatted_rows in [&other.functions, other.edges.as_ref().unwrap()] {
                    prop_assert_eq!((sum(formatted_rows, "num_calls"), sum(formatted_rows, "self_ns")), (calls, busy));
                }
                for column in ["total_ns", "recursive_calls", "num_unwound", "num_lost", "num_truncated"] {
                    prop_assert_eq!(sum(&other.functions, column), sum(&whole.functions, column), "{}", column);
                }
            }
        }
    }

    #[test]
    fn segments_are_worth_what_they_are_together(
        steps in steps(),
        lengths in prop::collection::vec(0usize..40, 1..9),
        from in 0i64..500,
        length in 0i64..900,
    ) {
        let batches = table(&steps);
        let cut = || {
            let (mut left, mut segments) = (&batches[..], Vec::new());
            for &length in &lengths {
                let (segment, rest) = left.split_at(length.min(left.len()));
                segments.push(segment.iter().cloned());
                left = rest;
            }
            segments.push(left.iter().cloned());
            segments
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        let selections = [None, Some(from..from + length)].map(|time_ns| Selection { threads: None, time_ns });
        for (by, recursive_only) in [(CallGrouping::Function, false), (CallGrouping::Thread, true), (CallGrouping::Cpu, false)] {
            for selection in &selections {
                let selection = selection.clone();
                let options = Options { by, selection, recursive_only, edges: true, ..Options::default() };
                let whole = account(|| vec![batches.iter().cloned()], std::iter::empty(), &options).unwrap();
                let parted = pool.install(|| account(cut, std::iter::empty(), &options)).unwrap();
                prop_assert_eq!(&parted.functions, &whole.functions);
                prop_assert_eq!(&parted.edges, &whole.edges);
                prop_assert_eq!(&parted.threads, &whole.threads);
                prop_assert_eq!(&parted.migrations, &whole.migrations);
                prop_assert_eq!(parted.totals, whole.totals);
                prop_assert_eq!(path_rows_by_functions(&parted), path_rows_by_functions(&whole));
            }
        }
    }

    #[test]
    fn slices_lie_within_each_other(steps in steps()) {
        let batches = table(&steps);
        let made: Vec<_> = slices(|| batches.iter().cloned(), 0).unwrap().collect();
        let columns = ["slice_id", "parent_slice_id", "thread_id", "start_ns", "duration_ns", "depth", "self_ns"];
        let rows = made.iter().flat_map(|batch| formatted_rows(batch, &columns));
        let row = |row: String| row.split(' ').map(|value| value.parse().ok()).collect::<Vec<Option<i64>>>();
        let by_id: BTreeMap<i64, Vec<Option<i64>>> = rows.map(row).map(|row| (row[0].unwrap(), row)).collect();
        let whole = account(|| vec![batches.iter().cloned()], std::iter::empty(), &Options::default()).unwrap();
        prop_assert_eq!(by_id.len() as u64, whole.totals.num_calls + whole.totals.counts.num_orphans);
        prop_assert!(by_id.keys().copied().eq(0..by_id.len() as i64));
        let busy: i64 = by_id.values().map(|row| row[6].unwrap()).sum();
        prop_assert_eq!(busy as u64, sum(&whole.threads, "busy_ns"));
        for row in by_id.values() {
            let Some(parent) = row[1] else {
                prop_assert_eq!(row[5], Some(0));
                continue;
            };
            let (row, parent) = (row.iter().map(|v| v.unwrap()).collect::<Vec<_>>(), &by_id[&parent]);
            let [id, thread, start, length, depth] = [0, 2, 3, 4, 5].map(|column| parent[column].unwrap());
            prop_assert!(id < row[0] && thread == row[2] && depth + 1 == row[5]);
            prop_assert!(start <= row[3] && row[3] + row[4] <= start + length);
        }
    }
}
