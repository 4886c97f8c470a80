//! Splits a file into raw records, and resumes after damaged bytes.

use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError};

use super::consts::{MAGIC, RecordTag};
use super::layout::{DebugInfo, FileHeader, Load, Move, RecordPrefix, UnwindingInfo};

/// A record with its offset, its decoded prefix and its undecoded body.
#[derive(Clone, Copy, Debug)]
pub struct RawRecord<'a> {
    /// Absolute offset of the prefix.
    pub offset: u64,
    /// Zero-based index in the file.
    pub index: u64,
    /// Kind, size in bytes and time stamp.
    pub prefix: RecordPrefix,
    /// The bytes after the prefix.
    pub body: &'a [u8],
    /// The file's byte order.
    pub endian: Endian,
}

impl<'a> RawRecord<'a> {
    /// The kind of the record.
    #[must_use]
    pub fn tag(&self) -> RecordTag {
        RecordTag(self.prefix.id)
    }

    /// Absolute offset of the first byte of the body.
    #[must_use]
    pub fn body_offset(&self) -> u64 {
        self.offset.saturating_add(RecordPrefix::SIZE)
    }

    /// A cursor over the body.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'a> {
        Cursor::new(self.body, self.body_offset(), self.endian)
    }
}

/// The file header, and where records begin.
#[derive(Clone, Copy, Debug)]
pub struct FileStart {
    /// The header as written.
    pub header: FileHeader,
    /// Byte order, from the magic.
    pub endian: Endian,
    /// Offset of the first record.
    pub first_record: u64,
}

/// Reads the header of a file.
///
/// # Errors
/// `BadMagic`, or `Short` where the file is shorter than a header.
pub fn read_start(data: &[u8]) -> Result<FileStart, ParseError> {
    let Some(magic) = data.first_chunk::<4>() else {
        let kind = ErrorKind::Short { need: FileHeader::SIZE, have: data.len() as u64 };
        return Err(ParseError::new(kind, 0, "magic"));
    };
    let endian = match u32::from_be_bytes(*magic) {
        MAGIC => Endian::Big,
        found if found.swap_bytes() == MAGIC => Endian::Little,
        found => return Err(ParseError::new(ErrorKind::BadMagic { found }, 0, "magic")),
    };
    let header = FileHeader::read(&mut Cursor::new(data, 0, endian))?;
    // Early Mono writes a size of 8. A larger header is accepted only if records follow it.
    let header_bytes = u64::from(header.total_size);
    let first_record = if header_bytes > FileHeader::SIZE
        && (header_bytes as usize > data.len() || !may_begin_records(data, header_bytes, endian))
    {
        FileHeader::SIZE
    } else {
        header_bytes.max(FileHeader::SIZE)
    };
    Ok(FileStart { header, endian, first_record })
}

/// Bytes after a header of an unusual size that are waited for to decide where records begin.
const MAX_AWAITED_AFTER_HEADER: u64 = 64 << 10;

/// The header of a file that a writer may append to; `None` while the bytes do not decide it.
///
/// # Errors
/// As [`read_start`], once more bytes cannot make it a header.
pub fn read_growing_start(data: &[u8], is_whole: bool) -> Result<Option<FileStart>, ParseError> {
    let start = match read_start(data) {
        Ok(start) => start,
        Err(error) if is_whole || matches!(error.kind, ErrorKind::BadMagic { .. }) => return Err(error),
        Err(_) => return Ok(None),
    };
    let stated = u64::from(start.header.total_size);
    let is_decided = is_whole
        || stated <= FileHeader::SIZE
        || is_plausible(data, stated, start.endian)
        || is_plausible(data, FileHeader::SIZE, start.endian)
        || data.len() as u64 > stated.saturating_add(MAX_AWAITED_AFTER_HEADER);
    Ok(is_decided.then_some(start))
}

/// Whether records may begin at an offset: the file ends there, a plausible record starts there, or none starts after a
/// header of the usual size.
fn may_begin_records(data: &[u8], offset: u64, endian: Endian) -> bool {
    data.len() as u64 == offset
        || is_plausible(data, offset, endian)
        || !is_plausible(data, FileHeader::SIZE, endian)
}

