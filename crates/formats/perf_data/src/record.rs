//! Undecoded records: splitting bytes into records, and where the bytes of a record are.

use perfuse_recording::Position;
use perfuse_wire::{Cursor, Endian};

use super::consts::RecordType;
use super::layout::EventHeader;

/// Location of a record's bytes: in the file, or in the unpacked content of its compressed records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordLocation(u64);

impl RecordLocation {
    /// Bit of offsets in unpacked content.
    const UNPACKED: u64 = 1 << 63;

    /// The location at an offset in the unpacked content.
    pub(super) fn unpacked(offset: u64) -> Self {
        Self(offset | Self::UNPACKED)
    }

    /// Offset in the unpacked content; `None` for a location in the file.
    pub(super) fn unpacked_offset(self) -> Option<u64> {
        (self.0 & Self::UNPACKED != 0).then_some(self.0 & !Self::UNPACKED)
    }

    /// Number of the location, for a table.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// The location with a number.
    #[must_use]
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The position: `offset` in the file, or `inner`, which is 1 more than an offset in the unpacked content.
    #[must_use]
    pub fn position(self) -> Position {
        match self.0 & !Self::UNPACKED {
            offset if offset == self.0 => Position { offset, ..Position::default() },
            offset => Position { inner: offset.saturating_add(1), ..Position::default() },
        }
    }
}

/// An undecoded record.
#[derive(Clone, Copy, Debug)]
pub struct RawEvent<'a> {
    /// Zero-based index in the file.
    pub index: u64,
    /// Absolute offset; for an unpacked record, the offset of its compressed record.
    pub offset: u64,
    /// Location of its bytes.
    pub location: RecordLocation,
    /// Type.
    pub record_type: RecordType,
    /// `misc` of the header.
    pub misc: u16,
    /// Size in bytes, with header and payload.
    pub size: u64,
    /// The bytes in the size of the header, header included.
    pub bytes: &'a [u8],
    /// The bytes after the header.
    pub body: &'a [u8],
    /// Data after the record, which its size does not include: AUX data, tracepoint formats.
    pub payload: &'a [u8],
}

impl<'a> RawEvent<'a> {
    /// A cursor at the start of the body.
    #[must_use]
    #[inline]
    pub fn cursor(&self, endian: Endian) -> Cursor<'a> {
        Cursor::new(self.body, self.offset.saturating_add(EventHeader::SIZE), endian)
    }

    /// The body without the sample id at its end, and that. A record shorter than the sample id contains none.
    #[must_use]
    pub fn without_sample_id(&self, sample_id_bytes: usize) -> (&'a [u8], &'a [u8]) {
        let at = self.body.len().checked_sub(sample_id_bytes);
        at.and_then(|at| self.body.split_at_checked(at)).unwrap_or((self.body, &[]))
    }
}

/// Reason why no record follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordsEnd {
    /// All records were read.
    #[default]
    Complete,
    /// The bytes end inside a record.
    Short {
        /// Offset of the record.
        offset: u64,
        /// Number of bytes of the record.
        need: u64,
        /// Number of bytes left.
        have: u64,
    },
    /// A message of perf follows, as where its standard error was redirected into the stream.
    Message {
        /// Offset of the message.
        offset: u64,
    },
    /// The size of a record is less than that of its header, or not one that the kernel writes.
    BadSize {
        /// Offset of the record.
        offset: u64,
        /// Size in the header.
        size: u16,
    },
    /// No record has such a type.
    UnknownType {
        /// Offset of the bytes.
        offset: u64,
        /// The number in the place of the type.
        number: u32,
    },
}

/// Reads the header of a record; `None` where the bytes end inside it.
#[inline]
pub fn read_header(bytes: &[u8], offset: u64, endian: Endian) -> Option<EventHeader> {
    let rest = bytes.get(usize::try_from(offset).ok()?..)?;
    EventHeader::read(&mut Cursor::new(rest, offset, endian)).ok()
}

