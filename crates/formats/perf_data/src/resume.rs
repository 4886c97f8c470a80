//! Where reading continues after bytes that are not records.

use super::attribute::Attributes;
use super::consts::RecordType;
use super::damage::SkippedBytes;
use super::reader::RecordFile;
use super::record::{RECORD_ALIGNMENT, RawEvent, RecordsEnd, accept, read_header};

/// Number of consecutive records that show that reading may continue, unless the records end before.
const NUM_IN_SEQUENCE: usize = 4;
/// Records at the end of a file that is cut inside the next one which show it.
const NUM_BEFORE_CUT: usize = 2;

impl RecordFile {
    /// Reads the record at an offset.
    ///
    /// # Errors
    /// The reason where there is none.
    #[inline]
    pub(super) fn accepted(&self, offset: u64) -> Result<RawEvent<'_>, RecordsEnd> {
        accept(self.record_at_offset(offset)?)
    }

    /// Whether the header of a record of a known type is at an offset, or the end.
    fn has_record_type(&self, offset: u64) -> bool {
        let bytes = self.source.get(..self.end()).unwrap_or_default();
        let header = read_header(bytes, offset, self.endian);
        offset == self.records.end
            || header.is_some_and(|header| RecordType(header.type_).known_name().is_some())
    }

    /// Offset of the next record after bytes at `offset` that are not one.
    ///
    /// # Errors
    /// `reason` where no further record is found.
    #[cold]
    pub(super) fn after_damage(&self, offset: u64, reason: RecordsEnd) -> Result<u64, RecordsEnd> {
        let find = || SkippedBytes { offset, reason, next: self.find_record(offset.saturating_add(1)) };
        self.damage.at(offset, find).next.ok_or(reason)
    }

    /// Offset of the first record from an offset on.
    fn find_record(&self, from: u64) -> Option<u64> {
        (from..self.records.end).find(|&offset| {
            if offset.trailing_zeros() >= 16 {
                perfuse_stopping::checkpoint();
            }
            // Most offsets are refused by the type alone.
            self.has_record_type(offset) && self.begins_records(offset)
        })
    }

    /// Whether records follow each other from an offset on.
    fn begins_records(&self, offset: u64) -> bool {
        let mut at = offset;
        for number in 0..NUM_IN_SEQUENCE {
            match self.record_at_offset(at) {
                Ok(record) if self.is_plausible(&record) => at = at.saturating_add(record.size),
                Err(RecordsEnd::Complete) => return number > 0,
                Err(RecordsEnd::Short { .. }) => return number >= NUM_BEFORE_CUT,
                _ => return false,
            }
        }
        true
    }

    /// Whether a record is one of a known type whose fields can be read.
    fn is_plausible(&self, record: &RawEvent<'_>) -> bool {
        let kind = record.record_type;
        let has_event = |attributes: &Attributes| {
            attributes.find(kind, record.body, self.endian).is_some_and(|(_, is_known)| is_known)
        };
        kind.known_name().is_some()
            && (record.size.is_multiple_of(RECORD_ALIGNMENT) || kind.is_compressed() || kind.is_simpleperf())
            && (kind != RecordType::SAMPLE || has_event(&self.attributes))
            && self.body_error(record).is_none()
    }
}