/// One item of a [`Reader`].
#[derive(Clone, Copy, Debug)]
pub enum ReaderStep<'a> {
    /// A whole record.
    Record(RawRecord<'a>),
    /// A further file header and its offset: a writer appended to an existing file.
    Header(u64, FileHeader),
    /// Bytes that are not a record.
    Lost {
        /// Offset of the bytes, or of a record whose size is wrong.
        offset: u64,
        /// Number of bytes; 0 for a record whose size is wrong, when reading continues inside it.
        len: u64,
        /// The rejected prefix; `None` where fewer than 16 bytes were left, or `len` is 0.
        prefix: Option<RecordPrefix>,
        /// Whether no further record follows.
        at_end: bool,
    },
}

/// What the bytes so far show of the next step of a [`Reader`] of a file that is still written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailState {
    /// More bytes cannot change the next step.
    Complete,
    /// The next record is not written to its end yet.
    Incomplete,
    /// No record begins here.
    Damaged,
}

/// Largest record that is waited for, in bytes; one that claims more is damaged.
const MAX_AWAITED_BYTES: u64 = 256 << 20;

/// Largest record of an unknown kind that is waited for, in bytes.
const MAX_AWAITED_UNKNOWN_BYTES: u64 = 1 << 20;

/// Most zeros after the last record: what a writer that maps its file leaves of the last page.
const MAX_ZEROS_AT_END: usize = 64 << 10;

/// Iterates over the records of a file. Every step moves forward or corrects the size of the previous record once.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    data: &'a [u8],
    endian: Endian,
    offset: u64,
    index: u64,
    /// Offset of the previous record; `None` at the start and after damaged bytes.
    previous: Option<u64>,
}

impl<'a> Reader<'a> {
    /// A reader that starts at the record at `offset`, which has this `index`.
    #[must_use]
    pub fn new(data: &'a [u8], endian: Endian, offset: u64, index: u64) -> Self {
        Self { data, endian, offset, index, previous: None }
    }

    /// Sets the offset of the previous record, which a reader needs to resume after one whose size is wrong.
    #[must_use]
    pub fn with_previous(self, previous: Option<u64>) -> Self {
        Self { previous, ..self }
    }

    /// Offset of the previous record; `None` at the start and after damaged bytes.
    #[must_use]
    pub fn previous(&self) -> Option<u64> {
        self.previous
    }

    /// Offset of the next record.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Index of the next record.
    #[must_use]
    pub fn index(&self) -> u64 {
        self.index
    }

