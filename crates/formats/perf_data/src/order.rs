//! Iteration over records in time order.
//!
//! Each processor has its own buffer, so a file is in time order only within a processor. After perf has read all buffers
//! once, it writes FINISHED_ROUND: later records are not older than the records before that round. At the end of a round,
//! all records up to the end of the previous round can be sorted and emitted, and a pass keeps the times of two rounds.
//! Files without FINISHED_ROUND, or with records that violate this order, are sorted as a whole, which needs 16 bytes for
//! each record.

use std::vec;

use super::consts::RecordType;
use super::perf_file::PerfFile;
use super::record::RawEvent;
use super::rounds::{Rounds, TimedRecord};
use perfuse_recording::Position;

/// Selects records of a pass, by record and time.
pub type RecordFilter = fn(&RawEvent<'_>, u64) -> bool;

/// An item of a pass in file order.
enum OrderItem {
    /// A record with its time, and whether it is selected.
    Record(TimedRecord, bool),
    /// The end of a round.
    RoundEnd,
}

/// Origin of the records of a pass.
#[derive(Debug)]
enum RecordOrigin {
    /// Records of the file that a filter selects.
    File(RecordFilter),
    /// The sample times of the survey: number of samples read, and number of rounds ended.
    SampleTimes { samples: usize, rounds: usize },
}

/// A pass over selected records of a file in time order. Records with equal times remain in file order.
#[derive(Debug)]
pub struct TimeOrder {
    origin: RecordOrigin,
    /// Position of the next record in the file.
    at: Position,
    rounds: Option<Rounds>,
    /// Records that are not ordered yet.
    pending: Vec<TimedRecord>,
    /// Ordered records that are not returned yet.
    ready: vec::IntoIter<TimedRecord>,
    ended: bool,
}

impl TimeOrder {
    /// A pass over the records that a filter selects.
    pub fn new(file: &PerfFile, filter: RecordFilter) -> Self {
        Self::with_origin(file, RecordOrigin::File(filter))
    }

    /// A pass over the samples.
    pub fn samples(file: &PerfFile) -> Self {
        let origin = match file.survey().samples {
            Some(_) => RecordOrigin::SampleTimes { samples: 0, rounds: 0 },
            None => RecordOrigin::File(|record, _| record.record_type == RecordType::SAMPLE),
        };
        Self::with_origin(file, origin)
    }

    fn with_origin(file: &PerfFile, origin: RecordOrigin) -> Self {
        let rounds = (file.survey().num_late == 0).then(Rounds::default);
        let (pending, ready) = (Vec::new(), Vec::new().into_iter());
        Self { origin, at: Position::default(), rounds, pending, ready, ended: false }
    }

    /// The next record.
    pub fn next(&mut self, file: &PerfFile) -> Option<TimedRecord> {
        loop {
            if let Some(record) = self.ready.next() {
                return Some(record);
            }
            if self.ended {
                return None;
            }
            self.read_round(file);
        }
    }

    /// The smallest offset in the file, and in its unpacked content, of records that the pass has not returned yet.
    pub fn oldest(&self) -> Position {
        let mut oldest = Position { offset: self.at.offset, inner: self.at.inner, ..Position::default() };
        for record in self.ready.as_slice().iter().chain(&self.pending) {
            let position = record.location.position();
            if position.inner == 0 {
                oldest.offset = oldest.offset.min(position.offset);
            } else {
                oldest.inner = oldest.inner.min(position.inner);
            }
        }
        oldest
    }

    /// Reads records until some can be emitted.
    fn read_round(&mut self, file: &PerfFile) {
        while let Some(item) = self.next_in_file_order(file) {
            match item {
                OrderItem::RoundEnd => {
                    if let Some(limit) = self.rounds.as_mut().map(Rounds::finish)
                        && self.emit(limit)
                    {
                        return;
                    }
                }
                OrderItem::Record(record, is_selected) => {
                    if let Some(rounds) = &mut self.rounds {
                        rounds.add(record.time);
                    }
                    if is_selected {
                        self.pending.push(record);
                    }
                }
            }
        }
        self.ended = true;
        self.emit(u64::MAX);
    }

    fn next_in_file_order(&mut self, file: &PerfFile) -> Option<OrderItem> {
        match &mut self.origin {
            RecordOrigin::File(filter) => loop {
                let record = file.next(&mut self.at).ok()?;
                if record.record_type == RecordType::FINISHED_ROUND {
                    return Some(OrderItem::RoundEnd);
                }
                if !record.record_type.is_user() {
                    let time = file.time(&record).unwrap_or(0);
                    let timed = TimedRecord { time, location: record.location };
                    return Some(OrderItem::Record(timed, filter(&record, time)));
                }
            },
            RecordOrigin::SampleTimes { samples, rounds } => {
                let times = file.survey().samples.as_ref()?;
                if times.rounds.get(*rounds) == Some(samples) {
                    *rounds = rounds.saturating_add(1);
                    return Some(OrderItem::RoundEnd);
                }
                let record = *times.samples.get(*samples)?;
                *samples = samples.saturating_add(1);
                match record.location.position() {
                    Position { inner: 0, offset, .. } => self.at.offset = offset,
                    Position { inner, .. } => self.at.inner = inner,
                }
                Some(OrderItem::Record(record, true))
            }
        }
    }

    /// Sorts the pending records up to a time and makes them ready. Returns whether there are any.
    fn emit(&mut self, limit: u64) -> bool {
        let (mut ready, pending): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|record| record.time <= limit);
        ready.sort_by_key(|record| record.time);
        self.pending = pending;
        self.ready = ready.into_iter();
        self.ready.len() > 0
    }
}
