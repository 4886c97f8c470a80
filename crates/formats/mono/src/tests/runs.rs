//! Tests that the fast paths for runs decode calls and heapshot objects as the slow path does.

use perfuse_recording::Recording;

use crate::consts::{EventByte, KindSet};
use crate::decode::EventDecoder;
use crate::decode::calls::{FollowingLeave, MethodEvent};
use crate::decode::runs::HeapObjectSummary;
use crate::recording::MonoLog;
use crate::records::{Event, EventBody};
use crate::tests::assemble::*;

/// Calls, objects, all other events, and the errors that end buffers.
fn one_by_one(log: &MonoLog) -> Vec<String> {
    walk(log, |_, _| ())
}

fn many_at_a_time(log: &MonoLog) -> Vec<String> {
    walk(log, |decoder, events| {
        decoder.read_calls(|call, leave| {
            events.push(format!("{call:?}"));
            if let Some(FollowingLeave { time, offset }) = leave {
                let leave = MethodEvent { byte: EventByte::METHOD_LEAVE, time, offset, ..call };
                events.push(format!("{leave:?}"));
            }
        });
        decoder.read_heap_objects(|object| events.push(format!("{object:?}")));
    })
}

/// All events that are not in a run of calls, and the numbers of those that are: enters, leaves, exceptions.
fn counted(log: &MonoLog) -> (Vec<String>, [u64; 3]) {
    let mut counts = [0; 3];
    let events = walk(log, |decoder, _| {
        let run = decoder.count_calls();
        for (count, more) in counts.iter_mut().zip([run.num_enters, run.num_leaves, run.num_exceptions]) {
            *count += more;
        }
    });
    (events, counts)
}

fn walk(log: &MonoLog, mut runs: impl FnMut(&mut EventDecoder<'_>, &mut Vec<String>)) -> Vec<String> {
    let survey = log.survey();
    let mut events = Vec::new();
    for buffer in &survey.buffers.list {
        let mut decoder = buffer.decoder(log.source(), survey.dialect).skip_backtraces(KindSet::all());
        let mut event = Event::default();
        loop {
            runs(&mut decoder, &mut events);
            let Some(read) = decoder.read(&mut event) else { break };
            let (byte, offset, time) = (event.byte, event.offset, decoder.time());
            events.push(match (&read, &event.body) {
                (Ok(()), EventBody::Call { method }) => {
                    format!("{:?}", MethodEvent { byte, time, method: *method, offset })
                }
                (Ok(()), EventBody::HeapObject(it)) => {
                    format!("{:?}", HeapObjectSummary::new(it, time, event.references.len() as u64, offset))
                }
                (Ok(()), _) => {
                    event.frames.clear();
                    format!("{event:?}")
                }
                (Err(error), _) => format!("{error:?}"),
            });
        }
    }
    events
}

fn assert_alike(log: &MonoLog, what: &str) {
    let events = one_by_one(log);
    assert_eq!(events, many_at_a_time(log), "{what}");
    let (counted, counts) = counted(log);
    let is_call = |event: &&String| event.starts_with("MethodEvent {");
    let others = |all: &[String]| all.iter().filter(|it| !is_call(it)).cloned().collect::<Vec<_>>();
    assert_eq!(others(&counted), others(&events), "{what}");
    for (name, count) in ["METHOD_ENTER", "METHOD_LEAVE", "METHOD_EXC_LEAVE"].into_iter().zip(counts) {
        let num = |all: &[String]| all.iter().filter(is_call).filter(|it| it.contains(name)).count() as u64;
        assert_eq!(num(&counted) + count, num(&events), "{what}: {name}");
    }
}

#[test]
fn every_data_version_decodes_alike() {
    for (name, bytes) in fixtures() {
        assert_alike(&open(bytes), &name);
    }
}

#[test]
fn damaged_logs_decode_alike() {
    let kinds = ["v17-heapshot", "v17-i386-calls", "v01-heapshot"];
    for (name, bytes) in fixtures().into_iter().filter(|(name, _)| kinds.contains(&name.as_str())) {
        let first = open(bytes.clone()).header().size as usize;
        for at in (first..bytes.len()).step_by(61) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x80;
            assert_alike(&open(flipped), &format!("{name}, flipped at {at}"));
            assert_alike(&open(bytes[..at].to_vec()), &format!("{name}, cut at {at}"));
        }
    }
}

