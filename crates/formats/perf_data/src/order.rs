//! Records in time order.
//!
//! Each processor has its own buffer, so a file is in order within a processor only. After emptying all buffers once, perf
//! writes FINISHED_ROUND: what follows is no older than what was there before the round began. So at the end of a round
//! everything up to the end of the one before it can be sorted and given away, and a pass holds two rounds of keys. Files
//! without such records, or whose records break the promise, are sorted whole: sixteen bytes a record.

use std::vec;

use super::consts::RecordType;
use super::reader::{File, Location, RawRecord};
use perfuse_recording::Position;

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

/// Samples and ends of rounds, noted by a pass that came by.
#[derive(Debug, Default)]
pub struct Noted {
    samples: Vec<Key>,
    /// How many samples came before each end.
    rounds: Vec<usize>,
}

impl Noted {
    /// More are found by another pass over the file: nobody wants a gigabyte of keys.
    const MAX: usize = 4 << 20;

    /// With a sample; `None` where that makes too many.
    pub fn with(mut self, sample: Key) -> Option<Self> {
        self.samples.push(sample);
        (self.samples.len() <= Self::MAX).then_some(self)
    }

    /// A round ends here.
    pub fn finish_round(&mut self) {
        if self.rounds.last() != Some(&self.samples.len()) {
            self.rounds.push(self.samples.len());
        }
    }
}

/// Which records a pass is about, by record and time.
pub type Wanted = fn(&RawRecord<'_>, u64) -> bool;

/// What a pass comes by.
enum Step {
    /// A record with its time, and whether it is wanted.
    Record(Key, bool),
    /// The end of a round.
    Round,
}

/// Where a pass takes its records from.
#[derive(Debug)]
enum Walk {
    /// From the file.
    All(Wanted),
    /// Samples, from what was noted: how many were given, and how many rounds have ended.
    Noted { samples: usize, rounds: usize },
}

/// A pass over some of a file's records in time order; those of one time stay in file order.
#[derive(Debug)]
pub struct TimeOrder {
    walk: Walk,
    at: Position,
    rounds: Option<Rounds>,
    pending: Vec<Key>,
    ready: vec::IntoIter<Key>,
    ended: bool,
}

impl TimeOrder {
    /// A pass over the records that are wanted.
    pub fn new(file: &File, wanted: Wanted) -> Self {
        Self::of(file, Walk::All(wanted))
    }

    /// A pass over the samples.
    pub fn samples(file: &File) -> Self {
        let walk = match file.survey().samples {
            Some(_) => Walk::Noted { samples: 0, rounds: 0 },
            None => Walk::All(|record, _| record.record_type == RecordType::SAMPLE),
        };
        Self::of(file, walk)
    }

    fn of(file: &File, walk: Walk) -> Self {
        let rounds = (file.survey().num_late == 0).then(Rounds::default);
        let (pending, ready) = (Vec::new(), Vec::new().into_iter());
        Self { walk, at: Position::default(), rounds, pending, ready, ended: false }
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
        while let Some(step) = self.step(file) {
            match step {
                Step::Round => {
                    if let Some(limit) = self.rounds.as_mut().map(Rounds::finish)
                        && self.give(limit)
                    {
                        return;
                    }
                }
                Step::Record(key, is_wanted) => {
                    if let Some(rounds) = &mut self.rounds {
                        rounds.see(key.time);
                    }
                    if is_wanted {
                        self.pending.push(key);
                    }
                }
            }
        }
        self.ended = true;
        self.give(u64::MAX);
    }

    fn step(&mut self, file: &File) -> Option<Step> {
        match &mut self.walk {
            Walk::All(wanted) => loop {
                let record = file.next(&mut self.at).ok()?;
                if record.record_type == RecordType::FINISHED_ROUND {
                    return Some(Step::Round);
                }
                if !record.record_type.is_user() {
                    let time = file.time(&record).unwrap_or(0);
                    return Some(Step::Record(
                        Key { time, location: record.location },
                        wanted(&record, time),
                    ));
                }
            },
            Walk::Noted { samples, rounds } => {
                let noted = file.survey().samples.as_ref()?;
                if noted.rounds.get(*rounds) == Some(samples) {
                    *rounds = rounds.saturating_add(1);
                    return Some(Step::Round);
                }
                let key = *noted.samples.get(*samples)?;
                *samples = samples.saturating_add(1);
                match key.location.position() {
                    Position { inner: 0, offset, .. } => self.at.offset = offset,
                    Position { inner, .. } => self.at.inner = inner,
                }
                Some(Step::Record(key, true))
            }
        }
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
