//! Finds the buffers of a log, going on behind damage: by length, else at the next magic.

use memchr::memmem::Finder;
use perfuse_wire::{Cursor, Endian};

use super::consts::BUF_ID;
use super::decode::Decoder;
use super::dialect::Dialect;
use super::layout::BufferHeader;

/// A run of events of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Absolute offset of its header.
    pub offset: u64,
    /// The header as written.
    pub header: BufferHeader,
    /// Bytes of events there are: fewer than the header says where it lies, or the file ends.
    pub len: u64,
}

impl Buffer {
    /// Absolute offset of its first event.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.offset.saturating_add(BufferHeader::SIZE)
    }

    /// Absolute offset behind its last event.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start().saturating_add(self.len)
    }

    /// A walk over its events.
    #[must_use]
    pub fn decoder<'a>(&self, data: &'a [u8], dialect: Dialect) -> Decoder<'a> {
        let events = data.get(self.start() as usize..self.end() as usize).unwrap_or_default();
        Decoder::new(dialect, &self.header, events, self.start())
    }
}

/// What a walk over the buffers could not read, or not believe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The file ends inside a buffer.
    Cut {
        /// Offset of the buffer's header.
        offset: u64,
        /// Bytes of events that are missing.
        missing: u64,
    },
    /// The file ends inside a buffer header.
    HeaderCut {
        /// Where the header begins.
        offset: u64,
    },
    /// A buffer says it is longer than it can be: another one begins inside it.
    Length {
        /// Offset of the buffer's header.
        offset: u64,
        /// What it says.
        said: u32,
    },
    /// Bytes that are no buffer.
    NoBuffer {
        /// Where they begin.
        offset: u64,
        /// How many.
        len: u64,
    },
}

/// Every buffer of a log, and what lies between.
#[derive(Clone, Debug, Default)]
pub struct Buffers {
    /// In file order.
    pub list: Vec<Buffer>,
    /// In file order.
    pub losses: Vec<Loss>,
}

impl Buffers {
    /// Walks the buffer headers from an offset on.
    #[must_use]
    pub fn find(data: &[u8], first: u64) -> Self {
        let mut walk = Walk { data, magic: Finder::new(&[0x01, 0x4c, 0x50, 0x4d]), found: Self::default() };
        let mut offset = first;
        while offset < data.len() as u64 {
            offset = walk.step(offset);
        }
        walk.found
    }

    /// The buffer an offset lies in or before.
    #[must_use]
    pub fn at(&self, offset: u64) -> usize {
        self.list.partition_point(|buffer| buffer.end() <= offset)
    }
}

struct Walk<'a> {
    data: &'a [u8],
    magic: Finder<'static>,
    found: Buffers,
}

fn header(data: &[u8], offset: u64) -> Option<BufferHeader> {
    let rest = data.get(usize::try_from(offset).ok()?..)?;
    let header = BufferHeader::read(&mut Cursor::new(rest, offset, Endian::Little)).ok()?;
    (header.bufid == BUF_ID).then_some(header)
}

impl Walk<'_> {
    fn file_end(&self) -> u64 {
        self.data.len() as u64
    }

    /// Takes what is at `offset`; returns where to go on.
    fn step(&mut self, offset: u64) -> u64 {
        let Some(header) = header(self.data, offset) else { return self.no_buffer(offset) };
        let start = offset.saturating_add(BufferHeader::SIZE);
        let said = start.saturating_add(header.len.into());
        let whole = said == self.file_end() || self.begins(said);
        let inside = if whole { None } else { self.search(start, said, true) };
        let end = inside.unwrap_or(said).min(self.file_end());
        self.found.list.push(Buffer { offset, header, len: end.saturating_sub(start) });
        if inside.is_some() {
            self.found.losses.push(Loss::Length { offset, said: header.len });
        } else if said > self.file_end() {
            let missing = said.saturating_sub(self.file_end());
            self.found.losses.push(Loss::Cut { offset, missing });
        }
        end
    }

    fn no_buffer(&mut self, offset: u64) -> u64 {
        let rest = self.data.get(offset as usize..).unwrap_or_default();
        let magic = BUF_ID.to_le_bytes();
        let have = rest.len().min(magic.len());
        if (rest.len() as u64) < BufferHeader::SIZE && rest.get(..have) == magic.get(..have) {
            self.found.losses.push(Loss::HeaderCut { offset });
            return self.file_end();
        }
        let next = self.search(offset.saturating_add(1), self.file_end(), false);
        let end = next.unwrap_or(self.file_end());
        self.found.losses.push(Loss::NoBuffer { offset, len: end.saturating_sub(offset) });
        end
    }

    fn begins(&self, offset: u64) -> bool {
        header(self.data, offset).is_some()
    }

    /// The first buffer that begins in a range: one whose length leads to another or to the end, or, unless `strict`, one whose
    /// length can be.
    fn search(&self, from: u64, to: u64, strict: bool) -> Option<u64> {
        /// The profiler's buffers are of 64 KiB; larger ones hold one large event.
        const LIKELY: u32 = 1 << 24;
        // A magic may begin in the range and end behind it.
        let to = to.saturating_add(3).min(self.file_end());
        let range = self.data.get(usize::try_from(from).ok()?..usize::try_from(to).ok()?)?;
        let hits = self.magic.find_iter(range).map(|at| from.saturating_add(at as u64));
        hits.into_iter().find(|&at| {
            let Some(header) = header(self.data, at) else { return false };
            let end = at.saturating_add(BufferHeader::SIZE).saturating_add(header.len.into());
            let leads_on = end == self.file_end() || self.begins(end);
            leads_on || (!strict && header.len <= LIKELY)
        })
    }
}
