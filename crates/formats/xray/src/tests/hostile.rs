//! Sizes and numbers that are meant to cost time or memory: the work is linear in the size of the file.

use super::assemble::*;
use crate::block;
use crate::ids::FunctionIds;
use crate::reader::{FileRegion, Reader};
use crate::record_iter::bytes_read;
use crate::{LogContent, XRay};
use perfuse_recording::Recording;

/// Number of bytes read on this thread to find the buffers of a log and their records.
fn work(log: &XRay) -> u64 {
    let before = bytes_read();
    for piece in Reader::new(log.source(), log.header()) {
        if let FileRegion::Buffer(extent) = piece {
            let _ = block::read_blocks(
                log.source(),
                &extent,
                log.header().dialect(),
                &mut FunctionIds::default(),
            );
        }
    }
    bytes_read() - before
}

/// A log of a version that repeats a sequence of bytes.
fn many(version: u16, piece: &[u8], times: usize) -> XRay {
    open([header(version), piece.repeat(times)].concat())
}

#[test]
fn tiny_buffers_and_lying_sizes_cost_no_more_than_their_bytes() {
    let start = [extents(1 << 40), new_buffer(7), wall(1, 1)].concat();
    let pieces = [
        extents(0),
        extents(u64::MAX),
        extents(1),
        [extents(1), vec![1]].concat(),
        [extents(8), enter(1, 1)].concat(),
        start.clone(),
        [extents(4), new_buffer(7), wall(1, 1)].concat(),
        [extents(4), new_buffer(7), wall(1, 1), vec![0xff; 3]].concat(),
        [start, vec![0x0f; 40]].concat(),
        vec![0x0f],
        [new_buffer(7), wall(1, 1)].concat(),
        new_buffer(7),
        [custom_marker(3, 1), enter(1, 1)].concat(),
        [extents(20), custom_marker(40, 1)].concat(),
    ];
    for version in [1, 2, 3, 5] {
        for piece in &pieces {
            let log = many(version, piece, 2000);
            let bytes = log.source().len() as u64;
            let looked = work(&log);
            assert!(looked <= 12 * bytes, "version {version}, {piece:x?}: {looked} of {bytes}");
        }
    }
}

#[test]
fn memory_is_in_proportion_to_the_log() {
    let log = many(5, &[extents(1), vec![1]].concat(), 10_000);
    let LogContent::Fdr(survey) = log.content() else { panic!("an FDR log") };
    let kept = survey.blocks.capacity() * size_of::<block::FdrBlock>();
    assert!(kept <= 32 * log.source().len(), "{kept}");
    let findings = checked(&log);
    assert!(findings.len() < 4000, "a rule is reported a thousand times, then counted");
    assert_eq!(findings.iter().filter(|d| d.rule.code == "XR022").map(|d| d.count).sum::<u64>(), 10_000);
}

#[test]
fn a_deep_stack_is_walked_once() {
    let depth = 200_000;
    let (down, up) = (enter(1, 1).repeat(depth), exit(1, 1).repeat(depth));
    let deep = log(&[block(7, 1, 1000, &[down.clone(), up])]);
    assert_eq!(codes(&checked(&deep)), [""; 0]);
    assert_eq!(calls(&deep).len(), 2 * depth);
    // Exits of a function that was not entered: each would need a search of the whole stack.
    let strange = log(&[block(7, 1, 1000, &[down, exit(2, 1).repeat(depth)])]);
    assert_eq!(codes(&checked(&strange)), ["XR050", "XR051"]);
}

#[test]
fn a_repair_is_no_larger_than_it_has_to_be() {
    let small = [new_buffer(7), wall(1, 1), cpu(0, 1000), enter(1, 1)].concat();
    let large = [new_buffer(8), wall(1, 2), cpu(0, 1000), enter(1, 1).repeat(20_000)].concat();
    let log = open([header_of(1, 1, HZ, 0), small.repeat(2000), large].concat());
    let repaired_log = repaired(&log);
    assert!(repaired_log.source().len() < 20 * log.source().len());
    assert_eq!(calls(&repaired_log).len(), calls(&log).len());
    let stated = open([header_of(2, 1, HZ, 64), buffer(&[custom_marker(i32::MAX, 5), enter(1, 1)])].concat());
    assert!(repaired(&stated).source().len() < 200);
}

