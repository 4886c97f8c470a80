//! Each defect of real writers has its rule; calls that are not balanced.

use super::assemble::*;
use perfuse_recording::Recording;

/// A buffer of a log of version 1: its records, then zeros.
fn first_version(buffers: &[Vec<u8>]) -> Vec<u8> {
    let padded = buffers.iter().map(|records| {
        let mut buffer = records.clone();
        buffer.resize(256, 0);
        buffer
    });
    [header(1), padded.collect::<Vec<_>>().concat()].concat()
}

#[test]
fn the_counter_is_carried_into_buffers_without_one() {
    let first = [new_buffer(7), wall(1, 1), cpu(3, 1000), enter(1, 5), end_of_buffer()].concat();
    let second = [new_buffer(7), wall(1, 2), exit(1, 10), end_of_buffer()].concat();
    let log = open(first_version(&[first, second]));
    assert_eq!(codes(&checked(&log)), ["XR035"]);
    assert_eq!(codes(&found(&log)), ["XR035"]);
    assert_eq!(calls(&log).iter().map(|row| row.1).collect::<Vec<_>>(), [1005, 1015]);
    let repaired_log = repaired(&log);
    assert_eq!(codes(&checked(&repaired_log)), [""; 0]);
    assert_eq!(calls(&repaired_log), calls(&log));
}

#[test]
fn stale_bytes_after_the_end_are_skipped() {
    let body = [new_buffer(7), wall(1, 1), cpu(0, 1000), enter(1, 5), exit(1, 5), end_of_buffer()].concat();
    let log = open(first_version(&[[body.clone(), enter(9, 9)].concat()]));
    assert_eq!(codes(&checked(&log)), ["XR018"]);
    assert_eq!(calls(&log).len(), 2);
    assert_eq!(repaired(&log).source()[..], first_version(&[body])[..]);
}

#[test]
fn buffers_of_version_1_end_and_lie_where_they_should() {
    let body = [new_buffer(7), wall(1, 1), cpu(0, 1000), enter(1, 5), exit(1, 5)].concat();
    let whole = first_version(&[[body.clone(), end_of_buffer()].concat()]);
    let cut = open(whole[..32 + body.len()].to_vec());
    assert_eq!(serious(&checked(&cut)), ["XR011"]);
    assert_eq!(repaired(&cut).source()[..], whole[..], "as long as the buffers its header states");
    let mut wrong = whole.clone();
    wrong[16..24].fill(0);
    assert_eq!(serious(&checked(&open(wrong.clone()))), ["XR015"]);
    assert_eq!(serious(&checked(&repaired(&open(wrong)))), [""; 0]);
}

#[test]
fn a_copy_is_left_out() {
    let block_ = |tid, at, tsc| block(tid, at, tsc, &[enter(1, 5), exit(1, 5)]);
    let log = log(&[block_(7, 1, 1000), block_(8, 2, 2000), block_(7, 1, 1000)]);
    assert_eq!(serious(&checked(&log)), ["XR016"]);
    assert_eq!(calls(&log).len(), 4);
    assert_eq!(calls(&repaired(&log)), calls(&log));
}

#[test]
fn a_rotated_queue_differs_from_unordered_buffers() {
    let at = |tid, n: i32| block(tid, n, 1000 * n as u64, &[enter(1, 5), exit(1, 5)]);
    let rotated = log(&[at(7, 5), at(8, 6), at(7, 7), at(7, 2), at(8, 3), at(7, 4)]);
    assert_eq!(serious(&checked(&rotated)), ["XR038"]);
    let findings = checked(&rotated).into_iter().find(|d| d.rule.code == "XR038").unwrap();
    assert_eq!(findings.offset, 32 + 3 * 96, "where the oldest starts");
    let mixed = log(&[at(7, 5), at(7, 2), at(7, 4), at(7, 1)]);
    assert_eq!(serious(&checked(&mixed)), ["XR039"]);
    for log in [rotated, mixed] {
        let repaired_log = repaired(&log);
        assert_eq!(serious(&checked(&repaired_log)), [""; 0]);
        assert_eq!(calls(&repaired_log), calls(&log));
    }
    let apart = log(&[at(7, 5), at(8, 1), at(7, 6), at(8, 2)]);
    assert_eq!(serious(&checked(&apart)), [""; 0], "threads are written as they end");
}

