//! Tests of the conversion of logs.

mod damage;
mod merging;
mod selection;
mod versions;

use crate::convert::{ConvertSummary, LogSelection, Options, convert};
use crate::recording::MonoLog;
use crate::records::Event;
use crate::tests::assemble::{fixtures, open};

fn converted(logs: &[&MonoLog], options: &Options) -> (Vec<u8>, ConvertSummary) {
    let mut out = Vec::new();
    let summary = convert(logs, options, &mut out).unwrap();
    (out, summary)
}

fn to(version: u8) -> Options {
    Options { version: Some(version), ..Options::default() }
}

fn part(selection: LogSelection) -> Options {
    Options { selection, ..Options::default() }
}

/// Text of the events of a log with their threads, in file order.
fn event_texts(log: &MonoLog) -> Vec<(u64, String)> {
    let survey = log.survey();
    let mut event = Event::default();
    let mut all = Vec::new();
    for buffer in &survey.buffers.list {
        let mut decoder = buffer.decoder(perfuse_recording::Recording::source(log), survey.dialect);
        while let Some(Ok(())) = decoder.read(&mut event) {
            let event_alone = Event { offset: 0, size: 0, ..event.clone() };
            all.push((buffer.header.thread_id, format!("{event_alone:?}")));
        }
    }
    all
}

fn num_events(log: &MonoLog) -> u64 {
    log.survey().num_events()
}

fn fixture(name: &str) -> MonoLog {
    let (_, bytes) = fixtures().into_iter().find(|(own, _)| own == name).unwrap();
    open(bytes)
}
