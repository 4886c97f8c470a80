//! Finds the buffers of an FDR log, and continues after damage.

use std::ops::Range;

use super::consts::{HEADER_BYTES, METADATA_BYTES, MetadataKind};
use super::header::Header;
use super::record_iter::{RecordItem, RecordIter, count_bytes_read};
use super::records::{Record, XRayDialect, metadata_byte};
use perfuse_recording::Source;

/// Number of bytes that are searched at once.
const PIECE_BYTES: usize = 4 << 20;

/// How the end of a buffer was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferEnd {
    /// By BufferExtents, consistent with what follows; in version 1 by `buffer_size`.
    Stated,
    /// The file ends before the stated end, this many bytes early.
    Cut(u64),
    /// BufferExtents states more bytes than there are before the next buffer.
    TooLong(u64),
    /// BufferExtents states fewer bytes, but records continue up to the next buffer.
    TooShort(u64),
    /// There is no BufferExtents: the buffer ends where another starts, or at EndOfBuffer.
    Unstated,
}

/// The location of a buffer in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferExtent {
    /// Offset of its BufferExtents, where there is one.
    pub extents: Option<u64>,
    /// Range of its records, without BufferExtents.
    pub records: Range<usize>,
    /// How the end was determined.
    pub bound: BufferEnd,
}

/// A range of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileRegion {
    /// A buffer.
    Buffer(BufferExtent),
    /// Bytes that are not part of any buffer.
    Gap(Range<usize>),
}

/// Iterator over the buffers and gaps of a file. Every byte is read a bounded number of times, whatever sizes the
/// file states.
#[derive(Debug)]
pub struct Reader<'a> {
    data: &'a Source,
    dialect: XRayDialect,
    /// Distance of buffers in version 1; 0 where unknown.
    stride: usize,
    at: usize,
}

impl<'a> Reader<'a> {
    /// A reader at the first buffer.
    #[must_use]
    pub fn new(data: &'a Source, header: &Header) -> Self {
        let dialect = header.dialect();
        let mut reader = Self { data, dialect, stride: 0, at: HEADER_BYTES };
        if dialect.version == 1 {
            reader.stride = reader.stated_stride(header.file.buffer_size);
        }
        reader
    }

    /// `buffer_size` where buffers are that far apart, else 0.
    fn stated_stride(&self, buffer_size: u64) -> usize {
        let Ok(stride) = usize::try_from(buffer_size) else { return 0 };
        let second = HEADER_BYTES.saturating_add(stride);
        let fits = second >= self.data.len() || self.has_kind(second, MetadataKind::NEW_BUFFER);
        if stride >= METADATA_BYTES && fits { stride } else { 0 }
    }

    /// Whether a metadata record of this kind starts at an offset, by its first byte.
    fn has_kind(&self, at: usize, kind: MetadataKind) -> bool {
        self.data.get(at) == Some(&metadata_byte(kind, self.dialect.endian))
    }

    /// Whether the first metadata records of a buffer are here.
    fn is_preamble(&self, at: usize) -> bool {
        self.has_kind(at, MetadataKind::NEW_BUFFER)
            && self.has_kind(at.saturating_add(METADATA_BYTES), MetadataKind::WALL_TIME_MARKER)
    }

    /// Whether a buffer certainly starts at an offset.
    fn is_buffer_start(&self, at: usize) -> bool {
        if self.dialect.version == 1 {
            return self.is_preamble(at);
        }
        self.has_kind(at, MetadataKind::BUFFER_EXTENTS) && self.is_preamble(at.saturating_add(METADATA_BYTES))
    }

    /// The next offset from `from` on where a buffer certainly starts, or the end of the file.
    fn next_buffer_start(&self, from: usize) -> usize {
        let first =
            if self.dialect.version == 1 { MetadataKind::NEW_BUFFER } else { MetadataKind::BUFFER_EXTENTS };
        let byte = metadata_byte(first, self.dialect.endian);
        let len = self.data.len();
        let mut found = len;
        let mut start = from;
        while start < len {
            perfuse_stopping::checkpoint();
            // Parts of a sparse file that take no space contain no record.
            let begin = self.data.next_data(start);
            let end = begin.saturating_add(PIECE_BYTES).min(len);
            let piece = self.data.get(begin..end).unwrap_or_default();
            let candidates = memchr::memchr_iter(byte, piece).map(|at| begin.saturating_add(at));
            if let Some(at) = candidates.into_iter().find(|&at| self.is_buffer_start(at)) {
                found = at;
                break;
            }
            self.data.release(begin..end);
            start = end;
        }
        count_bytes_read(found.saturating_sub(from));
        found
    }

