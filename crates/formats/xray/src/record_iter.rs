//! Iterates over the records of a buffer.

use std::ops::Range;

use perfuse_wire::{Endian, ErrorKind, ParseError};

use super::consts::{Action, FUNCTION_BYTES};
use super::records::{Record, XRayDialect, is_metadata, unpack};

/// Zeros of this size are not records: functions have numbers from 1 on, and a file system stores a page of zeros for what was
/// never written. Half a page, since records do not begin where pages do: the first zeros are the end of a record or an event.
pub const UNWRITTEN_BYTES: usize = 2048;

/// The field of the error for such zeros.
pub const UNWRITTEN: &str = "function_id";

/// A record, or the error that ends the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordItem<'a> {
    /// A function record.
    Function {
        /// Its offset in the file.
        offset: usize,
        /// What it reports.
        action: Action,
        /// The function id.
        function_id: u32,
        /// Ticks since the previous record with a time.
        tsc_delta: u32,
    },
    /// A metadata record.
    Metadata {
        /// Its offset in the file.
        offset: usize,
        /// Its size in bytes, including those of an event.
        size: usize,
        /// The decoded record.
        record: Record<'a>,
    },
    /// The buffer ends inside a record, or the size of an event exceeds it; nothing after that is read.
    Broken(ParseError),
}

/// Iterator over the records of a range.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    data: &'a [u8],
    at: usize,
    end: usize,
    dialect: XRayDialect,
}

impl<'a> RecordIter<'a> {
    /// The records of a range of the file.
    #[must_use]
    pub fn new(data: &'a [u8], range: Range<usize>, dialect: XRayDialect) -> Self {
        let end = range.end.min(data.len());
        Self { data, at: range.start.min(end), end, dialect }
    }

    /// Offset of the next record.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Ends the iteration at the next record.
    pub fn stop(&mut self) {
        self.end = self.at;
    }

    /// Ends the range this many bytes earlier, but not before the next record.
    pub fn shorten(&mut self, bytes: usize) {
        self.end = self.end.saturating_sub(bytes).max(self.at);
    }

    /// Takes consecutive function records, at most `limit`.
    #[inline]
    pub fn functions(&mut self, limit: usize) -> FunctionRun<'a> {
        perfuse_stopping::checkpoint();
        let bytes = self.data.get(self.at..self.end).unwrap_or_default();
        let (all_records, _) = bytes.as_chunks::<FUNCTION_BYTES>();
        let records = all_records.get(..limit).unwrap_or(all_records);
        let marker = match self.dialect.endian {
            Endian::Little => 1u8,
            Endian::Big => 0x80,
        };
        // In chunks that are tested without a branch per record.
        let is_other = |word: u64| word.to_le_bytes().first().is_some_and(|first| first & marker != 0);
        let all = |records: &[[u8; FUNCTION_BYTES]]| {
            records.iter().fold(0, |all, &record| all | u64::from_le_bytes(record))
        };
        let mut has_zeros = false;
        let is_usual = |chunk: &&[[u8; FUNCTION_BYTES]]| {
            let all = all(chunk);
            has_zeros = all == 0;
            !has_zeros && !is_other(all)
        };
        let whole = records.chunks(CHUNK_RECORDS).take_while(is_usual).count().saturating_mul(CHUNK_RECORDS);
        let rest = records.get(whole..).unwrap_or_default();
        let more = rest.iter().take_while(|&&record| !is_other(u64::from_le_bytes(record))).count();
        let mut taken = records.len().min(whole).saturating_add(more);
        let last = taken.checked_sub(1).and_then(|last| records.get(last));
        if has_zeros || last == Some(&[0; FUNCTION_BYTES]) {
            taken = written(all_records, whole.saturating_sub(CHUNK_RECORDS), taken);
        }
        let run = FunctionRun {
            offset: self.at,
            records: records.get(..taken).unwrap_or(records),
            endian: self.dialect.endian,
        };
        count_bytes_read(taken.saturating_mul(FUNCTION_BYTES));
        self.at = self.at.saturating_add(taken.saturating_mul(FUNCTION_BYTES));
        run
    }
}

/// Number of records that are tested at once.
const CHUNK_RECORDS: usize = 64;

/// How many of the first `taken` records precede zeros of [`UNWRITTEN_BYTES`], which begin at `from` or later.
#[cold]
fn written(records: &[[u8; FUNCTION_BYTES]], from: usize, taken: usize) -> usize {
    let mut num_zeros = 0usize;
    for (index, &record) in records.iter().enumerate().skip(from) {
        if u64::from_le_bytes(record) == 0 {
            num_zeros = num_zeros.saturating_add(1);
            if num_zeros.saturating_mul(FUNCTION_BYTES) >= UNWRITTEN_BYTES {
                return index.saturating_add(1).saturating_sub(num_zeros).min(taken);
            }
        } else if index >= taken {
            break;
        } else {
            num_zeros = 0;
        }
    }
    taken
}

