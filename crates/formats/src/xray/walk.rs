//! Walks the records of a buffer.

use std::ops::Range;

use perfuse_wire::{Endian, ParseError};

use super::consts::{Action, FUNCTION_BYTES};
use super::records::{Dialect, Record, is_metadata, unpack};

/// What stands at a place in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// A function record.
    Function {
        /// Where.
        offset: usize,
        /// What it tells.
        action: Action,
        /// Its id.
        function_id: u32,
        /// Ticks since the record before that had a time.
        tsc_delta: u32,
    },
    /// A metadata record.
    Metadata {
        /// Where.
        offset: usize,
        /// The bytes it takes, those of an event with it.
        size: usize,
        /// What it tells.
        record: Record<'a>,
    },
    /// The buffer ends inside a record, or an event's size leads out of it: nothing is read behind.
    Broken(ParseError),
}

/// Walks records up to the end of a range.
#[derive(Clone, Debug)]
pub struct Walk<'a> {
    data: &'a [u8],
    at: usize,
    end: usize,
    dialect: Dialect,
}

impl<'a> Walk<'a> {
    /// A walk over a range of the file.
    #[must_use]
    pub fn new(data: &'a [u8], range: Range<usize>, dialect: Dialect) -> Self {
        let end = range.end.min(data.len());
        Self { data, at: range.start.min(end), end, dialect }
    }

    /// Offset of the next record.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Ends the walk here.
    pub fn stop(&mut self) {
        self.end = self.at;
    }

    /// Ends the walk so many bytes earlier, but not before its next record.
    pub fn shorten(&mut self, bytes: usize) {
        self.end = self.end.saturating_sub(bytes).max(self.at);
    }

    /// Takes function records as long as there is nothing else, at most `limit` of them: first words and deltas, for a loop that
    /// has no time to ask what each is.
    #[inline]
    pub fn functions(&mut self, limit: usize, mut each: impl FnMut(Action, u32, u32)) -> usize {
        let bytes = self.data.get(self.at..self.end).unwrap_or_default();
        let (chunks, _) = bytes.as_chunks::<FUNCTION_BYTES>();
        let mut taken = 0usize;
        match self.dialect.endian {
            Endian::Little => {
                for chunk in chunks.iter().take(limit) {
                    let record = u64::from_le_bytes(*chunk);
                    if record & 1 == 1 {
                        break;
                    }
                    each(Action(((record >> 1) & 7) as u8), (record as u32) >> 4, (record >> 32) as u32);
                    taken = taken.wrapping_add(1);
                }
            }
            Endian::Big => {
                for chunk in chunks.iter().take(limit) {
                    let record = u64::from_be_bytes(*chunk);
                    if record >> 63 == 1 {
                        break;
                    }
                    let (action, id) = unpack((record >> 32) as u32, Endian::Big);
                    each(action, id, record as u32);
                    taken = taken.wrapping_add(1);
                }
            }
        }
        self.at = self.at.saturating_add(taken.saturating_mul(FUNCTION_BYTES));
        taken
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        let offset = self.at;
        let bytes = self.data.get(offset..self.end).filter(|bytes| !bytes.is_empty())?;
        match Record::read(bytes, offset as u64, self.dialect) {
            Ok((record, size)) => {
                self.at = offset.saturating_add(size);
                Some(match record {
                    Record::Function { action, function_id, tsc_delta } => {
                        Step::Function { offset, action, function_id, tsc_delta }
                    }
                    record => Step::Metadata { offset, size, record },
                })
            }
            Err(error) => {
                self.stop();
                let what = bytes.first().map(|&first| is_metadata(first, self.dialect.endian));
                let name = if what == Some(true) { "metadata record" } else { "Function Record" };
                Some(Step::Broken(ParseError { record: Some(name), ..error }))
            }
        }
    }
}