    /// The record at the current offset, if its size fits the file.
    fn split_record(&self) -> Option<RawRecord<'a>> {
        let (prefix, body) = split_record(self.data, self.offset, self.endian)?;
        Some(RawRecord { offset: self.offset, index: self.index, prefix, body, endian: self.endian })
    }

    /// What the bytes so far show of the next step, where a writer may append more.
    #[must_use]
    pub fn state_of_tail(&self) -> TailState {
        let Some(rest) = self.data.get(self.offset as usize..) else { return TailState::Incomplete };
        let Ok(prefix) = RecordPrefix::read(&mut Cursor::new(rest, self.offset, self.endian)) else {
            return TailState::Incomplete;
        };
        if prefix.id == MAGIC {
            let size = later_header_bytes(prefix.total_size, u64::MAX);
            return self.wait_for(size, MAX_AWAITED_UNKNOWN_BYTES, TailState::Complete);
        }
        let size = u64::from(prefix.total_size);
        if size < RecordPrefix::SIZE {
            return TailState::Damaged;
        }
        if RecordTag(prefix.id).name().is_some() {
            return self.wait_for(size, MAX_AWAITED_BYTES, TailState::Complete);
        }
        // A record of an unknown kind is one if another follows it.
        match self.wait_for(size, MAX_AWAITED_UNKNOWN_BYTES, TailState::Complete) {
            TailState::Complete if rest.len() as u64 == size => TailState::Incomplete,
            TailState::Complete => {
                let next = Self { offset: self.offset.saturating_add(size), ..*self };
                let size = next.data.get(next.offset as usize..).and_then(|rest| {
                    let prefix = RecordPrefix::read(&mut Cursor::new(rest, next.offset, self.endian)).ok()?;
                    Some(u64::from(prefix.total_size))
                });
                match size {
                    Some(size) if size < RecordPrefix::SIZE => TailState::Damaged,
                    Some(size) => next.wait_for(size, MAX_AWAITED_UNKNOWN_BYTES, TailState::Complete),
                    None => TailState::Incomplete,
                }
            }
            other => other,
        }
    }

    /// A state that needs `size` bytes from the current offset on.
    fn wait_for(&self, size: u64, most: u64, complete: TailState) -> TailState {
        let available = (self.data.len() as u64).saturating_sub(self.offset);
        match size {
            size if size <= available => complete,
            size if size <= most => TailState::Incomplete,
            _ => TailState::Damaged,
        }
    }

    /// Whether a record is accepted: its kind is known, or a record, one that the file ends in, or the end follows it.
    fn is_accepted(&self, record: &RawRecord<'_>) -> bool {
        let next = self.offset.saturating_add(u64::from(record.prefix.total_size));
        record.tag().name().is_some()
            || next == self.data.len() as u64
            || split_record(self.data, next, self.endian).is_some()
            || is_cut(self.data, next, self.endian)
    }

    /// Skips bytes that are not an accepted record.
    #[cold]
    fn skip_damage(&mut self) -> ReaderStep<'a> {
        let offset = self.offset;
        let rest = self.data.get(offset as usize..).unwrap_or_default();
        if let Ok(header) = FileHeader::read(&mut Cursor::new(rest, offset, self.endian))
            && header.magic == MAGIC
        {
            let size = later_header_bytes(header.total_size, rest.len() as u64);
            self.offset = offset.saturating_add(size);
            return ReaderStep::Header(offset, header);
        }
        if let Some(inside) = self.find_record_inside_previous() {
            return self.resume_inside(inside);
        }
        let prefix = RecordPrefix::read(&mut Cursor::new(rest, offset, self.endian)).ok();
        let end = self.data.len() as u64;
        let next = self.find_plausible(offset.saturating_add(1), end);
        self.offset = next.unwrap_or(end);
        ReaderStep::Lost { offset, len: self.offset.saturating_sub(offset), prefix, at_end: next.is_none() }
    }

    /// Continues inside the previous record, whose size is wrong.
    fn resume_inside(&mut self, inside: u64) -> ReaderStep<'a> {
        self.offset = inside;
        let offset = self.previous.take().unwrap_or(inside);
        ReaderStep::Lost { offset, len: 0, prefix: None, at_end: false }
    }

    /// Offset of a record inside the previous one, where the parts of that do not fill its size: it may end where another record begins,
    /// or where bytes look like one. The records from there on lead to its end, past it, or to the end of the file.
    fn find_swallowed_record(&self) -> Option<u64> {
        let previous = self.previous?;
        let (prefix, body) = split_record(self.data, previous, self.endian)?;
        if parts_fill(prefix, body, self.endian) {
            return None;
        }
        let mut from = previous.saturating_add(RecordPrefix::SIZE);
        // Those that a chain contains lead where it leads.
        while let Some(inside) = self.find_plausible(from, self.offset) {
            from = self.end_of_records(inside);
            if self.leads_to_end(from) {
                return Some(inside);
            }
        }
        None
    }

    /// Offset of a record inside the previous one. The size of the previous record is wrong when no record follows it, and its
    /// parts do not fill it, or bytes of it are missing, so that it ends in the next records.
    fn find_record_inside_previous(&self) -> Option<u64> {
        let previous = self.previous?;
        let from = previous.saturating_add(RecordPrefix::SIZE);
        if is_plausible(self.data, previous, self.endian) {
            let mut inside = from..self.offset;
            return inside.find(|&at| {
                is_plausible(self.data, at, self.endian) && self.leads_past(self.end_of_records(at))
            });
        }
        self.find_plausible(from, self.offset)
    }

    /// Whether a chain of records ends after the current offset, where another record or the end of the file is.
    fn leads_past(&self, end: u64) -> bool {
        end > self.offset
            && (end == self.data.len() as u64
                || is_plausible(self.data, end, self.endian)
                || is_cut(self.data, end, self.endian))
    }

    /// Whether a chain of records ends at the current offset, past it, or at the end of the file, before which may be zeros.
    fn leads_to_end(&self, end: u64) -> bool {
        let is_close = |prefix: RecordPrefix| RecordTag(prefix.id) == RecordTag::JIT_CODE_CLOSE;
        let close = split_record(self.data, end, self.endian).filter(|&(prefix, _)| is_close(prefix));
        let after = end.saturating_add(close.map_or(0, |(prefix, _)| u64::from(prefix.total_size)));
        let rest = self.data.get(after as usize..).unwrap_or_default();
        end == self.offset
            || self.leads_past(end)
            || (rest.len() <= MAX_ZEROS_AT_END && rest.iter().all(|&byte| byte == 0))
    }

    /// End of the consistent records that follow each other from an offset on, up to the first that ends at the current one or later.
    fn end_of_records(&self, from: u64) -> u64 {
        let mut at = from;
        while at < self.offset
            && let Some((prefix, body)) = split_record(self.data, at, self.endian)
            && is_consistent(prefix, body, self.endian)
        {
            at = at.saturating_add(u64::from(prefix.total_size));
        }
        at
    }

    /// Offset of the first plausible record between two offsets.
    fn find_plausible(&self, from: u64, end: u64) -> Option<u64> {
        (from..end).find(|&next| is_plausible(self.data, next, self.endian))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = ReaderStep<'a>;

    #[inline]
    fn next(&mut self) -> Option<ReaderStep<'a>> {
        if self.offset >= self.data.len() as u64 {
            let inside = self.find_swallowed_record()?;
            return Some(self.resume_inside(inside));
        }
        match self.split_record() {
            Some(record) if record.prefix.id != MAGIC && self.is_accepted(&record) => {
                if let Some(inside) = self.find_swallowed_record() {
                    return Some(self.resume_inside(inside));
                }
                self.offset = self.offset.saturating_add(u64::from(record.prefix.total_size));
                self.index = self.index.saturating_add(1);
                self.previous = Some(record.offset);
                Some(ReaderStep::Record(record))
            }
            _ => Some(self.skip_damage()),
        }
    }
}

