//! The selected records of a recording, one by one.

use std::collections::HashSet;

use perfuse_wire::RecordView;

use crate::{Position, Recording};

/// Which records to list, by index or by offset; half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordRange {
    /// Records with an index in this range.
    Indexes {
        /// The first index.
        first: u64,
        /// The index after the last one.
        end: u64,
    },
    /// Records that begin in this range of offsets.
    Offsets {
        /// The first offset.
        first: u64,
        /// The offset after the last one.
        end: u64,
    },
}

impl Default for RecordRange {
    fn default() -> Self {
        Self::Indexes { first: 0, end: u64::MAX }
    }
}

impl RecordRange {
    /// Whether a record is in the range.
    fn contains(&self, record: &RecordView<'_>) -> bool {
        match *self {
            Self::Indexes { first, end } => (first..end).contains(&record.index),
            Self::Offsets { first, end } => (first..end).contains(&record.offset),
        }
    }

    /// Whether a record, and every record after it, is past the range.
    fn ends_before(&self, record: &RecordView<'_>, is_sorted: bool) -> bool {
        match *self {
            Self::Indexes { end, .. } => record.index >= end,
            Self::Offsets { end, .. } => is_sorted && record.offset >= end,
        }
    }
}

/// Reads the selected records of a recording in file order. Records before the range are not decoded.
#[derive(Debug)]
pub struct RecordCursor {
    range: RecordRange,
    /// Names of the selected kinds; all where `None`.
    kinds: Option<HashSet<String>>,
    /// Where the next record is; `None` before the first one is sought.
    at: Option<Position>,
    /// Whether the records are in the order of their offsets.
    is_sorted: bool,
    is_done: bool,
    /// Number of records that were returned.
    num_found: u64,
}

impl RecordCursor {
    /// The records of a range, of these kinds; of all kinds where `None`.
    #[must_use]
    pub fn new(range: RecordRange, kinds: Option<HashSet<String>>) -> Self {
        Self { range, kinds, at: None, is_sorted: true, is_done: false, num_found: 0 }
    }

    /// The next selected record.
    pub fn next<'a>(&mut self, recording: &'a dyn Recording) -> Option<RecordView<'a>> {
        let found = self.find(recording, true);
        self.num_found = self.num_found.saturating_add(found.is_some().into());
        found
    }

    /// Number of selected records that are left; they are not decoded.
    pub fn count_rest(&mut self, recording: &dyn Recording) -> u64 {
        if self.range == RecordRange::default() {
            let counts = recording.summary().counts;
            let is_selected = |name: &str| self.kinds.as_ref().is_none_or(|kinds| kinds.contains(name));
            let selected = counts.iter().filter(|(name, _)| is_selected(name));
            let num = selected.fold(0u64, |sum, (_, count)| sum.saturating_add(*count));
            return num.saturating_sub(self.num_found);
        }
        if self.kinds.is_none()
            && let Some(end) = self.end(recording)
        {
            let at = self.position(recording);
            self.is_done = true;
            return end.index.saturating_sub(at.index);
        }
        let mut num = 0u64;
        while self.find(recording, false).is_some() {
            num = num.saturating_add(1);
        }
        num
    }

    /// The next selected record, with its fields where they are wanted.
    fn find<'a>(&mut self, recording: &'a dyn Recording, with_fields: bool) -> Option<RecordView<'a>> {
        if self.is_done {
            return None;
        }
        let mut at = self.position(recording);
        let found = loop {
            perfuse_stopping::checkpoint();
            let kinds = &self.kinds;
            let is_selected = |name: &str| kinds.as_ref().is_none_or(|kinds| kinds.contains(name));
            let record = recording.read_record(&mut at, &|name| with_fields && is_selected(name));
            let Some(record) = record.filter(|record| !self.range.ends_before(record, self.is_sorted)) else {
                self.is_done = true;
                break None;
            };
            if is_selected(&record.name) && self.range.contains(&record) {
                break Some(record);
            }
        };
        self.at = Some(at);
        found
    }

    /// The position of the next record.
    fn position(&mut self, recording: &dyn Recording) -> Position {
        let (range, is_sorted) = (self.range, &mut self.is_sorted);
        *self.at.get_or_insert_with(|| match range {
            RecordRange::Indexes { first: 0, .. } => Position::default(),
            RecordRange::Indexes { first, .. } => recording.seek_index(first),
            RecordRange::Offsets { first, .. } => {
                let found = recording.seek_offset(first);
                *is_sorted = found.is_some();
                found.unwrap_or_default()
            }
        })
    }

    /// The position after the range; `None` where records are not in the order of their offsets.
    fn end(&self, recording: &dyn Recording) -> Option<Position> {
        match self.range {
            RecordRange::Indexes { end, .. } => Some(recording.seek_index(end)),
            RecordRange::Offsets { end, .. } => recording.seek_offset(end),
        }
    }
}
