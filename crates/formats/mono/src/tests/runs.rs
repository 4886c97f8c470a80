//! Tests that the fast paths for runs decode calls and heapshot objects as the slow path does.

use perfuse_recording::Recording;

use crate::consts::KindSet;
use crate::decode::EventDecoder;
use crate::decode::calls::MethodEvent;
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
            events.extend([Some(call), leave].iter().flatten().map(|it| format!("{it:?}")));
        });
        decoder.read_heap_objects(|object| events.push(format!("{object:?}")));
    })
}

/// The same without the methods of calls.
fn bare(log: &MonoLog) -> Vec<String> {
    walk(log, |decoder, events| {
        decoder.read_call_times(|call, leave| {
            events.extend(
                [Some(call), leave].iter().flatten().map(|it| format!("{:?} at {}", it.byte, it.time)),
            );
        })
    })
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
    let is_call = |events: &&String| {
        events.starts_with("MethodEvent {") || events.starts_with("METHOD_") && events.contains(" at ")
    };
    let bare = bare(log);
    assert_eq!(bare.len(), events.len(), "{what}");
    let others = |all: &[String]| all.iter().filter(|it| !is_call(it)).cloned().collect::<Vec<_>>();
    assert_eq!(others(&bare), others(&events), "{what}");
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
