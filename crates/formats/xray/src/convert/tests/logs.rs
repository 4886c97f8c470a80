//! Several logs, and items that are not representable.

use super::*;
use crate::consts::Action;
use crate::convert::ConvertError;
use crate::writer::{BasicWriter, BufferStart, BufferWriter, FdrWriter, LogSpec, TscStamp};

fn spec(mode: Mode, version: u16, cycle_frequency: u64) -> LogSpec {
    let (endian, tsc_flags, buffer_size) = (Endian::Little, (true, true), 4096);
    LogSpec { mode, version, endian, cycle_frequency, tsc_flags, buffer_size }
}

/// A log with a buffer of one call for each `(tid, second)`.
fn log_of(hz: u64, buffers: &[(i32, i64)]) -> XRay {
    let mut writer = FdrWriter::new(Vec::new(), spec(Mode::Fdr, 5, hz)).unwrap();
    for &(tid, second) in buffers {
        let at = TscStamp { tsc: second as u64 * hz, cpu: 300 };
        let mut buffer =
            BufferWriter::new(writer.dialect(), &BufferStart { thread_ids: (1, tid), wall: (second, 0), at });
        buffer.call(at, Action::ENTRY, 1).unwrap();
        assert!(buffer.argument(5));
        buffer.call(at, Action::TAIL_EXIT, 1).unwrap();
        buffer.event(at, Some(3), b"typed").unwrap();
        buffer.event(at, None, b"custom").unwrap();
        writer.write(&mut buffer).unwrap();
    }
    of_bytes(&writer.finish().unwrap())
}

/// `(tid, second)` of the buffers, in file order.
fn buffers(log: &XRay) -> Vec<(i32, i64)> {
    let crate::LogContent::Fdr(survey) = log.content() else { panic!("not FDR") };
    survey.blocks.iter().map(|block| (block.tid.unwrap(), block.wall.unwrap().0)).collect()
}

#[test]
fn a_queue_that_wrapped_is_put_in_order_within_its_threads() {
    let log = log_of(1000, &[(2, 5), (1, 7), (2, 3), (1, 8), (2, 4)]);
    let (bytes, _) = converted(&[&log], &Options::like(&log));
    assert_eq!(buffers(&of_bytes(&bytes)), [(2, 3), (1, 7), (2, 4), (1, 8), (2, 5)]);
}

#[test]
fn logs_of_a_run_are_one_without_what_both_have() {
    let (late, early) = (log_of(1000, &[(1, 5), (2, 6)]), log_of(1000, &[(1, 1), (1, 5), (3, 2)]));
    let (bytes, done) = converted(&[&late, &early], &Options::like(&late));
    assert_eq!(buffers(&of_bytes(&bytes)), [(1, 1), (2, 6), (1, 5), (3, 2)]);
    assert_eq!((done.num_buffers, done.num_calls, done.unsupported.copies), (4, 8, 1));
}

#[test]
fn logs_of_other_machines_are_refused() {
    let (one, other) = (log_of(1000, &[(1, 5)]), log_of(2000, &[(1, 5)]));
    let refused = convert(&[&one, &other], &Options::like(&one), Vec::new());
    assert!(matches!(refused, Err(ConvertError::Rates(1000, 2000))));
    // Unless the caller states that they had one counter.
    let (bytes, _) = converted(&[&one, &other], &Options { hz: Some(1500), ..Options::like(&one) });
    assert_eq!(of_bytes(&bytes).header().file.cycle_frequency, 1500);
    assert!(matches!(convert(&[], &Options::like(&one), Vec::new()), Err(ConvertError::Nothing)));
}

#[test]
fn profiles_are_refused() {
    for path in files(&["profiling"]) {
        let profile = open(&path);
        let refused = convert(&[&profile], &to(Mode::Fdr, 5, Endian::Little), Vec::new());
        assert!(matches!(refused, Err(ConvertError::Profile)));
    }
}

