//! Selections by time, thread and function.

use perfuse_tables::CallEvent;
use proptest::prelude::*;

use super::*;
use crate::consts::Action;
use crate::convert::RecordSelection;
use crate::writer::{BufferStart, BufferWriter, FdrWriter, LogSpec, TscStamp};

const ENTER: i32 = CallEvent::Enter as i32;
const EXIT: i32 = CallEvent::Exit as i32;
const ARGUMENT: i32 = CallEvent::Argument as i32;

/// A log of one thread: `(ticks, action, function)`.
fn log_of(calls: &[(u64, Action, u32)]) -> XRay {
    let spec = LogSpec {
        mode: Mode::Fdr,
        version: 5,
        endian: Endian::Little,
        cycle_frequency: 1000,
        tsc_flags: (true, true),
        buffer_size: 4096,
    };
    let mut writer = FdrWriter::new(Vec::new(), spec).unwrap();
    let at = TscStamp { tsc: calls[0].0, cpu: 0 };
    let mut buffer =
        BufferWriter::new(writer.dialect(), &BufferStart { thread_ids: (1, 1), wall: (1, 0), at });
    for &(tsc, action, function) in calls {
        buffer.call(TscStamp { tsc, cpu: 0 }, action, function).unwrap();
        if action == Action::ENTRY_ARGS {
            assert!(buffer.argument(function.into()));
        }
    }
    writer.write(&mut buffer).unwrap();
    of_bytes(&writer.finish().unwrap())
}

/// `(ticks, kind, function)` of a selection of a log of one thread.
fn cut(log: &XRay, selection: RecordSelection) -> Vec<(i64, i32, u64)> {
    let (bytes, done) = converted(&[log], &Options { selection, ..Options::like(log) });
    let rows: Vec<_> =
        rows(&of_bytes(&bytes)).into_values().flatten().map(|row| (row.0, row.2, row.3)).collect();
    assert_eq!(rows.iter().filter(|row| row.1 != ARGUMENT).count() as u64, done.num_calls);
    rows
}

fn range(ticks: std::ops::Range<u64>) -> RecordSelection {
    RecordSelection { ticks: Some(ticks), ..RecordSelection::default() }
}

const NESTED: &[(u64, Action, u32)] = &[
    (10, Action::ENTRY_ARGS, 1),
    (20, Action::ENTRY, 2),
    (30, Action::EXIT, 2),
    (40, Action::ENTRY, 3),
    (50, Action::EXIT, 3),
    (60, Action::ENTRY, 4),
    (70, Action::EXIT, 4),
    (80, Action::EXIT, 1),
];

#[test]
fn calls_that_overlap_are_whole_and_so_are_those_around_them() {
    let log = log_of(NESTED);
    let around = vec![(10, ENTER, 1), (10, ARGUMENT, 1)];
    let third = vec![(40, ENTER, 3), (50, EXIT, 3)];
    let end = vec![(80, EXIT, 1)];
    assert_eq!(cut(&log, range(35..55)), [around.clone(), third.clone(), end.clone()].concat());
    assert_eq!(cut(&log, range(45..46)), [around.clone(), third.clone(), end.clone()].concat());
    assert_eq!(cut(&log, range(31..39)), [around, end].concat(), "a range in which nothing is recorded");
    assert_eq!(cut(&log, range(81..90)), []);
    assert_eq!(cut(&log, range(0..10)), []);
}

#[test]
fn an_exit_after_the_range_belongs_to_its_call() {
    // The second call of 1 is after the range: its exit is not that of the call that overlaps.
    let calls = [
        (10, Action::ENTRY, 1),
        (20, Action::EXIT, 9),
        (30, Action::ENTRY, 1),
        (40, Action::EXIT, 1),
        (50, Action::EXIT, 1),
        (60, Action::EXIT, 1),
    ];
    let log = log_of(&calls);
    assert_eq!(cut(&log, range(5..15)), [(10, ENTER, 1), (50, EXIT, 1)]);
    assert_eq!(cut(&log, range(5..25)), [(10, ENTER, 1), (20, EXIT, 9), (50, EXIT, 1)]);
}