#[test]
fn typed_events_cut_the_end_of_their_buffer() {
    let dirty = |mut record: Vec<u8>| {
        record[9..16].fill(0xaa);
        record
    };
    let whole = [preamble(7, 1, 1000), typed(5, 3, b"abc"), enter(1, 5), exit(1, 5), enter(2, 5), exit(2, 5)];
    let records = whole.concat();
    let cut = |bytes: usize| {
        let kept = &records[..records.len() - bytes];
        [header(5), dirty(extents(kept.len() as u64)), kept.to_vec()].concat()
    };
    // Garbage in reserved bytes identifies LLVM's runtime where the cut is between records; elsewhere the cut itself
    // does.
    assert_eq!(serious(&checked(&open(cut(16)))), ["XR041"]);
    assert_eq!(serious(&checked(&open(cut(12)))), ["XR041"]);
    assert_eq!(calls(&open(cut(12))).len(), 2, "what is before the cut is read");
    assert_eq!(serious(&checked(&repaired(&open(cut(12))))), [""; 0]);
    let right = open([header(5), buffer(&whole)].concat());
    assert_eq!(codes(&checked(&right)), [""; 0], "who writes them right is not suspected");
}

#[test]
fn minor_findings_are_reported_once() {
    let clean = [enter(1, 5), exit(1, 5)].concat();
    let case = |body: Vec<u8>| open([header(5), buffer(&[preamble(7, 1, 1000), body])].concat());
    assert_eq!(codes(&checked(&case([clean.clone(), custom(1, b"")].concat()))), ["XR042"]);
    assert_eq!(codes(&checked(&case([enter(15 << 24 | 3, 5), exit(15 << 24 | 3, 5)].concat()))), ["XR055"]);
    assert_eq!(codes(&checked(&open(header(5)))), ["XR005"]);
    assert_eq!(
        codes(&checked(&log(&[buffer(&[]), block(7, 1, 1000, std::slice::from_ref(&clean))]))),
        ["XR017"]
    );
    assert_eq!(codes(&checked(&log(&[block(-5, 1, 1000, std::slice::from_ref(&clean))]))), ["XR027"]);
    let mut dirty = block(7, 1, 1000, &[clean.clone(), clean]);
    dirty[15] = 1;
    dirty[31] = 1;
    let findings = checked(&log(&[dirty]));
    assert_eq!((codes(&findings), findings[0].count), (vec!["XR023"], 2));
}

#[test]
fn a_buffer_left_early_is_worth_knowing() {
    let at = |n: i32| block(7, n, 1000 * n as u64, &[enter(1, 5), exit(1, 5)]);
    let roomy = open([header_of(5, 1, HZ, 4096), at(1), at(2)].concat());
    assert_eq!(codes(&checked(&roomy)), ["XR019"]);
    let full = open([header_of(5, 1, HZ, 100), at(1), at(2)].concat());
    assert_eq!(codes(&checked(&full)), [""; 0]);
}