/// The number 1 in so many bytes.
fn number(num_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0x80; num_bytes];
    bytes[0] |= 1;
    bytes[num_bytes - 1] &= 0x7f;
    bytes
}

#[test]
fn numbers_of_any_length_decode_alike() {
    for num_bytes in 1..13 {
        for num_after in [0, 9] {
            let call = event(0x23, &[&number(num_bytes)]);
            let jit = event(0x43, &[&[2], &[4], &[8], b"A:B ()\0"]);
            let object =
                event(0x26, &[&number(num_bytes), &[2], &[24], &[1], &[2, 0, 2], &number(num_bytes), &[2]]);
            let mut events = vec![call.clone(), jit, object.clone(), call, object];
            events.extend(vec![event(0x13, &[&[2]]); num_after]);
            assert_alike(&log(&[buffer(&events)]), &format!("{num_bytes}, {num_after}"));
        }
    }
}

/// A number in so many bytes, with the sign bit of its last one or without.
fn signed_number(num_bytes: usize, last: u8) -> Vec<u8> {
    let mut bytes = vec![0xd5; num_bytes];
    bytes[num_bytes - 1] = last;
    bytes
}

/// Times of the earliest and the latest call, except time 0, where there is a call.
fn span_of_calls(log: &MonoLog) -> Option<(u64, u64)> {
    let (mut event, mut times) = (Event::default(), Vec::new());
    for buffer in &log.survey().buffers.list {
        let mut decoder = buffer.decoder(log.source(), log.survey().dialect);
        while let Some(Ok(())) = decoder.read(&mut event) {
            times.push(decoder.time());
        }
    }
    let earliest = times.iter().copied().filter(|time| *time > 0).min();
    times.iter().max().map(|latest| (earliest.unwrap_or(0), *latest))
}

#[test]
fn leaf_calls_of_any_form_decode_alike() {
    for time_bytes in 1..4 {
        for method_bytes in 1..7 {
            for leave_bytes in 1..4 {
                for (last, base) in
                    [(0x15, TIME), (0x55, 1), (0x2a, u64::MAX - 40_000), (0x41, (1 << 62) - 9)]
                {
                    let method = signed_number(method_bytes, last);
                    let enter = [vec![0x23], signed_number(time_bytes, 0x15), method.clone()].concat();
                    let leave = [vec![0x13], signed_number(leave_bytes, 0x2a), vec![0]].concat();
                    let other = [vec![0x13], signed_number(leave_bytes, 0x2a), method].concat();
                    let left = [vec![0x33], number(time_bytes), vec![0]].concat();
                    let leaf = [enter.clone(), leave.clone()].concat();
                    let jit = event(0x43, &[&[2], &[4], &[8], b"A:B ()\0"]);
                    let calls = [leaf.clone(), leaf.clone(), enter, leaf.clone(), other, leaf.clone(), left];
                    let events =
                        [&calls[..], &[leaf.clone(), jit], &calls, &[leaf.clone(), leave, leaf]].concat();
                    let what = format!("{time_bytes}, {method_bytes}, {leave_bytes}, {base}");
                    assert_alike(&log(&[buffer_of(THREAD, base, &events)]), &what);
                    let alone = log(&[buffer_of(THREAD, base, &calls)]);
                    assert_eq!(alone.survey().events.span, span_of_calls(&alone), "{what}");
                }
            }
        }
    }
}

#[test]
fn leaf_calls_at_time_0_have_no_time() {
    for num in 0..4u8 {
        let enter = [0x23, 0x80 | num, 0, 2];
        let events = vec![[enter, [0x13, 0x80, 0, 0]].concat(); 9];
        let log = log(&[buffer_of(THREAD, 0, &events)]);
        assert_alike(&log, &format!("{num}"));
        assert_eq!(log.survey().events.span, span_of_calls(&log).filter(|_| num > 0), "{num}");
    }
}
