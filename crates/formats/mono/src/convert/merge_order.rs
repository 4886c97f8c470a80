//! The order in which the buffers of several logs are written.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::fmt;
use std::fmt::Write;
use std::hash::{DefaultHasher, Hasher};

use perfuse_recording::Recording;
use rustc_hash::FxHashMap;

use crate::convert::outcome::{ConvertSummary, UnsupportedItem};
use crate::recording::MonoLog;
use crate::records::Event;

/// A buffer of one of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferRef {
    /// Index of the log.
    pub log: usize,
    /// Index of the buffer in that log.
    pub buffer: usize,
}

/// Lists every distinct buffer once. Each log keeps its order; several logs are merged by the time of each buffer's
/// first event.
pub fn merge_buffers(logs: &[&MonoLog], summary: &mut ConvertSummary) -> Vec<BufferRef> {
    let num_buffers = |log: &MonoLog| log.survey().buffers.list.len();
    if let [log] = logs {
        return (0..num_buffers(log)).map(|buffer| BufferRef { log: 0, buffer }).collect();
    }
    let times: Vec<Vec<u64>> = logs.iter().map(|log| buffer_times(log)).collect();
    let next = |log: usize, buffer: usize| Some(Reverse((*times.get(log)?.get(buffer)?, log, buffer)));
    let mut heads: BinaryHeap<_> = (0..logs.len()).filter_map(|log| next(log, 0)).collect();
    let (mut merged, mut seen) = (Vec::new(), HashSet::new());
    while let Some(Reverse((_, log, buffer))) = heads.pop() {
        heads.extend(next(log, buffer.saturating_add(1)));
        let bytes = logs.get(log).and_then(|it| {
            let buffer = it.survey().buffers.list.get(buffer)?;
            it.source().get(buffer.offset as usize..buffer.end() as usize)
        });
        if seen.insert(bytes) {
            merged.push(BufferRef { log, buffer });
        } else {
            summary.count_item(UnsupportedItem::Copies, 1);
        }
    }
    merged
}

/// For each buffer the time of its first timed event, or that of an earlier buffer if it is later: the times of a log
/// never decrease, so it keeps its order.
fn buffer_times(log: &MonoLog) -> Vec<u64> {
    let survey = log.survey();
    let mut event = Event::default();
    let firsts = survey.buffers.list.iter().map(|buffer| {
        let mut decoder = buffer.decoder(log.source(), survey.dialect);
        loop {
            match decoder.read(&mut event) {
                // Mono 4.6 writes time 0 in the first COUNTERS event.
                Some(Ok(())) if event.time.is_none_or(|time| time == 0) => {}
                Some(Ok(())) => break event.time.unwrap_or(buffer.header.time_base),
                _ => break buffer.header.time_base,
            }
        }
    });
    let increasing = firsts.scan(0u64, |latest, first| {
        *latest = first.max(*latest);
        Some(*latest)
    });
    increasing.collect()
}

/// Definitions (names, methods, types, counters) already written, so that parts of one log do not repeat them.
#[derive(Debug)]
pub struct WrittenDefinitions {
    several: bool,
    /// Index of the log that contained it first, by a hash of the content.
    first_logs: FxHashMap<u64, usize>,
}

impl WrittenDefinitions {
    /// Starts without definitions. With a single log nothing is compared.
    pub fn new(several: bool) -> Self {
        Self { several, first_logs: FxHashMap::default() }
    }

    /// Whether another log has contained an identical event.
    pub fn is_repeated(&mut self, log: usize, thread: u64, event: &Event<'_>) -> bool {
        if !self.several {
            return false;
        }
        let mut hash = TextHasher(DefaultHasher::new());
        let content = (thread, event.byte, event.time, &event.body, &event.descriptions);
        // Writing to a hash cannot fail.
        let _ = write!(hash, "{content:?}");
        *self.first_logs.entry(hash.0.finish()).or_insert(log) != log
    }
}

/// Hashes formatted text.
struct TextHasher(DefaultHasher);

impl Write for TextHasher {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
