//! In which order the buffers of several logs go into one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hasher};

use rustc_hash::FxHashMap;

use super::misfits::{Misfit, Written};
use crate::MonoLog;
use crate::records::Event;
use perfuse_recording::Recording;

/// A buffer of one of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which log.
    pub log: usize,
    /// Number of its buffer.
    pub buffer: usize,
}

/// Every buffer once: each log's in its own order, those of several by the time of their first events.
pub fn places(logs: &[&MonoLog], written: &mut Written) -> Vec<Place> {
    let num = |log: &MonoLog| log.survey().buffers.list.len();
    if let [log] = logs {
        return (0..num(log)).map(|buffer| Place { log: 0, buffer }).collect();
    }
    let times: Vec<Vec<u64>> = logs.iter().map(|log| times(log)).collect();
    let next = |log: usize, buffer: usize| Some(Reverse((*times.get(log)?.get(buffer)?, log, buffer)));
    let mut heads: BinaryHeap<_> = (0..logs.len()).filter_map(|log| next(log, 0)).collect();
    let (mut places, mut known) = (Vec::new(), HashSet::new());
    while let Some(Reverse((_, log, buffer))) = heads.pop() {
        heads.extend(next(log, buffer.saturating_add(1)));
        let bytes = logs.get(log).and_then(|it| {
            let place = it.survey().buffers.list.get(buffer)?;
            it.source().get(place.offset as usize..place.end() as usize)
        });
        if known.insert(bytes) {
            places.push(Place { log, buffer });
        } else {
            written.add(Misfit::Copies, 1);
        }
    }
    places
}

/// For each buffer the time of its first event that has one, or that of a buffer before it if that is later: within a log they
/// never go back, so that it keeps its order.
fn times(log: &MonoLog) -> Vec<u64> {
    let survey = log.survey();
    let mut event = Event::default();
    let firsts = survey.buffers.list.iter().map(|buffer| {
        let mut decoder = buffer.decoder(log.source(), survey.dialect);
        loop {
            match decoder.read(&mut event) {
                // Mono 4.6 writes 0 as the time of the first values of counters.
                Some(Ok(())) if event.time.is_none_or(|time| time == 0) => {}
                Some(Ok(())) => break event.time.unwrap_or(buffer.header.time_base),
                _ => break buffer.header.time_base,
            }
        }
    });
    let growing = firsts.scan(0u64, |latest, first| {
        *latest = first.max(*latest);
        Some(*latest)
    });
    growing.collect()
}

/// What the logs before have named: logs that were cut out of one each have all its names.
#[derive(Debug)]
pub struct Told {
    several: bool,
    /// Log that told it first, by a hash of what it says.
    known: FxHashMap<u64, usize>,
}

impl Told {
    pub fn new(several: bool) -> Self {
        Self { several, known: FxHashMap::default() }
    }

    /// Whether another log has said the very same.
    pub fn is_known(&mut self, log: usize, thread: u64, event: &Event<'_>) -> bool {
        if !self.several {
            return false;
        }
        let mut hash = Hash(DefaultHasher::new());
        let said = (thread, event.byte, event.time, &event.body, &event.descriptions);
        // Writing to a hash cannot fail.
        let _ = write!(hash, "{said:?}");
        *self.known.entry(hash.0.finish()).or_insert(log) != log
    }
}

struct Hash(DefaultHasher);

impl Write for Hash {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