    /// The next region of a log of version 1.
    fn read_version_1(&mut self) -> FileRegion {
        let (begin, len) = (self.at, self.data.len());
        if self.stride > 0 {
            let end = begin.saturating_add(self.stride);
            self.at = end.min(len);
            if !self.has_kind(begin, MetadataKind::NEW_BUFFER) {
                return FileRegion::Gap(begin..self.at);
            }
            // The end of the last buffer may be truncated where nothing was written to it; its records show that.
            return FileRegion::Buffer(BufferExtent {
                extents: None,
                records: begin..self.at,
                bound: BufferEnd::Stated,
            });
        }
        if !self.has_kind(begin, MetadataKind::NEW_BUFFER) {
            self.at = self.next_buffer_start(begin);
            return FileRegion::Gap(begin..self.at);
        }
        let next = self.next_buffer_start(begin.saturating_add(1));
        self.at = next;
        FileRegion::Buffer(BufferExtent { extents: None, records: begin..next, bound: BufferEnd::Unstated })
    }

    /// The next region of a log of version 2 or later.
    fn read_version_2(&mut self) -> FileRegion {
        let (at, len) = (self.at, self.data.len());
        let Some(size) = self.extents_at(at) else {
            return self.read_without_extents();
        };
        let begin = at.saturating_add(METADATA_BYTES);
        let stated = usize::try_from(size).ok().and_then(|size| begin.checked_add(size));
        let buffer = |records: Range<usize>, bound| {
            FileRegion::Buffer(BufferExtent { extents: Some(at as u64), records, bound })
        };
        match stated.filter(|&end| end <= len) {
            Some(end) if end == len || self.extents_at(end).is_some() => {
                self.at = end;
                buffer(begin..end, BufferEnd::Stated)
            }
            Some(end) => {
                let inside = self.next_buffer_start(begin);
                if inside < end && self.leads_past(inside, end) {
                    self.at = inside;
                    return buffer(begin..inside, BufferEnd::TooLong(size));
                }
                let next = if inside < end { self.next_buffer_start(end) } else { inside };
                if self.has_only_known_records(begin..next) {
                    self.at = next;
                    buffer(begin..next, BufferEnd::TooShort(size))
                } else {
                    // The bytes after it are found as a gap next.
                    self.at = end;
                    buffer(begin..end, BufferEnd::Stated)
                }
            }
            None => {
                // A damaged byte may look like BufferExtents, and the real one may be inside it.
                let next = self.next_buffer_start(at.saturating_add(1));
                self.at = next;
                if next < begin {
                    FileRegion::Gap(at..next)
                } else if next < len {
                    buffer(begin..next, BufferEnd::TooLong(size))
                } else {
                    let available = len.saturating_sub(begin) as u64;
                    buffer(begin..len, BufferEnd::Cut(size.saturating_sub(available)))
                }
            }
        }
    }

    /// The next region where there is no BufferExtents.
    fn read_without_extents(&mut self) -> FileRegion {
        let at = self.at;
        let next = self.next_buffer_start(at);
        let preamble = self.is_preamble(at);
        self.at = next;
        if preamble {
            FileRegion::Buffer(BufferExtent { extents: None, records: at..next, bound: BufferEnd::Unstated })
        } else {
            FileRegion::Gap(at..next)
        }
    }

    /// The size in the BufferExtents at an offset, if there is one.
    fn extents_at(&self, at: usize) -> Option<u64> {
        let bytes = self.data.get(at..)?;
        if !self.has_kind(at, MetadataKind::BUFFER_EXTENTS) {
            return None;
        }
        match Record::read(bytes, at as u64, self.dialect) {
            Ok((Record::BufferExtents(size), _)) => Some(size),
            _ => None,
        }
    }

    /// Whether a buffer that starts before `end` ends after it, where another starts or the file ends. Bytes of the buffer
    /// before it are missing then.
    fn leads_past(&self, start: usize, end: usize) -> bool {
        let stated = self.extents_at(start).and_then(|size| usize::try_from(size).ok());
        let next = stated.and_then(|size| start.saturating_add(METADATA_BYTES).checked_add(size));
        next.is_some_and(|next| next > end && (next == self.data.len() || self.is_buffer_start(next)))
    }

    /// Whether the records of a range are all of known kinds and end at its end.
    fn has_only_known_records(&self, range: Range<usize>) -> bool {
        let end = range.end;
        let mut records = RecordIter::new(self.data, range, self.dialect);
        loop {
            match records.next() {
                Some(RecordItem::Function { action, .. }) if action.name().is_some() => {}
                Some(RecordItem::Metadata { record, .. }) if !matches!(record, Record::Unknown(_)) => {}
                Some(_) => return false,
                None => return records.offset() == end,
            }
        }
    }
}

impl Iterator for Reader<'_> {
    type Item = FileRegion;

    fn next(&mut self) -> Option<FileRegion> {
        if self.at >= self.data.len() {
            return None;
        }
        Some(if self.dialect.version == 1 { self.read_version_1() } else { self.read_version_2() })
    }
}
