//! Cuts a file into raw records, and goes on behind damage.

use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError};

use super::consts::{MAGIC, RecordTag};
use super::layout::{DebugInfo, FileHeader, Load, Move, RecordPrefix, UnwindingInfo};
use super::records::RawRecord;

/// Where records begin, and what the header said of it.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The header as written; fields past a cut are 0.
    pub header: FileHeader,
    /// Byte order, by the magic.
    pub endian: Endian,
    /// Offset of the first record.
    pub first_record: u64,
}

/// Reads the header of a file.
///
/// # Errors
/// `BadMagic`, or short data where not even the header is there.
pub fn start(data: &[u8]) -> Result<Start, ParseError> {
    let found = data.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let endian = match found {
        MAGIC => Endian::Big,
        found if found.swap_bytes() == MAGIC => Endian::Little,
        found => return Err(ParseError::new(ErrorKind::BadMagic { found }, 0, "magic")),
    };
    let header = FileHeader::read(&mut Cursor::new(data, 0, endian))?;
    // Mono wrote 8 here; a header may be longer, but then records must be where it says they are.
    let said = u64::from(header.total_size);
    let first_record =
        if said > FileHeader::SIZE && (said as usize > data.len() || !holds_record(data, said, endian)) {
            FileHeader::SIZE
        } else {
            said.max(FileHeader::SIZE)
        };
    Ok(Start { header, endian, first_record })
}

fn holds_record(data: &[u8], offset: u64, endian: Endian) -> bool {
    data.len() as u64 == offset
        || plausible(data, offset, endian)
        || !plausible(data, FileHeader::SIZE, endian)
}

/// What a step over the file finds.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// A whole record.
    Record(RawRecord<'a>),
    /// A second file header: a writer appended to a file that was there.
    Header(u64, FileHeader),
    /// Bytes that are no record, from an offset up to where reading goes on.
    Lost {
        /// Where they begin; the record itself where its size is a lie.
        offset: u64,
        /// How many; 0 for a record whose size is a lie, and reading goes on inside it.
        len: u64,
        /// The prefix that could not be believed, where 16 bytes were left.
        prefix: Option<RecordPrefix>,
        /// Whether nothing readable follows.
        at_end: bool,
    },
}

/// Walks a file record by record. Every step moves forward.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    data: &'a [u8],
    endian: Endian,
    offset: u64,
    index: u64,
    /// Offset of the record before, where reading came from one.
    last: Option<u64>,
}

impl<'a> Reader<'a> {
    /// A walk from a record's offset; `index` is that record's.
    #[must_use]
    pub fn new(data: &'a [u8], endian: Endian, offset: u64, index: u64) -> Self {
        Self { data, endian, offset, index, last: None }
    }

    /// The same walk, told where the record before began: needed to go on behind one whose size is a lie.
    #[must_use]
    pub fn after(self, last: Option<u64>) -> Self {
        Self { last, ..self }
    }

    /// Offset of the record before, where reading came from one.
    #[must_use]
    pub fn previous(&self) -> Option<u64> {
        self.last
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

    fn cut(&self) -> Option<RawRecord<'a>> {
        let (prefix, body) = cut(self.data, self.offset, self.endian)?;
        Some(RawRecord { offset: self.offset, index: self.index, prefix, body, endian: self.endian })
    }

    /// A record of unknown kind is believed when a record, or the end, follows it.
    fn believable(&self, record: &RawRecord<'_>) -> bool {
        let next = self.offset.saturating_add(u64::from(record.prefix.total_size));
        record.tag().name().is_some()
            || next == self.data.len() as u64
            || cut(self.data, next, self.endian).is_some()
    }