/// Size of a header in the middle of a file: the one that it states, where so many bytes follow and it is not absurd.
fn later_header_bytes(stated: u32, available: u64) -> u64 {
    let is_usable = |stated: &u64| *stated <= available.min(MAX_AWAITED_UNKNOWN_BYTES);
    Some(u64::from(stated)).filter(is_usable).map_or(FileHeader::SIZE, |stated| stated.max(FileHeader::SIZE))
}

/// Prefix and body of the record at an offset; `None` where its size does not fit the file.
#[inline]
fn split_record(data: &[u8], offset: u64, endian: Endian) -> Option<(RecordPrefix, &[u8])> {
    let rest = data.get(usize::try_from(offset).ok()?..)?;
    let prefix = RecordPrefix::read(&mut Cursor::new(rest, offset, endian)).ok()?;
    let body = rest.get(RecordPrefix::SIZE as usize..prefix.total_size as usize)?;
    Some((prefix, body))
}

/// Largest name of a record at which reading may resume; .NET writes names of about a thousand bytes.
const MAX_NAME_BYTES: u64 = 4096;

/// Whether a consistent record of the specification begins at an offset, so that reading may resume there after damage.
fn is_plausible(data: &[u8], offset: u64, endian: Endian) -> bool {
    split_record(data, offset, endian).is_some_and(|(prefix, body)| is_consistent(prefix, body, endian))
}