/// The types of records are below: those of simpleperf, which are the largest, have 16 bits.
const LEAST_IMPOSSIBLE: u32 = 1 << 16;
/// Alignment of records of the kernel: perf stops at one of another size. `COMPRESSED` and records of simpleperf have any size.
pub const RECORD_ALIGNMENT: u64 = 8;

/// What perf prints at the end of a recording starts with this.
const MESSAGE: &[u8] = b"[ perf record: ";

/// Reads the record at an offset. Tracepoint formats follow their record only in pipe mode.
///
/// # Errors
/// The reason where there is no whole record.
pub fn read_record(
    bytes: &[u8],
    offset: u64,
    endian: Endian,
    pipe: bool,
) -> Result<RawEvent<'_>, RecordsEnd> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let rest = bytes.get(start..).unwrap_or_default();
    if rest.is_empty() {
        return Err(RecordsEnd::Complete);
    }
    if pipe && rest.starts_with(MESSAGE) {
        return Err(RecordsEnd::Message { offset });
    }
    let short = |need: u64| RecordsEnd::Short { offset, need, have: rest.len() as u64 };
    let header =
        EventHeader::read(&mut Cursor::new(rest, offset, endian)).map_err(|_| short(EventHeader::SIZE))?;
    let record_type = RecordType(header.type_);
    let (size, misc) = match record_type.is_simpleperf() {
        true => (u64::from(header.size) | u64::from(header.misc).wrapping_shl(u16::BITS), 0),
        false => (u64::from(header.size), header.misc),
    };
    if size < EventHeader::SIZE {
        return Err(RecordsEnd::BadSize { offset, size: header.size });
    }
    let (record, after) =
        rest.split_at_checked(usize::try_from(size).unwrap_or(usize::MAX)).ok_or_else(|| short(size))?;
    let body = record.get(EventHeader::SIZE as usize..).unwrap_or_default();
    let mut cursor = Cursor::new(body, offset, endian);
    let payload_bytes = match record_type {
        RecordType::AUXTRACE => cursor.u64("size").unwrap_or(0),
        RecordType::HEADER_TRACING_DATA if pipe => u64::from(cursor.u32("size").unwrap_or(0)),
        _ => 0,
    };
    let whole = size.saturating_add(payload_bytes);
    let payload =
        usize::try_from(payload_bytes).ok().and_then(|len| after.get(..len)).ok_or_else(|| short(whole))?;
    Ok(RawEvent {
        index: 0,
        offset,
        location: RecordLocation(offset),
        record_type,
        misc,
        size: whole,
        bytes: record,
        body,
        payload,
    })
}

/// Accepts a record of a known type that has a size of its kind, in the file and in compressed records alike.
///
/// # Errors
/// The reason why bytes that state a type and a size are not a record.
#[inline]
pub fn accept(record: RawEvent<'_>) -> Result<RawEvent<'_>, RecordsEnd> {
    let kind = record.record_type;
    match kind.known_name() {
        Some(_) if kind.is_user() || kind.is_simpleperf() || record.size.is_multiple_of(RECORD_ALIGNMENT) => {
            Ok(record)
        }
        Some(_) => {
            Err(RecordsEnd::BadSize { offset: record.offset, size: u16::try_from(record.size).unwrap_or(0) })
        }
        None => accept_unknown(record),
    }
}

/// Accepts a record of an unknown type: one of a newer kernel, perf or simpleperf. What follows it does not count, since that may
/// be left out by a repair.
#[cold]
fn accept_unknown(record: RawEvent<'_>) -> Result<RawEvent<'_>, RecordsEnd> {
    let number = record.record_type.0;
    let is_type = number < LEAST_IMPOSSIBLE && record.size.is_multiple_of(RECORD_ALIGNMENT);
    if is_type { Ok(record) } else { Err(RecordsEnd::UnknownType { offset: record.offset, number }) }
}
