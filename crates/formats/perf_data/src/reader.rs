//! Opening a file and cutting it into records, each with its absolute offset.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError};

use super::attribute::Attributes;
use super::consts::{MAGIC_BIG, MAGIC_LITTLE, PIPE_HEADER_BYTES, RecordType};
use super::features::{BuildIds, Features, build_id_table};
use super::header::{self, Finding};
use super::layout::{EventHeader, FileHeader};
use super::survey::Survey;
use super::tasks::Tasks;
use super::unpacked::Unpacked;
use super::user_registers::UserRegisters;
use perfuse_recording::{Position, Source};

/// Where a record's bytes are: in the file, or in what its packed records unpack to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location(u64);

impl Location {
    const UNPACKED: u64 = 1 << 63;

    fn unpacked(place: u64) -> Self {
        Self(place | Self::UNPACKED)
    }

    /// The location as a number, for a table.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }

    /// The location of that number.
    #[must_use]
    pub fn numbered(number: u64) -> Self {
        Self(number)
    }

    /// Where that is: an offset in the file, or one past the place in what was unpacked.
    #[must_use]
    pub fn position(self) -> Position {
        match self.0 & !Self::UNPACKED {
            place if place == self.0 => Position { offset: place, ..Position::default() },
            place => Position { inner: place.saturating_add(1), ..Position::default() },
        }
    }
}

/// A record, not yet decoded.
#[derive(Clone, Copy, Debug)]
pub struct RawRecord<'a> {
    /// Zero-based index in the file.
    pub index: u64,
    /// Absolute offset; that of the packed record for one that was unpacked.
    pub offset: u64,
    /// Where its bytes are.
    pub location: Location,
    /// Its type.
    pub record_type: RecordType,
    /// `misc` of its header.
    pub misc: u16,
    /// Size with its header and with what follows it.
    pub size: u64,
    /// The record as its header has it.
    pub bytes: &'a [u8],
    /// Its bytes after the header.
    pub body: &'a [u8],
    /// Data that follows the record, beyond its size: AUX data, tracepoint formats.
    pub payload: &'a [u8],
}

impl<'a> RawRecord<'a> {
    /// A cursor at the start of the body.
    #[must_use]
    #[inline]
    pub fn cursor(&self, endian: Endian) -> Cursor<'a> {
        Cursor::new(self.body, self.offset.saturating_add(EventHeader::SIZE), endian)
    }
}

/// Why no more records can be cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// The records end here, as they should.
    #[default]
    End,
    /// The bytes end inside a record.
    Short {
        /// Where it begins.
        offset: u64,
        /// Bytes it needs.
        need: u64,
        /// Bytes there are.
        have: u64,
    },
    /// A record smaller than its own header.
    BadSize {
        /// Where it begins.
        offset: u64,
        /// What it says.
        size: u16,
    },
}

/// Cuts the record at an offset. Only in pipe mode do tracepoint formats follow their record.
pub fn cut(bytes: &[u8], offset: u64, endian: Endian, pipe: bool) -> Result<RawRecord<'_>, Cut> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let left = bytes.get(start..).unwrap_or_default();
    if left.is_empty() {
        return Err(Cut::End);
    }
    let short = |need: u64| Cut::Short { offset, need, have: left.len() as u64 };
    let header =
        EventHeader::read(&mut Cursor::new(left, offset, endian)).map_err(|_| short(EventHeader::SIZE))?;
    let size = u64::from(header.size);
    if size < EventHeader::SIZE {
        return Err(Cut::BadSize { offset, size: header.size });
    }
    let (record, after) = left.split_at_checked(usize::from(header.size)).ok_or_else(|| short(size))?;
    let body = record.get(EventHeader::SIZE as usize..).unwrap_or_default();
    let record_type = RecordType(header.type_);
    let mut cursor = Cursor::new(body, offset, endian);
    let follows = match record_type {
        RecordType::AUXTRACE => cursor.u64("size").unwrap_or(0),
        RecordType::HEADER_TRACING_DATA if pipe => u64::from(cursor.u32("size").unwrap_or(0)),
        _ => 0,
    };
    let whole = size.saturating_add(follows);
    let payload =
        usize::try_from(follows).ok().and_then(|len| after.get(..len)).ok_or_else(|| short(whole))?;
    Ok(RawRecord {
        index: 0,
        offset,
        location: Location(offset),
        record_type,
        misc: header.misc,
        size: whole,
        bytes: record,
        body,
        payload,
    })
}

