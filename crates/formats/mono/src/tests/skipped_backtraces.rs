//! Tests that skipped backtraces change nothing else: the same events and the same errors.

use perfuse_recording::Recording;
use perfuse_wire::ParseError;

use crate::consts::{EventByte, KindSet};
use crate::decode::backtraces::{KnownBacktraces, Meaning};
use crate::recording::MonoLog;
use crate::records::{Event, EventBody};
use crate::tests::assemble::*;

/// Every event without its backtrace, or the error that ends its buffer.
fn read(log: &MonoLog, skipped: KindSet) -> Vec<Result<String, ParseError>> {
    let survey = log.survey();
    let mut event = Event::default();
    let mut all = Vec::new();
    for buffer in &survey.buffers.list {
        let mut decoder = buffer.decoder(log.source(), survey.dialect).skip_backtraces(skipped);
        while let Some(read) = decoder.read(&mut event) {
            if event.has_backtrace() {
                event.frames.clear();
            }
            all.push(read.map(|()| format!("{event:?}")));
        }
    }
    all
}

fn assert_alike(log: &MonoLog, what: &str) {
    assert_eq!(read(log, KindSet::default()), read(log, KindSet::all()), "{what}");
}

#[test]
fn every_data_version_decodes_alike() {
    for (name, bytes) in fixtures() {
        assert_alike(&open(bytes), &name);
    }
}

#[test]
fn damaged_logs_decode_alike() {
    // One of each family of encodings with backtraces; all of them would take too long.
    let kinds = ["v01", "v11-32bit", "v12", "v13", "v17"].map(|kind| format!("crafted-{kind}"));
    for (name, bytes) in fixtures().into_iter().filter(|(name, _)| kinds.contains(name)) {
        let first = open(bytes.clone()).header().size as usize;
        for at in first..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x80;
            assert_alike(&open(flipped), &format!("{name}, flipped at {at}"));
            assert_alike(&open(bytes[..at].to_vec()), &format!("{name}, cut at {at}"));
        }
    }
}

/// ALLOC_BT with a backtrace of these bytes.
fn allocation(num_frames: u8, frames: &[u8]) -> Vec<u8> {
    event(0x10, &[&[0], &[0], &[16], &[num_frames], frames])
}

/// The number 1 in so many bytes.
fn number(num_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0x80; num_bytes];
    bytes[0] |= 1;
    bytes[num_bytes - 1] &= 0x7f;
    bytes
}

#[test]
fn numbers_of_any_length_are_skipped() {
    for num_before in 0..9 {
        for num_bytes in 1..13 {
            for num_after in [0, 9] {
                let frames = [vec![2; num_before], number(num_bytes), vec![4; num_after]].concat();
                let events = [allocation((num_before + 1 + num_after) as u8, &frames), event(0x23, &[&[2]])];
                let log = log(&[buffer(&events)]);
                assert_alike(&log, &format!("{num_before}, {num_bytes}, {num_after}"));
                // Ten bytes can contain 64 bits.
                assert_eq!(log.survey().events.faults.is_empty(), num_bytes <= 10);
                assert_eq!(log.survey().events.definitions.num_frames, (num_before + 1 + num_after) as u64);
            }
        }
    }
}

#[test]
fn methods_after_skipped_backtraces_are_correct() {
    let pair = [allocation(3, &[2, 4, 0x7f]), allocation(1, &[6]), event(0x23, &[&[2]])].concat();
    // Up to more skipped backtraces than the decoder tolerates num_before it stops skipping.
    for num in [1, 7, 8, 9, 40] {
        let log = log(&[buffer(&vec![pair.clone(); num])]);
        assert_alike(&log, &format!("{num}"));
        assert_eq!(log.survey().events.definitions.num_frames, 4 * num as u64);
    }
}

