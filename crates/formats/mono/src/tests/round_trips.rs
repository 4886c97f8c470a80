//! Tests that decoded logs are encoded again: byte for byte with the buffers' bases, event for event without.

use perfuse_recording::Recording;

use crate::consts::EventByte;
use crate::dialect::LogDialect;
use crate::encode::BufferEncoder;
use crate::recording::MonoLog;
use crate::records::Event;
use crate::tests::assemble::{fixtures, open};
use crate::writer::{WriteError, Writer};

/// The log encoded again, buffer by buffer.
fn rewritten(log: &MonoLog) -> Vec<u8> {
    let mut out = Vec::new();
    log.header().write(&mut out);
    let survey = log.survey();
    let mut event = Event::default();
    for buffer in &survey.buffers.list {
        let mut encoder = BufferEncoder::like(survey.dialect, &buffer.header);
        let mut decoder = buffer.decoder(log.source(), survey.dialect);
        while let Some(read) = decoder.read(&mut event) {
            read.unwrap();
            encoder.write(&mut event).unwrap();
        }
        encoder.finish(&mut out).unwrap();
    }
    out
}

#[test]
fn byte_for_byte() {
    for (name, bytes) in fixtures() {
        assert!(rewritten(&open(bytes.clone())) == bytes, "{name}");
    }
}

/// Real logs of every data version and option.
#[test]
fn byte_for_byte_of_real_logs() {
    let files = perfuse_corpus::files(&["mono/tiny", "mono/v17", "mono/versions"]);
    for path in &files {
        let source = perfuse_recording::Source::open(path.to_str().unwrap()).unwrap();
        let log = MonoLog::open(std::sync::Arc::new(source)).unwrap();
        let source: &[u8] = log.source();
        assert!(rewritten(&log) == source, "{}", path.display());
    }
    assert!(files.is_empty() || files.len() > 90, "{} files", files.len());
}

/// Passes the events of a log with their threads to `each`, in file order.
fn events(log: &MonoLog, mut each: impl FnMut(u64, &mut Event<'_>)) {
    let survey = log.survey();
    let mut event = Event::default();
    for buffer in &survey.buffers.list {
        let mut decoder = buffer.decoder(log.source(), survey.dialect);
        while let Some(Ok(())) = decoder.read(&mut event) {
            each(buffer.header.thread_id, &mut event);
        }
    }
}

/// Text of an event without its position.
fn event_text(event: &Event<'_>) -> String {
    format!("{:?}", Event { offset: 0, size: 0, ..event.clone() })
}

#[test]
fn event_for_event_through_the_writer() {
    for (name, bytes) in fixtures() {
        let log = open(bytes);
        let mut writer = Writer::new(Vec::new(), log.header()).unwrap();
        let mut before: Vec<(u64, String)> = Vec::new();
        events(&log, |thread, event| {
            before.push((thread, event_text(event)));
            writer.event(thread, event).unwrap();
        });
        let mut after = Vec::new();
        let written = open(writer.finish().unwrap());
        events(&written, |thread, event| after.push((thread, event_text(event))));
        assert_eq!(written.survey().events.faults, []);
        // Events are collected in a buffer for each thread; the events of a thread keep their order.
        before.sort_by_key(|(thread, _)| *thread);
        after.sort_by_key(|(thread, _)| *thread);
        assert_eq!(before, after, "{name}");
    }
}

#[test]
fn an_undefined_event_is_rejected_without_output() {
    let mut header = open(fixtures()[0].1.clone()).header().clone();
    header = header.converted(&LogDialect::released(3, 8));
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    let mut event = Event::default();
    for byte in [EventByte::SYNC_POINT, EventByte::GC_FINALIZE_START, EventByte::AOT_ID, EventByte::JITHELPER]
    {
        assert!(event.begin(byte));
        assert!(matches!(writer.event(1, &mut event), Err(WriteError::Refused(_))), "{byte}");
    }
    let written = open(writer.finish().unwrap());
    assert_eq!(written.survey().num_events(), 0);
    assert!(written.survey().buffers.list.is_empty());
}
