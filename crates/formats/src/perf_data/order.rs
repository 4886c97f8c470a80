//! Records in time order.
//!
//! Each processor has its own buffer, so a file is in order within a processor only. After emptying all buffers once, perf
//! writes FINISHED_ROUND: what follows is no older than what was there before the round began. So at the end of a round
//! everything up to the end of the one before it can be sorted and given away, and a pass holds two rounds of keys. Files
//! without such records, or whose records break the promise, are sorted whole: sixteen bytes a record.

use std::vec;

use super::consts::RecordType;
use super::reader::{File, Location, RawRecord};
use crate::Position;

/// A record's place in time and in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Time, 0 where it has none.
    pub time: u64,
    /// Where it is.
    pub location: Location,
}

/// Watches whether a file's rounds keep their promise.
#[derive(Debug, Default)]
pub struct Rounds {
    given: u64,
    before: u64,
    latest: u64,
    /// Records older than what a round let go.
    pub num_late: u64,
}

impl Rounds {
    /// A record with a time.
    pub fn see(&mut self, time: u64) {
        self.latest = self.latest.max(time);
        self.num_late = self.num_late.saturating_add(u64::from(time < self.given));
    }

    /// The end of a round: up to where what was seen can be given away.
    pub fn finish(&mut self) -> u64 {
        self.given = self.before;
        self.before = self.latest;
        self.given
    }
}

/// Which records a pass is about, by record and time.
pub type Wanted = fn(&RawRecord<'_>, u64) -> bool;

/// A pass over some of a file's records in time order; those of one time stay in file order.
#[derive(Debug)]
pub struct TimeOrder {
    wanted: Wanted,
    at: Position,
    rounds: Option<Rounds>,
    pending: Vec<Key>,
    ready: vec::IntoIter<Key>,
    ended: bool,
}

impl TimeOrder {
    /// A pass over the records that are wanted.
    pub fn new(file: &File, wanted: Wanted) -> Self {
        let rounds = (file.survey().num_late == 0).then(Rounds::default);
        Self {
            wanted,
            at: Position::default(),
            rounds,
            pending: Vec::new(),
            ready: Vec::new().into_iter(),
            ended: false,
        }
    }

    /// The next one.
    pub fn next(&mut self, file: &File) -> Option<Key> {
        loop {
            if let Some(key) = self.ready.next() {
                return Some(key);
            }
            if self.ended {
                return None;
            }
            self.read_round(file);
        }
    }

    /// The first place in the file, and the first in what its packed records hold, that will be asked for again.
    pub fn oldest(&self) -> Position {
        let mut oldest = Position { offset: self.at.offset, inner: self.at.inner, ..Position::default() };
        for key in self.ready.as_slice().iter().chain(&self.pending) {
            let place = key.location.position();
            if place.inner == 0 {
                oldest.offset = oldest.offset.min(place.offset);
            } else {
                oldest.inner = oldest.inner.min(place.inner);
            }
        }
        oldest
    }

    fn read_round(&mut self, file: &File) {
        while let Ok(record) = file.next(&mut self.at) {
            if record.record_type == RecordType::FINISHED_ROUND {
                if let Some(limit) = self.rounds.as_mut().map(Rounds::finish)
                    && self.give(limit)
                {
                    return;
                }
                continue;
            }
            if record.record_type.is_user() {
                continue;
            }
            let time = file.time(&record).unwrap_or(0);
            if let Some(rounds) = &mut self.rounds {
                rounds.see(time);
            }
            if (self.wanted)(&record, time) {
                self.pending.push(Key { time, location: record.location });
            }
        }
        self.ended = true;
        self.give(u64::MAX);
    }

    fn give(&mut self, limit: u64) -> bool {
        let (mut ready, pending): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|key| key.time <= limit);
        ready.sort_by_key(|key| key.time);
        self.pending = pending;
        self.ready = ready.into_iter();
        self.ready.len() > 0
    }
}