#[test]
fn rare_events_are_found_by_position() {
    for (name, bytes) in fixtures() {
        let log = open(bytes);
        let survey = log.survey();
        for byte in EventByte::ALL {
            let kinds = KindSet::of(&[*byte]);
            for (number, buffer) in survey.buffers.list.iter().enumerate() {
                let (mut marked, mut whole) = (Vec::new(), Vec::new());
                survey.for_each_event(
                    log.source(),
                    number,
                    kinds,
                    KindSet::all().without(kinds),
                    |time, event| {
                        marked.push(format!("{time} {event:?}"));
                    },
                );
                let mut decoder = buffer.decoder(log.source(), survey.dialect);
                let (mut event, mut time) = (Event::default(), buffer.header.time_base);
                while let Some(Ok(())) = decoder.read(&mut event) {
                    time = event.time.unwrap_or(time);
                    if event.byte == *byte {
                        whole.push(format!("{time} {event:?}"));
                    }
                }
                assert_eq!(marked, whole, "{byte} in buffer {number} of {name}");
            }
        }
    }
}

#[test]
fn fast_path_of_allocations_and_moves() {
    for (name, bytes) in fixtures() {
        let log = open(bytes);
        let survey = log.survey();
        let (mut counts, mut num_moves) = ([0u64; 256], 0);
        for (number, buffer) in survey.buffers.list.iter().enumerate() {
            let mut decoder = buffer.decoder(log.source(), survey.dialect);
            let (mut event, mut slow) = (Event::default(), Vec::new());
            while let Some(Ok(())) = decoder.read(&mut event) {
                counts[usize::from(event.byte.0)] += 1;
                num_moves += event.addresses.len() as u64 / 2 * u64::from(event.byte == EventByte::GC_MOVE);
                if let EventBody::Alloc { class, object, size } = event.body {
                    slow.push((event.byte, event.offset, event.time, class, object, size));
                }
            }
            let mut fast = Vec::new();
            survey.for_each_alloc(log.source(), number, |it| {
                fast.push((it.byte, it.offset, Some(it.time), it.class, it.object, it.size));
            });
            assert_eq!(fast, slow, "buffer {number} of {name}");
        }
        assert_eq!((survey.events.counts, survey.events.num_moves), (counts, num_moves), "{name}");
    }
}

/// Offsets, times and backtraces of all allocations: decoded one by one, and by the backtraces that are known.
fn backtraces(log: &MonoLog) -> [Vec<(u64, u64, Vec<u64>)>; 2] {
    let survey = log.survey();
    let (mut one_by_one, mut by_known) = (Vec::new(), Vec::new());
    let (mut known, mut all) = (KnownBacktraces::default(), Vec::new());
    for (number, buffer) in survey.buffers.list.iter().enumerate() {
        let (mut decoder, mut event) = (buffer.decoder(log.source(), survey.dialect), Event::default());
        while let Some(Ok(())) = decoder.read(&mut event) {
            if let EventBody::Alloc { .. } = event.body {
                one_by_one.push((event.offset, event.time.unwrap_or(0), event.frames.clone()));
            }
        }
        let mut stacks = Vec::new();
        let number_of = |methods: &[u64], _| {
            all.push(methods.to_vec());
            let number = all.len() - 1;
            // Some may not be remembered.
            if methods.len() == 3 { Meaning::AtThisTime(number) } else { Meaning::Constant(number) }
        };
        survey.for_each_alloc_and_backtrace(log.source(), number, &mut known, number_of, |it, number| {
            stacks.push((it.offset, it.time, number));
        });
        by_known.extend(stacks.into_iter().map(|(offset, time, number)| (offset, time, all[number].clone())));
    }
    [one_by_one, by_known]
}

#[test]
fn known_backtraces_are_those_that_are_decoded() {
    for (name, bytes) in fixtures() {
        let [one_by_one, by_known] = backtraces(&open(bytes.clone()));
        assert_eq!(one_by_one, by_known, "{name}");
        if !["crafted-v13", "crafted-v17"].contains(&name.as_str()) {
            continue;
        }
        for at in open(bytes.clone()).header().size as usize..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x80;
            let [one_by_one, by_known] = backtraces(&open(flipped));
            assert_eq!(one_by_one, by_known, "{name}, flipped at {at}");
        }
    }
    for num_bytes in 1..13 {
        for num_before in 0..3 {
            let frames = [vec![2; num_before], number(num_bytes), vec![4; 2]].concat();
            let again = allocation((num_before + 3) as u8, &frames);
            let log = log(&[buffer(&[again.clone(), allocation(1, &[6]), again.clone(), again])]);
            let [one_by_one, by_known] = backtraces(&log);
            assert_eq!(one_by_one, by_known, "{num_bytes}, {num_before}");
        }
    }
}