#[test]
fn what_does_not_fit_is_counted() {
    let log = log_of(1000, &[(1, 5), (2, 6)]);
    let unsupported = |mode, version| converted(&[&log], &to(mode, version, Endian::Little)).1.unsupported;
    let none = UnsupportedItems::default();
    for version in 3..=5 {
        assert_eq!(unsupported(Mode::Fdr, version), none);
    }
    for version in 1..=2 {
        assert_eq!(unsupported(Mode::Fdr, version), UnsupportedItems { pids: 2, events: 2, ..none });
    }
    // Two threads: a wall time for each, two events for each, a call of two records for each.
    let basic = UnsupportedItems { wall_times: 2, cpus: 4, events: 4, ..none };
    assert_eq!(unsupported(Mode::Basic, 3), basic);
    assert_eq!(unsupported(Mode::Basic, 2), UnsupportedItems { pids: 4, ..basic });
    assert_eq!(
        unsupported(Mode::Basic, 1),
        UnsupportedItems { pids: 4, tail_exits: 2, arguments: 2, ..basic }
    );
}

#[test]
fn a_log_without_wall_times_has_buffers_that_show_no_rate() {
    let mut writer = BasicWriter::new(Vec::new(), spec(Mode::Basic, 3, 1000)).unwrap();
    let large = 1 << 28;
    for i in 0..20_000u64 {
        let (tid, at) = ((i % 3) as i32 + 1, TscStamp { tsc: 1000 * i, cpu: 1 });
        writer.call((1, tid), at, Action::ENTRY, if i == 7 { large } else { 5 }).unwrap();
        assert!(writer.argument((1, tid), i));
    }
    let log = of_bytes(&writer.finish().unwrap());
    let (bytes, done) = converted(&[&log], &to(Mode::Fdr, 5, Endian::Little));
    let again = of_bytes(&bytes);
    assert!(done.num_buffers > 6, "{}", done.num_buffers);
    let (unknown_wall_times, none) = (done.num_buffers, UnsupportedItems::default());
    assert_eq!(
        done.unsupported,
        UnsupportedItems { unknown_wall_times, function_ids: 1, arguments: 1, ..none }
    );
    assert_eq!(again.estimate(), None);
    assert_eq!(again.clock_pairs(), []);
    let mut expected = rows(&log);
    expected.values_mut().for_each(|rows| rows.retain(|row| row.3 != large as u64));
    assert_eq!(rows(&again), expected);
}

#[test]
fn bytes_that_look_like_records_are_counted() {
    let at = TscStamp { tsc: 1, cpu: 0 };
    let mut writer = FdrWriter::new(Vec::new(), spec(Mode::Fdr, 5, 1000)).unwrap();
    let mut buffer =
        BufferWriter::new(writer.dialect(), &BufferStart { thread_ids: (1, 1), wall: (1, 0), at });
    // An entry of function 5 and its exit.
    buffer.event(at, None, b"\x50\0\0\0\x01\0\0\0\x52\0\0\0\x01\0\0\0").unwrap();
    buffer.call(at, Action::ENTRY, 1).unwrap();
    buffer.call(at, Action::EXIT, 1).unwrap();
    writer.write(&mut buffer).unwrap();
    let log = of_bytes(&writer.finish().unwrap());
    let ambiguous =
        |version| converted(&[&log], &to(Mode::Fdr, version, Endian::Little)).1.unsupported.ambiguous;
    assert_eq!([1, 2, 3, 4, 5].map(ambiguous), [1, 1, 0, 0, 0]);
}

#[test]
fn a_rate_that_is_given_is_stated() {
    let log = log_of(1000, &[(1, 5)]);
    let (bytes, _) = converted(&[&log], &Options { hz: Some(77), ..Options::like(&log) });
    assert_eq!(of_bytes(&bytes).header().file.cycle_frequency, 77);
}
