//! Rounds of a recording, which limit how far records are out of time order, and the times of samples.

use super::record::RecordLocation;

/// Time and location of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRecord {
    /// Time; 0 where it has none.
    pub time: u64,
    /// Location.
    pub location: RecordLocation,
}

/// Tracks the rounds of a file and counts records that violate their order.
#[derive(Debug, Default)]
pub struct Rounds {
    /// Time up to which records were emitted.
    emitted: u64,
    /// Latest time before the current round.
    previous_latest: u64,
    /// Latest time so far.
    latest: u64,
    /// Number of records that are older than emitted ones.
    pub num_late: u64,
}

impl Rounds {
    /// Adds the time of a record.
    pub fn add(&mut self, time: u64) {
        self.latest = self.latest.max(time);
        self.num_late = self.num_late.saturating_add(u64::from(time < self.emitted));
    }

    /// Ends a round. Returns the time up to which records can be emitted.
    pub fn finish(&mut self) -> u64 {
        self.emitted = self.previous_latest;
        self.previous_latest = self.latest;
        self.emitted
    }
}

/// Times and locations of samples, and the ends of rounds between them.
#[derive(Debug, Default)]
pub struct SampleTimes {
    /// The samples, in file order.
    pub samples: Vec<TimedRecord>,
    /// Number of samples before each end of a round.
    pub rounds: Vec<usize>,
}

impl SampleTimes {
    /// Largest number of samples. For more, another pass over the file needs less memory.
    const MAX_SAMPLES: usize = 4 << 20;

    /// Adds a sample; `None` where there are too many.
    pub fn with(mut self, sample: TimedRecord) -> Option<Self> {
        self.samples.push(sample);
        (self.samples.len() <= Self::MAX_SAMPLES).then_some(self)
    }

    /// Adds the end of a round.
    pub fn finish_round(&mut self) {
        if self.rounds.last() != Some(&self.samples.len()) {
            self.rounds.push(self.samples.len());
        }
    }
}
