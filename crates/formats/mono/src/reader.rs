//! Finds the buffers of a log. After damage it continues at the end of the stated length, or else at the next buffer
//! magic.

use std::ops::Range;

use memchr::memmem::Finder;
use perfuse_recording::Source;
use perfuse_wire::{Cursor, Endian};

use crate::consts::BUF_ID;
use crate::decode::EventDecoder;
use crate::dialect::LogDialect;
use crate::layout::BufferHeader;

/// A block of events of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventBuffer {
    /// Absolute offset of its header.
    pub offset: u64,
    /// The header as stored.
    pub header: BufferHeader,
    /// Available bytes of events: fewer than the header states if the length is damaged or the file ends.
    pub len: u64,
}

impl EventBuffer {
    /// Absolute offset of its first event.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.offset.saturating_add(BufferHeader::SIZE)
    }

    /// File offset after its last event.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start().saturating_add(self.len)
    }

    /// A decoder for its events.
    #[must_use]
    pub fn decoder<'a>(&self, data: &'a [u8], dialect: LogDialect) -> EventDecoder<'a> {
        let events = data.get(self.start() as usize..self.end() as usize).unwrap_or_default();
        EventDecoder::new(dialect, &self.header, events, self.start())
    }
}

/// Damage to the sequence of buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferDamage {
    /// The file ends inside a buffer.
    Truncated {
        /// File offset of the buffer header.
        offset: u64,
        /// Number of missing bytes.
        missing: u64,
    },
    /// The file ends inside a buffer header.
    TruncatedHeader {
        /// File offset of the buffer header.
        offset: u64,
    },
    /// The length of a buffer extends beyond the start of another buffer.
    WrongLength {
        /// File offset of the buffer header.
        offset: u64,
        /// The stated length.
        stated: u32,
    },
    /// Bytes that do not belong to a buffer.
    NotABuffer {
        /// File offset of the first byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
    },
}

/// The buffers of a log and the damage between them.
#[derive(Clone, Debug, Default)]
pub struct BufferList {
    /// The buffers in file order.
    pub list: Vec<EventBuffer>,
    /// The damage in file order.
    pub damage: Vec<BufferDamage>,
}

impl BufferList {
    /// Finds all buffers from an offset to the end of the data. Its pages are returned to the operating system: headers are so close
    /// that it maps the whole file around them.
    #[must_use]
    pub fn find(data: &Source, first: u64) -> Self {
        let mut released = first as usize;
        let mut search =
            BufferSearch { data, magic: Finder::new(&[0x01, 0x4c, 0x50, 0x4d]), found: Self::default() };
        let mut offset = first;
        while offset < data.len() as u64 {
            perfuse_stopping::checkpoint();
            offset = search.process(offset);
            if offset as usize >= released.saturating_add(RELEASE_BYTES) {
                data.release(released..offset as usize);
                released = offset as usize;
            }
        }
        data.release(released..data.len());
        search.found
    }

    /// Index of the first buffer that ends after an offset.
    #[must_use]
    pub fn at(&self, offset: u64) -> usize {
        self.list.partition_point(|buffer| buffer.end() <= offset)
    }
}

/// Bytes of the file between two releases of its pages, in a pass.
pub const RELEASE_BYTES: usize = 1 << 20;

/// The range of the file from the first of some buffers, in file order, to the end of the last.
#[must_use]
pub fn file_range(first: Option<&EventBuffer>, last: Option<&EventBuffer>) -> Range<usize> {
    first.map_or(0, |buffer| buffer.offset as usize)..last.map_or(0, |buffer| buffer.end() as usize)
}

/// The search for buffers.
struct BufferSearch<'a> {
    data: &'a [u8],
    magic: Finder<'static>,
    found: BufferList,
}

/// The buffer header at an offset, if there is one.
fn read_header(data: &[u8], offset: u64) -> Option<BufferHeader> {
    let rest = data.get(usize::try_from(offset).ok()?..)?;
    let header = BufferHeader::read(&mut Cursor::new(rest, offset, Endian::Little)).ok()?;
    (header.bufid == BUF_ID).then_some(header)
}

impl BufferSearch<'_> {
    /// Size of the file in bytes.
    fn file_end(&self) -> u64 {
        self.data.len() as u64
    }

    /// Processes the bytes at `offset`; returns the offset to continue at.
    fn process(&mut self, offset: u64) -> u64 {
        let Some(header) = read_header(self.data, offset) else { return self.skip_damage(offset) };
        let start = offset.saturating_add(BufferHeader::SIZE);
        let stated_end = start.saturating_add(header.len.into());
        let is_plausible = stated_end == self.file_end() || self.is_buffer(stated_end);
        let inside = if is_plausible { None } else { self.search(start, stated_end, true) };
        let end = inside.unwrap_or(stated_end).min(self.file_end());
        self.found.list.push(EventBuffer { offset, header, len: end.saturating_sub(start) });
        if inside.is_some() {
            self.found.damage.push(BufferDamage::WrongLength { offset, stated: header.len });
        } else if stated_end > self.file_end() {
            let missing = stated_end.saturating_sub(self.file_end());
            self.found.damage.push(BufferDamage::Truncated { offset, missing });
        }
        end
    }

    /// Processes bytes that are not a complete buffer header; returns the offset to continue at.
    fn skip_damage(&mut self, offset: u64) -> u64 {
        let rest = self.data.get(offset as usize..).unwrap_or_default();
        let magic = BUF_ID.to_le_bytes();
        let have = rest.len().min(magic.len());
        if (rest.len() as u64) < BufferHeader::SIZE && rest.get(..have) == magic.get(..have) {
            self.found.damage.push(BufferDamage::TruncatedHeader { offset });
            return self.file_end();
        }
        let next = self.search(offset.saturating_add(1), self.file_end(), false);
        let end = next.unwrap_or(self.file_end());
        self.found.damage.push(BufferDamage::NotABuffer { offset, len: end.saturating_sub(offset) });
        end
    }

    /// Whether a buffer starts at an offset.
    fn is_buffer(&self, offset: u64) -> bool {
        read_header(self.data, offset).is_some()
    }

    /// The first buffer that starts in a range. Its length must lead to another buffer or to the end of the file; if
    /// not `strict`, a plausible length is enough.
    fn search(&self, from: u64, to: u64, strict: bool) -> Option<u64> {
        /// Number of bytes that are searched at once.
        const PIECE_BYTES: usize = 4 << 20;
        /// The profiler's buffers have 64 KiB; larger ones contain one large event.
        const LIKELY: u32 = 1 << 24;
        // A magic may start in the range and end after it.
        let to = to.saturating_add(3).min(self.file_end());
        let (from, to) = (usize::try_from(from).ok()?, usize::try_from(to).ok()?);
        let hits = (from..to).step_by(PIECE_BYTES).flat_map(|start| {
            perfuse_stopping::checkpoint();
            let end = start.saturating_add(PIECE_BYTES).saturating_add(3).min(to);
            let piece = self.data.get(start..end).unwrap_or_default();
            self.magic.find_iter(piece).map(move |at| start.saturating_add(at) as u64)
        });
        hits.into_iter().find(|&at| {
            let Some(header) = read_header(self.data, at) else { return false };
            let end = at.saturating_add(BufferHeader::SIZE).saturating_add(header.len.into());
            let is_followed = end == self.file_end() || self.is_buffer(end);
            is_followed || (!strict && header.len <= LIKELY)
        })
    }
}
