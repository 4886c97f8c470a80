//! Tests of the layouts that a data version had before its release, which only the events can reveal.

use perfuse_recording::Recording;

use crate::consts::EventByte;
use crate::dialect::LogDialect;
use crate::encode::BufferEncoder;
use crate::header::Header;
use crate::records::{CounterEntry, CounterPayload, Event, EventBody, HeapObject, HeapRoot, HeapRootEntry};
use crate::tests::assemble::{codes, fixtures, open};

/// An event, several times, that each unreleased layout encodes in another way.
fn distinguishing_event(byte: EventByte) -> Event<'static> {
    let mut event = Event::default();
    assert!(event.begin(byte));
    event.time = Some(5000);
    match &mut event.body {
        EventBody::SampleHit { kind, thread, .. } => {
            (*kind, *thread) = (1, 0x7f00_0000_0100);
            event.addresses = vec![0x7f00_0000_2000];
            event.frames = vec![0x5000];
        }
        EventBody::HeapRoot(HeapRoot { collections }) => {
            *collections = 3;
            // Decoded as data version 15, the second object's difference is the first byte of the next event, which
            // is not defined.
            event.roots = vec![
                HeapRootEntry { object: 0x8000, kind: 1, ..HeapRootEntry::default() },
                HeapRootEntry {
                    object: 0x8000 + (0x0b << 3),
                    kind: 0x84,
                    extra: 300,
                    ..HeapRootEntry::default()
                },
            ];
        }
        EventBody::HeapObject(HeapObject { object, class, size, .. }) => {
            (*object, *class, *size) = (0x8000, 0x7000, 24);
        }
        EventBody::Counters { ms } => {
            *ms = 1;
            let value = CounterPayload::Text(b"text");
            event.values = vec![CounterEntry { index: 1, kind: 6, value }];
        }
        _ => {}
    }
    event
}

fn written(dialect: LogDialect, kinds: &[EventByte]) -> Vec<u8> {
    let template = open(fixtures()[0].1.clone()).header().clone();
    let header: Header = template.converted(&dialect);
    let mut out = Vec::new();
    header.write(&mut out);
    let mut encoder = BufferEncoder::new(dialect, 1, 5000);
    for _ in 0..4 {
        for kind in kinds {
            encoder.write(&mut distinguishing_event(*kind)).unwrap();
        }
    }
    encoder.finish(&mut out).unwrap();
    out
}

#[test]
fn the_readable_layout_is_selected_and_reported() {
    for (version, kinds) in [
        (5, &[EventByte::COUNTERS][..]),
        (14, &[EventByte::SAMPLE_HIT, EventByte::HEAP_ROOT]),
        (15, &[EventByte::HEAP_ROOT, EventByte::HEAP_OBJECT]),
    ] {
        for dialect in LogDialect::released(version, 8).candidates() {
            let log = open(written(dialect, kinds));
            let num = 4 * kinds.len() as u64;
            assert_eq!(log.survey().num_events(), num, "{}", dialect.name());
            assert_eq!(log.survey().events.faults, [], "{}", dialect.name());
            assert_eq!(log.survey().dialect, dialect, "{}", dialect.name());
            assert_eq!(codes(&log).contains(&"ML005"), dialect != log.header().dialect());
            assert_eq!(log.summary().version, Some(dialect.name()));
        }
    }
}