/// An open file: what its header and features say, and what passes over it found once.
#[derive(Debug)]
pub struct File {
    /// Its bytes.
    pub source: Arc<Source>,
    /// Its byte order.
    pub endian: Endian,
    /// Its header; zeros past the second field in pipe mode.
    pub header: FileHeader,
    /// Whether it was written to a pipe, with attributes and features among the records.
    pub pipe: bool,
    /// Where the records are.
    pub records: Range<u64>,
    /// Its events.
    pub attributes: Attributes,
    /// Its feature sections.
    pub features: Features,
    /// What was wrong with header, attributes and features.
    pub findings: Vec<Finding>,
    unpacked: OnceLock<Unpacked>,
    survey: OnceLock<Survey>,
    tasks: OnceLock<Tasks>,
    user_registers: OnceLock<Vec<UserRegisters>>,
}

impl File {
    /// Reads the header, the attributes and the places of the features.
    ///
    /// # Errors
    /// Where the bytes are not a perf.data file or end inside its header.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        let endian = match source.first_chunk::<8>() {
            Some(MAGIC_LITTLE) => Endian::Little,
            Some(MAGIC_BIG) => Endian::Big,
            found => {
                let found = found.and_then(|magic| magic.first_chunk::<4>()).copied().unwrap_or_default();
                let kind = ErrorKind::BadMagic { found: u32::from_be_bytes(found) };
                return Err(ParseError::new(kind, 0, "magic"));
            }
        };
        let mut start = Cursor::new(&source, 0, endian);
        let magic = start.u64("magic")?;
        let size = start.u64("size")?;
        let pipe = size == PIPE_HEADER_BYTES;
        let header = if pipe {
            FileHeader { magic, size, ..header::EMPTY }
        } else {
            FileHeader::read(&mut Cursor::new(&source, 0, endian))?
        };
        let mut file = Self {
            endian,
            header,
            pipe,
            records: 0..0,
            attributes: Attributes::default(),
            features: Features::default(),
            findings: Vec::new(),
            unpacked: OnceLock::new(),
            survey: OnceLock::new(),
            tasks: OnceLock::new(),
            user_registers: OnceLock::new(),
            source,
        };
        header::locate(&mut file);
        Ok(file)
    }

    /// Cuts the record at a position, or says why there is none, and moves the position past it. The records a packed
    /// one holds come right after it.
    ///
    /// # Errors
    /// At the end, and where the bytes cannot be cut any further.
    pub fn next<'a>(&'a self, at: &mut Position) -> Result<RawRecord<'a>, Cut> {
        if let Some(place) = at.inner.checked_sub(1) {
            let (_, end) = self.unpacked().range(at.offset).unwrap_or_default();
            if place < end {
                let mut record = cut(self.unpacked().bytes(), place, self.endian, false)?;
                at.inner = at.inner.saturating_add(record.size);
                record.location = Location::unpacked(place);
                record.offset = at.offset;
                record.index = at.index;
                at.index = at.index.saturating_add(1);
                return Ok(record);
            }
            let packed = self.cut(at.offset)?;
            at.offset = at.offset.saturating_add(packed.size);
            at.inner = 0;
        }
        at.offset = at.offset.max(self.records.start);
        let mut record = self.cut(at.offset)?;
        record.index = at.index;
        at.index = at.index.saturating_add(1);
        match self.unpacked_start(&record) {
            Some(start) => at.inner = start.saturating_add(1),
            None => at.offset = at.offset.saturating_add(record.size),
        }
        Ok(record)
    }

    fn unpacked_start(&self, record: &RawRecord<'_>) -> Option<u64> {
        if !record.record_type.is_compressed() {
            return None;
        }
        self.unpacked().range(record.offset).map(|(start, _)| start)
    }

    /// Cuts a record that is in the file itself.
    ///
    /// # Errors
    /// At the end, and where the bytes cannot be cut any further.
    pub fn cut(&self, offset: u64) -> Result<RawRecord<'_>, Cut> {
        let end = usize::try_from(self.records.end).unwrap_or(usize::MAX);
        cut(self.source.get(..end).unwrap_or_default(), offset, self.endian, self.pipe)
    }

    /// Has the processor fetch what is read of a sample with a copy of the stack: the end of the record before, the fields up
    /// to the call chain, the size of the stack.
    #[inline]
    pub fn touch_sample(&self, offset: u64) {
        [0, 64, 256].iter().for_each(|line| self.source.touch(offset.saturating_add(*line)));
    }

    /// The record at a location a pass gave.
    #[must_use]
    pub fn at(&self, location: Location) -> Option<RawRecord<'_>> {
        if location.0 & Location::UNPACKED == 0 {
            return self.cut(location.0).ok();
        }
        let place = location.0 & !Location::UNPACKED;
        let mut record = cut(self.unpacked().bytes(), place, self.endian, false).ok()?;
        record.location = location;
        record.offset = self.unpacked().origin(place);
        Some(record)
    }

    /// The event a record belongs to and its time, where it is the kernel's.
    #[must_use]
    #[inline]
    pub fn time(&self, record: &RawRecord<'_>) -> Option<u64> {
        if record.record_type.is_user() {
            return None;
        }
        let (index, _) = self.attributes.of(record.record_type, record.body, self.endian)?;
        self.attributes.list().get(index)?.shape.time(record.record_type, record.body, self.endian)
    }

    /// What the packed records hold.
    pub fn unpacked(&self) -> &Unpacked {
        self.unpacked.get_or_init(|| {
            let mut offset = self.records.start;
            let mut released = 0;
            let records = std::iter::from_fn(|| {
                let record = self.cut(offset).ok()?;
                Releaser::release(&mut released, record.offset, |range| self.source.release(range));
                offset = offset.saturating_add(record.size);
                Some(record)
            });
            Unpacked::new(records, self.source.len() as u64, self.endian)
        })
    }

    /// What one pass over all records tells.
    pub fn survey(&self) -> &Survey {
        self.survey.get_or_init(|| Survey::new(self))
    }

    /// Processes, threads and mappings, in time order.
    pub fn tasks(&self) -> &Tasks {
        self.tasks.get_or_init(|| Tasks::new(self))
    }

    /// By event: which user registers its samples have.
    pub fn user_registers(&self) -> &[UserRegisters] {
        self.user_registers.get_or_init(|| {
            let arch = self.features.arch(&self.source, self.endian).map(|(name, _)| name);
            self.attributes.list().iter().map(|attribute| UserRegisters::of(attribute, arch)).collect()
        })
    }

    /// Build ids of files, from the feature section and from records.
    pub fn build_ids(&self) -> BuildIds {
        let mut ids = BuildIds::default();
        let table = self.features.cursor(linux_perf_data::Feature::BUILD_ID, &self.source, self.endian);
        table.into_iter().flat_map(build_id_table).for_each(|entry| ids.insert(entry));
        self.survey().build_ids.iter().cloned().for_each(|entry| ids.insert(entry));
        ids
    }
}

/// Gives pages back as a pass moves on, so that a file larger than memory can be walked.
#[derive(Debug, Default)]
pub struct Releaser {
    file: usize,
    unpacked: usize,
}

impl Releaser {
    const STEP_BYTES: usize = 32 << 20;

    /// Notes that everything before these offsets is done with.
    pub fn done_before(&mut self, file: &File, at: Position) {
        Self::release(&mut self.file, at.offset, |range| file.source.release(range));
        Self::release(&mut self.unpacked, at.inner, |range| file.unpacked().release(range));
    }

    fn release(released: &mut usize, offset: u64, release: impl FnOnce(Range<usize>)) {
        let offset = usize::try_from(offset).unwrap_or(0);
        if offset.saturating_sub(*released) >= Self::STEP_BYTES {
            release(page(*released)..page(offset));
            *released = offset;
        }
    }
}

fn page(offset: usize) -> usize {
    offset & !0xffff
}