/// Whether a buffer was never written from here on, for [`UNWRITTEN_BYTES`] at least.
fn is_unwritten(bytes: &[u8]) -> bool {
    bytes.first_chunk() == Some(&[0; FUNCTION_BYTES])
        && bytes.get(..UNWRITTEN_BYTES).is_some_and(|zeros| zeros.iter().fold(0, |all, byte| all | byte) == 0)
}

/// Consecutive function records, for loops without a branch per record.
#[derive(Clone, Copy, Debug)]
pub struct FunctionRun<'a> {
    /// Offset of the first record.
    pub offset: usize,
    records: &'a [[u8; FUNCTION_BYTES]],
    endian: Endian,
}

impl FunctionRun<'_> {
    /// Number of records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Action and function id of the first record.
    #[must_use]
    pub fn first(&self) -> Option<(Action, u32)> {
        self.records.first().map(|&record| self.read(record))
    }

    /// Action and function id of the last record.
    #[must_use]
    pub fn last(&self) -> Option<(Action, u32)> {
        self.records.last().map(|&record| self.read(record))
    }

    /// Whether any action is undefined (4 or more).
    #[must_use]
    pub fn has_unknown_action(&self) -> bool {
        let all = self.records.iter().fold(0, |all, &record| all | u64::from_le_bytes(record));
        let [first, ..] = all.to_le_bytes();
        let highest = match self.endian {
            Endian::Little => 0b1000,
            Endian::Big => 0b0100_0000,
        };
        first & highest != 0
    }

    /// Action and function id of a record.
    fn read(&self, record: [u8; FUNCTION_BYTES]) -> (Action, u32) {
        let (action, id, _) = match self.endian {
            Endian::Little => little(record),
            Endian::Big => big(record),
        };
        (action, id)
    }

    /// Calls `each` with action, function id and delta of each record.
    #[inline]
    pub fn for_each(&self, each: impl FnMut(Action, u32, u32)) {
        self.extend(&mut (), each);
    }

    /// Maps each record, and collects the results.
    #[inline]
    pub fn extend<C, T>(&self, out: &mut C, mut map: impl FnMut(Action, u32, u32) -> T)
    where
        C: Extend<T>,
    {
        match self.endian {
            Endian::Little => out.extend(self.records.iter().map(|&record| {
                let (action, id, delta) = little(record);
                map(action, id, delta)
            })),
            Endian::Big => out.extend(self.records.iter().map(|&record| {
                let (action, id, delta) = big(record);
                map(action, id, delta)
            })),
        }
    }
}

#[inline]
fn little(record: [u8; FUNCTION_BYTES]) -> (Action, u32, u32) {
    let record = u64::from_le_bytes(record);
    (Action(((record >> 1) & 7) as u8), (record as u32) >> 4, (record >> 32) as u32)
}

#[inline]
fn big(record: [u8; FUNCTION_BYTES]) -> (Action, u32, u32) {
    let record = u64::from_be_bytes(record);
    let (action, id) = unpack((record >> 32) as u32, Endian::Big);
    (action, id, record as u32)
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = RecordItem<'a>;

    fn next(&mut self) -> Option<RecordItem<'a>> {
        let offset = self.at;
        let bytes = self.data.get(offset..self.end).filter(|bytes| !bytes.is_empty())?;
        if is_unwritten(bytes) {
            self.stop();
            let expected = "a number from 1 on: zeros of half a page follow";
            let error = ParseError::new(ErrorKind::Invalid { value: 0, expected }, offset as u64, UNWRITTEN);
            return Some(RecordItem::Broken(ParseError { record: Some("Function Record"), ..error }));
        }
        match Record::read(bytes, offset as u64, self.dialect) {
            Ok((record, size)) => {
                count_bytes_read(size);
                self.at = offset.saturating_add(size);
                Some(match record {
                    Record::Function { action, function_id, tsc_delta } => {
                        RecordItem::Function { offset, action, function_id, tsc_delta }
                    }
                    record => RecordItem::Metadata { offset, size, record },
                })
            }
            Err(error) => {
                self.stop();
                let what = bytes.first().map(|&first| is_metadata(first, self.dialect.endian));
                let name = if what == Some(true) { "metadata record" } else { "Function Record" };
                Some(RecordItem::Broken(ParseError { record: Some(name), ..error }))
            }
        }
    }
}

#[cfg(test)]
thread_local! {
    static LOOKED_AT: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Number of bytes that this thread read to find buffers and their records.
#[cfg(test)]
pub fn bytes_read() -> u64 {
    LOOKED_AT.get()
}

/// Counts bytes, for the test that reading is linear in the size of the file.
#[inline]
pub fn count_bytes_read(_bytes: usize) {
    #[cfg(test)]
    LOOKED_AT.set(LOOKED_AT.get() + _bytes as u64);
}
