//! The grammar, version by version: findings in invalid buffers, and their repairs.

use super::assemble::*;
use perfuse_recording::Recording;

/// Checks the findings of a log; its repair has every call and no serious finding.
fn holds(name: &str, bytes: Vec<u8>, wanted: &[&str]) {
    let log = open(bytes);
    assert_eq!(serious(&checked(&log)), wanted, "{name}");
    let repaired_log = repaired(&log);
    assert_eq!(serious(&checked(&repaired_log)), [""; 0], "{name}, repaired");
    assert_eq!(calls(&repaired_log), calls(&log), "{name}");
}

fn fifth(records: &[Vec<u8>]) -> Vec<u8> {
    [header(5), buffer(records)].concat()
}

#[test]
fn a_buffer_begins_as_its_version_has_it() {
    let (first, when, whose, clock) = (new_buffer(7), wall(1, 1), pid(100), cpu(0, 1000));
    let body = [enter(1, 5), exit(1, 5)].concat();
    let case = |records: &[&Vec<u8>]| {
        fifth(&[records.iter().flat_map(|record| record.iter().copied()).collect(), body.clone()])
    };
    holds("whole", case(&[&first, &when, &whose, &clock]), &[]);
    holds("no NewBuffer", case(&[&when, &whose, &clock]), &["XR031"]);
    holds("no WallTimeMarker", case(&[&first, &whose, &clock]), &["XR032"]);
    holds("no Pid", case(&[&first, &when, &clock]), &["XR033"]);
    holds("no NewCPUId", case(&[&first, &when, &whose]), &["XR034"]);
    holds("TSCWrap instead", case(&[&first, &when, &whose, &wrap(900)]), &["XR034"]);
    holds("nothing of it", case(&[]), &["XR031"]);
    holds("two WallTimeMarkers", case(&[&first, &when, &wall(1, 2), &whose, &clock]), &["XR033"]);
}

#[test]
fn records_out_of_their_place_are_left_out() {
    let body = |record: Vec<u8>| fifth(&[preamble(7, 1, 1000), enter(1, 5), record, exit(1, 5)]);
    holds("WallTimeMarker", body(wall(2, 2)), &["XR030"]);
    holds("Pid", body(pid(5)), &["XR030"]);
    holds("BufferExtents", body(extents(16)), &["XR030"]);
    holds("EndOfBuffer", body(end_of_buffer()), &["XR025"]);
    holds("unknown kind", body(metadata(10, &[])), &["XR020"]);
    holds("the largest kind", body(metadata(127, &[])), &["XR020"]);
    for action in 4..8 {
        holds("unknown action", body(function(action, 3, 77)), &["XR021"]);
    }
}

/// A reader of the repaired log does not see how a record that was left out advanced the counter: past 2^64 here.
#[test]
fn a_counter_that_wraps_in_a_record_that_is_left_out() {
    let high = u64::MAX - 853;
    let records = [preamble(7, 1, high), enter(1, 0), function(6, 1, 1000), cpu(2, 2000), exit(1, 5)];
    let once = repaired(&open(fifth(&[records.concat()])));
    assert_eq!(serious(&checked(&once)), [""; 0]);
    assert!(repaired(&once).source()[..] == once.source()[..]);
}

#[test]
fn arguments_follow_entries() {
    let body = |records: &[Vec<u8>]| fifth(&[preamble(7, 1, 1000), records.concat()]);
    let entry = function(3, 1, 5);
    holds("one", body(&[entry.clone(), argument(9), exit(1, 1)]), &[]);
    holds("two", body(&[entry.clone(), argument(9), argument(10), exit(1, 1)]), &[]);
    holds("of nothing", body(&[argument(9), entry.clone(), exit(1, 1)]), &["XR053"]);
    holds("of an exit", body(&[entry.clone(), exit(1, 1), argument(9)]), &["XR053"]);
    let plain = open(body(&[enter(1, 5), argument(9), exit(1, 1)]));
    assert_eq!(codes(&checked(&plain)), ["XR054"]);
    assert_eq!(calls(&plain).len(), 3, "the argument is there all the same");
}