#[test]
fn the_header_is_compared_with_the_wall_times() {
    let at = |n: i32| block(7, n * 10_000, 25_000_000 * n as u64, &[enter(1, 5), exit(1, 5)]);
    let blocks: Vec<Vec<u8>> = (1..30).map(at).collect();
    let with = |hz| open([header_of(5, 1, hz, 100), blocks.concat()].concat());
    assert_eq!(codes(&checked(&with(2_500_000_000))), [""; 0]);
    assert_eq!(codes(&checked(&with(2_510_000_000))), [""; 0], "less than a hundredth does not matter");
    let wrong = with(3_500_000_000);
    let findings = checked(&wrong);
    assert_eq!(codes(&findings), ["XR003"]);
    assert!(
        findings[0].message.contains("3500.000 MHz") && findings[0].message.contains("2500.0"),
        "{}",
        findings[0].message
    );
    let repaired_log = repaired(&wrong);
    let hz = repaired_log.header().file.cycle_frequency as f64;
    assert!((hz / 2.5e9 - 1.0).abs() < 1e-4, "{hz}");
    assert_eq!(codes(&checked(&repaired_log)), [""; 0]);
    assert_eq!(codes(&checked(&with(0))), ["XR002"]);
    assert_eq!(codes(&checked(&repaired(&with(0)))), [""; 0]);
}

#[test]
fn calls_that_do_not_pair_are_counted() {
    let body = [exit(9, 1), enter(1, 1), enter(2, 1), enter(3, 1), exit(1, 1), exit(3, 1), enter(4, 1)];
    let findings = checked(&log(&[block(7, 1, 1000, &body)]));
    let of = |code| findings.iter().find(|d| d.rule.code == code).unwrap().message.to_string();
    assert_eq!(of("XR050"), "exits without entry: 2; threads: 1");
    assert_eq!(of("XR051"), "calls without exit: 1; threads: 1");
    assert_eq!(of("XR052"), "calls left without an exit of their own: 2; threads: 1");
    let tail = log(&[block(7, 1, 1000, &[enter(1, 1), function(2, 1, 1), enter(2, 1), exit(2, 1)])]);
    assert_eq!(codes(&checked(&tail)), [""; 0], "a tail exit names the function that is left");
}

#[test]
fn calls_go_on_from_buffer_to_buffer() {
    let log = log(&[block(7, 1, 1000, &[enter(1, 1)]), block(7, 2, 2000, &[exit(1, 1)])]);
    assert_eq!(codes(&checked(&log)), ["XR019"]);
}

#[test]
fn basic_records_one_by_one() {
    let pair = [basic(0, 1, 10, 7), basic(1, 1, 20, 7)].concat();
    assert_eq!(codes(&checked(&basic_log(std::slice::from_ref(&pair)))), [""; 0]);
    let case = |record: Vec<u8>| basic_log(&[pair.clone(), record]);
    let mut odd_type = basic(0, 1, 30, 7);
    odd_type[0] = 7;
    for (record, code) in [
        (odd_type, "XR061"),
        (basic(9, 1, 30, 7), "XR062"),
        (basic_argument(1, 7, 5), "XR063"),
        (vec![0; 31], "XR060"),
        (vec![0; 4096], "XR066"),
        ([[0; 24], [7; 24]].concat()[..32].to_vec(), "XR066"), // with reserved bytes, which a repair makes zero
    ] {
        let log = case(record);
        assert_eq!(serious(&checked(&log)), [code]);
        assert_eq!(serious(&found(&log)), [code]);
        assert_eq!(
            repaired(&log).source()[..],
            basic_log(std::slice::from_ref(&pair)).source()[..],
            "{code}"
        );
    }
    let log = basic_log(&[basic(3, 1, 10, 7), basic_argument(1, 7, 5), basic(1, 1, 20, 7)]);
    assert_eq!((codes(&checked(&log)), calls(&log).len()), (vec![], 3));
}

#[test]
fn basic_records_are_put_in_order_and_copies_left_out() {
    let back = basic_log(&[basic(0, 1, 30, 7), basic(0, 2, 10, 7), basic(1, 2, 20, 7)]);
    assert!(codes(&checked(&back)).contains(&"XR065"));
    assert_eq!(calls(&repaired(&back)), calls(&back));
    let pair = [basic(0, 1, 10, 7), basic(1, 1, 20, 7)].concat();
    let forked = basic_log(&[pair.clone(), pair.clone()]);
    assert_eq!(codes(&checked(&forked)), ["XR064"]);
    assert_eq!(repaired(&forked).source()[..], basic_log(&[pair]).source()[..]);
}
