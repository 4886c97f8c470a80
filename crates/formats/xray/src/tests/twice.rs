//! Logs that were converted or repaired, once more.

use super::assemble::*;
use crate::convert::{Options, convert};
use crate::writer::{UnsupportedItems, WriteSummary};
use crate::{LogContent, XRay};
use perfuse_recording::Recording;

/// Two buffers of a thread that differ in a record that no version has.
fn with_buffers_that_become_equal(wall_seconds: i64) -> XRay {
    let records = |unknown: &[u8]| {
        let start = [new_buffer(7), wall(wall_seconds, 0), pid(100), cpu(0, 1000)].concat();
        buffer(&[start, metadata(40, &[unknown]), enter(1, 1), exit(1, 1)])
    };
    open([header(5), records(&[1]), records(&[2])].concat())
}

/// A log in its own version, and what was written.
fn converted(log: &XRay) -> (Vec<u8>, WriteSummary) {
    let mut out = Vec::new();
    let done = convert(&[log], &Options::like(log), &mut out).unwrap();
    (out, done)
}

#[test]
fn a_log_that_was_converted_stays_as_it_is() {
    for (seconds, num_buffers) in [(1, 1), (0, 2)] {
        let log = with_buffers_that_become_equal(seconds);
        let (once, done) = converted(&log);
        // Readers take the second of two equal buffers with a wall time for a copy.
        let unsupported = UnsupportedItems {
            unknown: 2,
            copies: 2 - num_buffers,
            unknown_wall_times: if seconds == 0 { 2 } else { 0 },
            ..UnsupportedItems::default()
        };
        assert_eq!((done.num_buffers, done.unsupported), (num_buffers, unsupported));
        let log = open(once.clone());
        let (twice, done) = converted(&log);
        assert!(once == twice);
        assert_eq!((done.num_buffers, done.unsupported.copies), (num_buffers, 0));
    }
}

#[test]
fn a_log_that_was_repaired_stays_as_it_is() {
    // The second buffer differs in reserved bytes, which a repair clears: it becomes a copy.
    let first = block(7, 1, 1000, &[enter(1, 1), exit(1, 1)]);
    let mut second = first.clone();
    second[12] = 1;
    let unsorted = [block(7, 5, 3000, &[enter(1, 1)]), block(7, 2, 2000, &[exit(1, 1)])].concat();
    for (buffers, num) in [([first, second].concat(), 1), (unsorted, 2)] {
        let once = repaired(&open([header(5), buffers].concat()));
        let LogContent::Fdr(survey) = once.content() else { panic!("not FDR") };
        assert_eq!(survey.blocks.len(), num);
        assert_eq!(serious(&checked(&once)), [""; 0]);
        assert!(repaired(&once).source()[..] == once.source()[..]);
    }
}

#[test]
fn a_distance_of_buffers_that_is_too_large_is_replaced_once() {
    // Buffers one after the other, in a log that states a megabyte for each.
    let small = [new_buffer(7), wall(1, 1), cpu(0, 1000), enter(1, 1)].concat();
    let other = [new_buffer(8), wall(1, 2), cpu(0, 1000), enter(1, 1), exit(1, 1)].concat();
    let log = open([header_of(1, 1, HZ, 1 << 20), small, other.repeat(20)].concat());
    let once = repaired(&log);
    assert!(once.source().len() < 10 * log.source().len());
    assert!(!serious(&checked(&once)).contains(&"XR015"));
    assert!(repaired(&once).source()[..] == once.source()[..]);
}

#[test]
fn a_last_buffer_that_is_not_padded_stays_as_it_is() {
    let first = [new_buffer(7), wall(1, 1), cpu(0, 1000), enter(1, 1), exit(1, 1), end_of_buffer()].concat();
    let other = [new_buffer(8), wall(1, 2), cpu(0, 1000), enter(1, 1), exit(1, 1), end_of_buffer()].concat();
    let padded = [&other[..], &vec![0; 4096 - other.len()]].concat();
    for (stated, buffers) in
        [(2 << 20, first.clone()), (1 << 10, first.clone()), (4096, [padded, first].concat())]
    {
        let log = open([header_of(1, 1, HZ, stated), buffers].concat());
        assert_eq!(serious(&checked(&log)), [""; 0], "{stated}");
        assert!(repaired(&log).source()[..] == log.source()[..], "{stated}");
    }
}