/// Whether the file ends inside a record that begins at an offset: what is there of it agrees with its size.
fn is_cut(data: &[u8], offset: u64, endian: Endian) -> bool {
    let rest = data.get(offset as usize..).unwrap_or_default();
    let mut at = Cursor::new(rest, offset, endian);
    let Ok(prefix) = RecordPrefix::read(&mut at) else { return !rest.is_empty() };
    u64::from(prefix.total_size) > rest.len() as u64 && is_consistent(prefix, at.rest(), endian)
}

/// Whether the sizes of a record's parts fit its own, whatever else is in them: a repaired record has such parts. Records of other kinds
/// have no sizes that depend on each other.
fn parts_fill(prefix: RecordPrefix, body: &[u8], endian: Endian) -> bool {
    let mut at = Cursor::new(body, 0, endian);
    match RecordTag(prefix.id) {
        RecordTag::JIT_CODE_LOAD => Load::read(&mut at).is_ok_and(|load| {
            let name_bytes = (at.remaining() as u64).checked_sub(load.code_size);
            let name = name_bytes.and_then(|len| at.rest().get(..usize::try_from(len).ok()?));
            name.is_some_and(|name| std::ffi::CStr::from_bytes_with_nul(name).is_ok())
        }),
        RecordTag::JIT_CODE_MOVE => Move::read(&mut at).is_ok_and(|_| at.remaining() == 0),
        RecordTag::JIT_CODE_DEBUG_INFO => DebugInfo::read(&mut at).is_ok_and(|info| {
            info.nr_entry.checked_mul(17).is_some_and(|least| least <= at.remaining() as u64)
        }),
        RecordTag::JIT_CODE_UNWINDING_INFO => UnwindingInfo::read(&mut at).is_ok_and(|info| {
            let padding = (at.remaining() as u64).checked_sub(info.unwind_data_size);
            info.eh_frame_hdr_size <= info.unwind_data_size && padding.is_some_and(|padding| padding < 8)
        }),
        _ => true,
    }
}

/// Whether the parts of a record fill it; of one that is cut, whether those that are there can. Only kinds whose sizes
/// depend on each other count, so that code bytes and strings are not mistaken for a record.
fn is_consistent(prefix: RecordPrefix, body: &[u8], endian: Endian) -> bool {
    let mut at = Cursor::new(body, 0, endian);
    let missing =
        u64::from(prefix.total_size).saturating_sub(RecordPrefix::SIZE).saturating_sub(body.len() as u64);
    let is_cut = missing > 0;
    let remaining = |at: &Cursor<'_>| (at.remaining() as u64).saturating_add(missing);
    match RecordTag(prefix.id) {
        RecordTag::JIT_CODE_LOAD => {
            let Ok(load) = Load::read(&mut at) else { return is_cut };
            let name_bytes =
                remaining(&at).checked_sub(load.code_size).filter(|len| (1..=MAX_NAME_BYTES).contains(len));
            let Some(name_bytes) = name_bytes else { return false };
            let is_name = |name: &[u8]| {
                std::ffi::CStr::from_bytes_with_nul(name).is_ok_and(|name| name.to_str().is_ok())
            };
            load.code_addr != 0 && at.rest().get(..name_bytes as usize).map_or(is_cut, is_name)
        }
        RecordTag::JIT_CODE_MOVE => match Move::read(&mut at) {
            Ok(moved) => moved.code_size > 0 && moved.vma == moved.new_code_addr && remaining(&at) == 0,
            Err(_) => is_cut,
        },
        RecordTag::JIT_CODE_DEBUG_INFO => DebugInfo::read(&mut at).map_or(is_cut, |info| {
            let least = info.nr_entry.checked_mul(17);
            info.code_addr != 0 && info.nr_entry > 0 && least.is_some_and(|least| least <= remaining(&at))
        }),
        RecordTag::JIT_CODE_UNWINDING_INFO => UnwindingInfo::read(&mut at).map_or(is_cut, |info| {
            let padding = remaining(&at).checked_sub(info.unwind_data_size);
            info.eh_frame_hdr_size > 0
                && info.eh_frame_hdr_size <= info.unwind_data_size
                && padding.is_some_and(|padding| padding < 8)
        }),
        _ => false,
    }
}
