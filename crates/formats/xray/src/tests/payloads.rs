//! The bytes of events are there, or were overwritten by the next record.

use super::assemble::*;
use crate::{LogContent, XRay};
use perfuse_recording::Recording;

fn preamble_of_version(version: u16) -> Vec<u8> {
    let whose = if version < 3 { Vec::new() } else { pid(100) };
    [new_buffer(7), wall(1, 1), whose, cpu(0, 1000)].concat()
}

/// A log whose event states `size` bytes and is followed by `following`; the extents count `counted` more bytes than
/// there are.
fn with_event(version: u16, size: i32, following: &[u8], counted: usize) -> XRay {
    let body = [enter(1, 5), custom_marker(size, 1006)].concat();
    let rest = [following.to_vec(), vec![0xee; counted]].concat();
    open([header(version), buffer(&[preamble_of_version(version), body, rest])].concat())
}

fn payloads(log: &XRay) -> bool {
    let LogContent::Fdr(survey) = log.content() else { panic!("an FDR log") };
    survey.blocks[0].payloads
}

fn calls_after() -> Vec<u8> {
    [exit(1, 5), enter(2, 5), exit(2, 5)].concat()
}

#[test]
fn overwritten_bytes_are_distinguished_from_present_ones() {
    for version in [2, 3] {
        for size in [5, 8, 13, 16] {
            let gone = with_event(version, size, &calls_after(), size as usize);
            assert!(!payloads(&gone), "version {version}, {size} bytes");
            assert_eq!(calls(&gone).len(), 4);
            assert_eq!(serious(&checked(&gone)), ["XR040"]);
            assert_eq!(serious(&found(&gone)), ["XR040"]);
            let there = [vec![b'x'; size as usize], calls_after()].concat();
            let log = with_event(version, size, &there, 0);
            assert!(payloads(&log), "version {version}, {size} bytes");
            assert_eq!(calls(&log).len(), 4);
        }
    }
}

#[test]
fn an_event_at_the_end_was_not_overwritten() {
    for version in [2, 3] {
        let log = with_event(version, 8, b"12345678", 0);
        assert!(payloads(&log));
        assert_eq!(serious(&checked(&log)), [""; 0]);
    }
}

#[test]
fn a_repair_writes_zeros_for_missing_bytes() {
    for version in [2, 3] {
        for size in [1, 5, 8, 13, 4000] {
            let log = with_event(version, size, &calls_after(), size as usize);
            let repaired_log = repaired(&log);
            assert!(payloads(&repaired_log), "version {version}, {size} bytes");
            assert_eq!(serious(&checked(&repaired_log)), [""; 0], "version {version}, {size} bytes");
            assert_eq!(calls(&repaired_log), calls(&log));
            assert!(repaired_log.source().len() <= log.source().len() + 8);
        }
    }
}

#[test]
fn zeros_that_a_repair_writes_are_not_a_record() {
    // The reading without bytes leaves out as many at the end: there the record that it cannot explain better.
    let log = with_event(2, 0, &[calls_after(), enter(0, 5)].concat(), 0);
    let once = repaired(&log);
    assert!(payloads(&once));
    assert_eq!(calls(&once), calls(&log));
    assert_eq!(serious(&checked(&once)), [""; 0]);
    assert!(repaired(&once).source()[..] == once.source()[..]);
}