#[test]
fn frames_left_without_an_exit_are_gone_with_their_catcher() {
    let calls = [
        (10, Action::ENTRY, 1),
        (20, Action::ENTRY, 2),
        (30, Action::EXIT, 1),
        (40, Action::ENTRY, 3),
        (50, Action::EXIT, 3),
    ];
    assert_eq!(cut(&log_of(&calls), range(35..60)), [(40, ENTER, 3), (50, EXIT, 3)]);
}

#[test]
fn functions_are_left_out_with_their_arguments() {
    let functions = Some([2, 4].into_iter().collect());
    let selection = RecordSelection { functions, ..RecordSelection::default() };
    let left = [(20, ENTER, 2), (30, EXIT, 2), (60, ENTER, 4), (70, EXIT, 4)];
    assert_eq!(cut(&log_of(NESTED), selection), left);
}

#[test]
fn a_thread_is_what_it_was() {
    for path in files(&["fdr", "basic"]) {
        let log = open(&path);
        let before = rows(&log);
        for (&(pid, tid), expected) in before.iter().take(3) {
            let selection = RecordSelection { tids: Some(vec![tid]), ..RecordSelection::default() };
            let (bytes, _) = converted(&[&log], &Options { selection, ..Options::like(&log) });
            let found = rows(&of_bytes(&bytes));
            assert_eq!(found[&(pid, tid)], *expected, "{}", path.display());
            assert!(found.keys().all(|thread_ids| thread_ids.1 == tid));
        }
    }
}

/// Selecting everything keeps everything; a selection is part of the log, and has everything in the range.
#[test]
fn ranges_of_real_logs() {
    for path in files(&["fdr", "fdr-old", "basic"]) {
        let log = open(&path);
        let Some((first, last)) = log.span() else { continue };
        let before = rows(&log);
        let of = |ticks| {
            let options = Options { selection: range(ticks), ..Options::like(&log) };
            rows(&of_bytes(&converted(&[&log], &options).0))
        };
        assert_eq!(of(first..last + 1), before, "{}", path.display());
        let third = (last - first) / 3;
        let (begin, end) = (first + third, last - third);
        let left = of(begin..end);
        for (thread_ids, rows) in &before {
            let within = |row: &&Row| (begin as i64..end as i64).contains(&row.0);
            let expected: Vec<&Row> = rows.iter().filter(within).collect();
            let found: Vec<&Row> = left.get(thread_ids).into_iter().flatten().filter(within).collect();
            assert_eq!(found, expected, "{}", path.display());
        }
        for (thread_ids, rows) in &left {
            let mut all = before[thread_ids].iter();
            assert!(rows.iter().all(|row| all.any(|other| other == row)), "{}", path.display());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// For any log: an exit after the range never belongs to a call that was not selected.
    #[test]
    fn what_is_cut_out_has_the_entries_of_its_late_exits(
        steps in prop::collection::vec((1..5u64, 0..3u8, 1..4u32), 1..60),
        begin in 0..100u64,
        len in 1..100u64,
    ) {
        let mut tsc = 0;
        let calls: Vec<_> = steps
            .into_iter()
            .map(|(step, action, function)| {
                tsc += step;
                (tsc, Action(action), function)
            })
            .collect();
        let found = cut(&log_of(&calls), range(begin..begin + len));
        let mut open: Vec<u64> = Vec::new();
        for (ts, kind, function) in found {
            if kind == ENTER {
                prop_assert!(ts < (begin + len) as i64);
                open.push(function);
            } else if ts < (begin + len) as i64 {
                prop_assert!(ts >= begin as i64);
                if let Some(at) = open.iter().rposition(|&other| other == function) {
                    open.truncate(at);
                }
            } else {
                let at = open.iter().rposition(|&other| other == function);
                prop_assert!(at.is_some(), "exit of {function} at {ts}");
                open.truncate(at.unwrap());
            }
        }
    }
}