#[test]
fn earlier_versions_do_not_define_later_kinds() {
    let second = |body: Vec<u8>| {
        [header(2), buffer(&[new_buffer(7), wall(1, 1), cpu(0, 1000), enter(1, 5), body, exit(1, 5)])]
            .concat()
    };
    holds("version 2", second(Vec::new()), &[]);
    holds("Pid in version 2", second(pid(0)), &["XR026"]);
    let first = |records: &[Vec<u8>]| {
        let mut out = [header(1), records.concat()].concat();
        out.resize(32 + 256, 0);
        out
    };
    let body = [new_buffer(7), wall(1, 1), cpu(0, 1000), enter(1, 5), exit(1, 5)].concat();
    holds("version 1", first(&[body.clone(), end_of_buffer()]), &[]);
    holds("BufferExtents in version 1", first(&[body, extents(5), end_of_buffer()]), &["XR026"]);
}

#[test]
fn a_second_new_buffer_begins_another() {
    let part = |at, tsc| [preamble(7, at, tsc), enter(1, 5), exit(1, 5)].concat();
    holds("two in one", fifth(&[part(1, 1000), part(2, 2000)]), &["XR036"]);
    let log = open(fifth(&[part(1, 1000), part(2, 2000)]));
    assert_eq!(calls(&log).len(), 4);
}

#[test]
fn the_counter_goes_back_only_with_a_wrap() {
    let body = |record: Vec<u8>| fifth(&[preamble(7, 1, 1000), enter(1, 50), record, exit(1, 5)]);
    holds("TSCWrap", body(wrap(500)), &[]);
    holds("another processor", body(cpu(1, 500)), &["XR037"]);
    holds("an event before its time", body(custom(-20, b"x")), &["XR037"]);
    holds("a step back on purpose", body([wrap(500), cpu(1, 500)].concat()), &[]);
}

#[test]
fn wrong_sizes_are_reported_and_repaired() {
    let body = [preamble(7, 1, 1000), enter(1, 5), exit(1, 5)].concat();
    let with = |size: u64, following: Vec<u8>| [header(5), extents(size), body.clone(), following].concat();
    let next = block(8, 5, 3000, &[enter(2, 1), exit(2, 1)]);
    let size = body.len() as u64;
    holds("true", with(size, next.clone()), &[]);
    holds("short", with(size - 10, next.clone()), &["XR013"]);
    holds("long", with(size + 500, next.clone()), &["XR012"]);
    holds("longer than the file", with(u64::MAX, Vec::new()), &["XR011"]);
    holds("cut", with(size + 8, Vec::new()), &["XR011"]);
    holds("none", [header(5), body.clone(), next.clone()].concat(), &["XR014"]);
    holds("a gap", with(size, [vec![0xde; 12], next.clone()].concat()), &["XR010"]);
    holds("a gap like BufferExtents", with(size, [vec![0x0f, 0, 0, 0, 0, 0, 0], next].concat()), &["XR010"]);
}

#[test]
fn events_that_lie_end_their_buffer() {
    for size in [-1, i32::MIN, 9, i32::MAX] {
        let event = metadata(5, &[&size.to_le_bytes(), &0i32.to_le_bytes()]);
        holds("event", fifth(&[preamble(7, 1, 1000), enter(1, 5), exit(1, 5), event]), &["XR043"]);
    }
    holds("half a record", fifth(&[preamble(7, 1, 1000), enter(1, 5), vec![0; 4]]), &["XR022"]);
}

#[test]
fn findings_state_what_was_expected_and_where() {
    let log = open(fifth(&[new_buffer(7), cpu(0, 1000), enter(1, 5), argument(1)]));
    let findings = checked(&log);
    let wall = findings.iter().find(|d| d.rule.code == "XR032").unwrap();
    assert_eq!(wall.message, "expected WallTimeMarker, found NewCPUId");
    assert_eq!((wall.offset, wall.record_index), (32 + 16 + 16, Some(2)));
}