/// After the survey, a record is found by reading the buffer it is in, wherever that is in the log.
#[test]
fn a_record_is_found_without_reading_those_before_its_buffer() {
    let body = [preamble(7, 1, 1), [enter(1, 1), exit(1, 1)].concat().repeat(1000)].concat();
    let buffer = [extents(body.len() as u64), body].concat();
    let log = open([header(5), buffer.repeat(100)].concat());
    let num: u64 = log.summary().counts.iter().map(|(_, count)| count).sum();
    assert_eq!(num, 100 * 2005);
    let size = log.source().len() as u64;
    for part in [0, 1, 50, 99] {
        let before = bytes_read();
        let mut by_index = log.seek_index(num * part / 100 + 1500);
        let first = log.next_record(&mut by_index).unwrap();
        let mut by_offset = log.seek_offset(first.offset).unwrap();
        assert_eq!(log.next_record(&mut by_offset), Some(first));
        let looked = bytes_read() - before;
        assert!(looked <= 2 * buffer.len() as u64 + 16, "{looked} of {size}");
    }
}

/// Calls of a log, its records as they are counted and as they are listed, and the codes of its findings.
fn read(log: &XRay) -> (usize, u64, u64, Vec<&'static str>) {
    let counted = log.summary().counts.iter().map(|(_, count)| count).sum();
    let mut at = log.seek_index(0);
    let listed = std::iter::from_fn(|| log.next_record(&mut at)).count() as u64;
    (calls(log).len(), counted, listed, codes(&checked(log)))
}

#[test]
fn what_was_never_written_is_not_a_record() {
    let body = [enter(1, 1), exit(1, 1)].concat().repeat(100);
    let zeros = vec![0; 1 << 20];
    // After a buffer whose size is stated, and between two.
    let first = block(7, 1, 1000, std::slice::from_ref(&body));
    let second = block(7, 2, 5000, std::slice::from_ref(&body));
    let after = log(&[first.clone(), zeros.clone()]);
    assert_eq!(read(&after), (200, 205, 205, vec!["XR010"]));
    let between = log(&[first, zeros.clone(), second]);
    assert_eq!(read(&between), (400, 410, 410, vec!["XR010"]));
    assert_eq!(checked(&between).len(), 1);
    // Inside of one, from its first to its last possible record and at any distance from where a slice ends.
    for num in [0, 1, 63, 64, 65, 16_383, 16_384, 16_385] {
        let written = enter(1, 1).repeat(num);
        let cut = log(&[block(7, 1, 1000, &[written, zeros.clone()])]);
        let (found, counted, listed, codes) = read(&cut);
        assert_eq!((found, counted, listed), (num, num as u64 + 5, num as u64 + 5), "{num}");
        assert!(codes.contains(&"XR010"), "{num}: {codes:?}");
    }
}

/// A page does not begin where a record does: its first zeros are the end of one.
#[test]
fn a_page_that_was_never_written_is_not_calls() {
    let body = [enter(7, 1), exit(7, 1)].concat().repeat(2000);
    let whole = [header(5), block(7, 1, 1000, std::slice::from_ref(&body))].concat();
    let start = whole.len() - body.len();
    for page in start + 800..start + 816 {
        let mut bytes = whole.clone();
        bytes[page..page + 4096].fill(0);
        let log = open(bytes);
        let before = (page - start) / 8;
        assert!((before..=before + 1).contains(&calls(&log).len()), "{page:#x}: {}", calls(&log).len());
        assert!(codes(&found(&log)).contains(&"XR010"), "{page:#x}");
        assert!(codes(&checked(&log)).contains(&"XR010"), "{page:#x}");
    }
}

#[test]
fn fewer_zeros_than_half_a_page_are_records_of_function_0() {
    for (num, last) in [(255, enter(1, 1)), (1, enter(1, 1)), (255, Vec::new())] {
        let more = usize::from(!last.is_empty());
        let zeros = log(&[block(7, 1, 1000, &[enter(1, 1).repeat(100), enter(0, 0).repeat(num), last])]);
        let (found, counted, listed, _) = read(&zeros);
        let expected = 100 + num + more;
        assert_eq!((found, counted, listed), (expected, expected as u64 + 5, expected as u64 + 5), "{num}");
    }
}

#[test]
fn neighbouring_gaps_are_one() {
    // Buffers of version 1 are as far apart as the header states; none of these begins with a record.
    let damaged = open([header_of(1, 1, HZ, 64), block(7, 1, 1, &[]), vec![0x0e; 64 * 10_000]].concat());
    let LogContent::Fdr(survey) = damaged.content() else { panic!("an FDR log") };
    assert!(survey.gaps.len() <= 2, "{}", survey.gaps.len());
}

#[test]
fn ids_are_listed_in_their_order() {
    let mut ids = FunctionIds::default();
    let added = [1 << 27, (1 << 20) - 1, 64, 63, 1, 127, 1 << 20, 64];
    added.iter().for_each(|&id| ids.insert(id));
    assert_eq!(ids.sorted(), [1, 63, 64, 127, (1 << 20) - 1, 1 << 20, 1 << 27]);
}