    #[cold]
    fn lost(&mut self) -> Step<'a> {
        let offset = self.offset;
        let rest = self.data.get(offset as usize..).unwrap_or_default();
        if let Ok(header) = FileHeader::read(&mut Cursor::new(rest, offset, self.endian))
            && header.magic == MAGIC
        {
            let size = u64::from(header.total_size).max(FileHeader::SIZE).min(rest.len() as u64);
            self.offset = offset.saturating_add(size);
            return Step::Header(offset, header);
        }
        if let Some(inside) = self.swallowed() {
            self.offset = inside;
            let liar = self.last.take().unwrap_or(offset);
            return Step::Lost { offset: liar, len: 0, prefix: None, at_end: false };
        }
        let prefix = RecordPrefix::read(&mut Cursor::new(rest, offset, self.endian)).ok();
        let end = self.data.len() as u64;
        let next = self.resume(offset.saturating_add(1), end);
        self.offset = next.unwrap_or(end);
        Step::Lost { offset, len: self.offset.saturating_sub(offset), prefix, at_end: next.is_none() }
    }

    /// A record inside the one before, whose size then is a lie: nothing readable follows it, and its parts do not fill it.
    fn swallowed(&self) -> Option<u64> {
        let last = self.last.filter(|&last| !plausible(self.data, last, self.endian))?;
        self.resume(last.saturating_add(RecordPrefix::SIZE), self.offset)
    }

    fn resume(&self, from: u64, end: u64) -> Option<u64> {
        (from..end).find(|&next| plausible(self.data, next, self.endian))
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Step<'a>;

    #[inline]
    fn next(&mut self) -> Option<Step<'a>> {
        if self.offset >= self.data.len() as u64 {
            return None;
        }
        match self.cut() {
            Some(record) if record.prefix.id != MAGIC && self.believable(&record) => {
                self.offset = self.offset.saturating_add(u64::from(record.prefix.total_size));
                self.index = self.index.saturating_add(1);
                self.last = Some(record.offset);
                Some(Step::Record(record))
            }
            _ => Some(self.lost()),
        }
    }
}

#[inline]
fn cut(data: &[u8], offset: u64, endian: Endian) -> Option<(RecordPrefix, &[u8])> {
    let rest = data.get(usize::try_from(offset).ok()?..)?;
    let prefix = RecordPrefix::read(&mut Cursor::new(rest, offset, endian)).ok()?;
    let body = rest.get(RecordPrefix::SIZE as usize..prefix.total_size as usize)?;
    Some((prefix, body))
}

/// Names longer than this are not believed where reading resumes; .NET's reach about a thousand bytes.
const MAX_NAME: u64 = 4096;

/// Whether a record of the specification that holds together begins here: what reading resumes at after damage.
/// Only kinds whose sizes must agree with each other count, so that code bytes and strings are not mistaken for one.
fn plausible(data: &[u8], offset: u64, endian: Endian) -> bool {
    let Some((prefix, body)) = cut(data, offset, endian) else { return false };
    let mut at = Cursor::new(body, 0, endian);
    let end = body.len() as u64;
    match RecordTag(prefix.id) {
        RecordTag::JIT_CODE_LOAD => {
            let Ok(load) = Load::read(&mut at) else { return false };
            let name = (at.remaining() as u64)
                .checked_sub(load.code_size)
                .filter(|len| (1..=MAX_NAME).contains(len));
            let name = name.and_then(|len| at.rest().get(..len as usize));
            load.code_addr != 0
                && name
                    .and_then(|name| std::ffi::CStr::from_bytes_with_nul(name).ok())
                    .is_some_and(|c| c.to_str().is_ok())
        }
        RecordTag::JIT_CODE_MOVE => {
            Move::read(&mut at).is_ok_and(|m| m.code_size > 0 && m.vma == m.new_code_addr)
                && end == Move::SIZE
        }
        RecordTag::JIT_CODE_DEBUG_INFO => DebugInfo::read(&mut at).is_ok_and(|info| {
            let least = info.nr_entry.checked_mul(17);
            info.code_addr != 0
                && info.nr_entry > 0
                && least.is_some_and(|least| least <= at.remaining() as u64)
        }),
        RecordTag::JIT_CODE_UNWINDING_INFO => UnwindingInfo::read(&mut at).is_ok_and(|info| {
            let padding = (at.remaining() as u64).checked_sub(info.unwind_data_size);
            info.eh_frame_hdr_size > 0
                && info.eh_frame_hdr_size <= info.unwind_data_size
                && padding.is_some_and(|padding| padding < 8)
        }),
        _ => false,
    }
}
