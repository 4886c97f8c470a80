//! Bodies of the specification's records, decoded on demand from a [`RawRecord`].

use perfuse_wire::{Cursor, Endian, ParseError};

use super::consts::{REPEATED_NAME, RecordTag};
use super::layout::{self, RecordPrefix};

/// A record as it was cut from the file: its place, its prefix, its undecoded body.
#[derive(Clone, Copy, Debug)]
pub struct RawRecord<'a> {
    /// Absolute offset of the prefix.
    pub offset: u64,
    /// Zero-based index in the file.
    pub index: u64,
    /// Kind, size and time.
    pub prefix: RecordPrefix,
    /// What follows the prefix.
    pub body: &'a [u8],
    /// The file's byte order.
    pub endian: Endian,
}

impl<'a> RawRecord<'a> {
    /// Kind of the record.
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

/// JIT_CODE_LOAD, section V.
#[derive(Clone, Copy, Debug)]
pub struct Load<'a> {
    /// Fixed fields.
    pub fixed: layout::Load,
    /// Function name; ends at the code or the record where the writer put no NUL.
    pub name: &'a [u8],
    /// Whether a NUL ended the name.
    pub name_terminated: bool,
    /// Thread id in full: more than 32 bits only from CPython on macOS.
    pub tid: u64,
    /// Whether it takes 64 bits in the record.
    pub wide_tid: bool,
    /// The machine code that is there: shorter than `code_size` where the record is.
    pub code: &'a [u8],
    /// Absolute offset of the code.
    pub code_offset: u64,
    /// Bytes after the code: padding.
    pub padding: &'a [u8],
}

impl<'a> Load<'a> {
    /// Decodes a body. Lies about sizes are cut to what is there; the checker tells them.
    ///
    /// # Errors
    /// When the fixed fields do not fit.
    pub fn decode(cursor: Cursor<'a>) -> Result<Self, ParseError> {
        let mut at = cursor;
        let fixed = layout::Load::read(&mut at)?;
        let plain = Self::variable(fixed, u64::from(fixed.tid), at);
        if plain.padding.is_empty() && plain.code.len() as u64 == fixed.code_size {
            return Ok(plain);
        }
        // CPython on macOS writes a 64-bit thread id, aligned, so that every later field is 8 bytes on.
        Ok(Self::wide_tid(cursor).filter(|wide| wide.padding.is_empty()).unwrap_or(plain))
    }

    fn wide_tid(mut at: Cursor<'a>) -> Option<Self> {
        let pid = at.u32("pid").ok()?;
        let pad = at.u32("pad").ok()?;
        let tid = at.u64("tid").ok()?;
        let fixed = layout::Load {
            pid,
            tid: tid as u32,
            vma: at.u64("vma").ok()?,
            code_addr: at.u64("code_addr").ok()?,
            code_size: at.u64("code_size").ok()?,
            code_index: at.u64("code_index").ok()?,
        };
        let load = Self { wide_tid: true, ..Self::variable(fixed, tid, at) };
        let whole = load.name_terminated && load.code.len() as u64 == fixed.code_size;
        (pad == 0 && whole && fixed.vma == fixed.code_addr).then_some(load)
    }

    fn variable(fixed: layout::Load, tid: u64, mut at: Cursor<'a>) -> Self {
        let (name, name_terminated) = match at.c_string("name") {
            Ok(name) => (name, true),
            Err(_) => {
                // Without a NUL only the size of the code says where the name ends.
                let rest = at.rest();
                let code = usize::try_from(fixed.code_size).unwrap_or(usize::MAX);
                let len = rest.len().checked_sub(code).unwrap_or(rest.len());
                (at.bytes(len as u64, "name").unwrap_or(rest), false)
            }
        };
        let code_offset = at.offset();
        let have = fixed.code_size.min(at.remaining() as u64);
        let code = at.bytes(have, "code").unwrap_or_default();
        Self { fixed, name, name_terminated, tid, wide_tid: false, code, code_offset, padding: at.rest() }
    }
}

/// JIT_CODE_DEBUG_INFO, section VII.
#[derive(Clone, Copy, Debug)]
pub struct DebugInfo<'a> {
    /// Fixed fields.
    pub fixed: layout::DebugInfo,
    /// The undecoded entries and what pads them.
    pub entries: Cursor<'a>,
}

impl<'a> DebugInfo<'a> {
    /// Decodes a body.
    ///
    /// # Errors
    /// When the fixed fields do not fit.
    pub fn decode(cursor: Cursor<'a>) -> Result<Self, ParseError> {
        let mut at = cursor;
        Ok(Self { fixed: layout::DebugInfo::read(&mut at)?, entries: at })
    }

    /// Walks the entries one after the other, as the specification says they must be.
    #[must_use]
    pub fn walk(&self) -> Entries<'a> {
        Entries { at: self.entries, left: self.fixed.nr_entry, previous: &[] }
    }
}

/// One line of a JIT_CODE_DEBUG_INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugEntry<'a> {
    /// Address, line and column as written.
    pub fixed: layout::DebugEntry,
    /// Source file, a repeated name resolved.
    pub name: &'a [u8],
}

/// Sequential walk over debug entries: ends at the count, or with an error where the bytes do.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    at: Cursor<'a>,
    left: u64,
    previous: &'a [u8],
}

impl<'a> Entries<'a> {
    /// Bytes behind the last entry that was read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.at.rest()
    }

    /// Absolute offset of the next entry.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at.offset()
    }

    #[inline]
    fn entry(&mut self) -> Result<DebugEntry<'a>, ParseError> {
        let fixed = layout::DebugEntry::read(&mut self.at)?;
        let name = self.at.c_string("name")?;
        if name != REPEATED_NAME {
            self.previous = name;
        }
        Ok(DebugEntry { fixed, name: self.previous })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<DebugEntry<'a>, ParseError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let entry = self.entry();
        if entry.is_err() {
            self.left = 0;
        }
        Some(entry)
    }
}

/// Which part of the unwinding data comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwindOrder {
    /// `.eh_frame_hdr`, then `.eh_frame`: the specification's order; LLVM ORC.
    HeaderFirst,
    /// `.eh_frame`, then `.eh_frame_hdr`: V8, CPython, and what perf reads.
    FrameFirst,
    /// Neither reads as a header.
    Unknown,
}

/// JIT_CODE_UNWINDING_INFO, section IX.
#[derive(Clone, Copy, Debug)]
pub struct UnwindingInfo<'a> {
    /// Fixed fields.
    pub fixed: layout::UnwindingInfo,
    /// The data that is there: shorter than `unwind_data_size` where the record is.
    pub data: &'a [u8],
    /// Bytes after the data: padding.
    pub padding: &'a [u8],
}

impl<'a> UnwindingInfo<'a> {
    /// Decodes a body.
    ///
    /// # Errors
    /// When the fixed fields do not fit.
    pub fn decode(cursor: Cursor<'a>) -> Result<Self, ParseError> {
        let mut at = cursor;
        let fixed = layout::UnwindingInfo::read(&mut at)?;
        let have = fixed.unwind_data_size.min(at.remaining() as u64);
        let data = at.bytes(have, "unwinding_data")?;
        Ok(Self { fixed, data, padding: at.rest() })
    }

    /// Which part comes first, told by where a `.eh_frame_hdr` (version 1, known encodings) lies.
    #[must_use]
    pub fn order(&self) -> UnwindOrder {
        let len = self.fixed.eh_frame_hdr_size.min(self.data.len() as u64) as usize;
        let tail = self.data.len().saturating_sub(len);
        if is_eh_frame_hdr(self.data.get(tail..).unwrap_or_default()) && tail > 0 {
            UnwindOrder::FrameFirst
        } else if is_eh_frame_hdr(self.data.get(..len).unwrap_or_default()) {
            UnwindOrder::HeaderFirst
        } else {
            UnwindOrder::Unknown
        }
    }

    /// `.eh_frame_hdr` and `.eh_frame`, whichever way round they lie.
    #[must_use]
    pub fn parts(&self) -> (&'a [u8], &'a [u8]) {
        let len = self.fixed.eh_frame_hdr_size.min(self.data.len() as u64) as usize;
        match self.order() {
            UnwindOrder::HeaderFirst => self.data.split_at_checked(len).unwrap_or_default(),
            UnwindOrder::FrameFirst | UnwindOrder::Unknown => {
                let (frame, header) =
                    self.data.split_at_checked(self.data.len().saturating_sub(len)).unwrap_or_default();
                (header, frame)
            }
        }
    }
}

/// Version 1 and three DWARF pointer encodings that writers use there; a CIE's length never reads like this.
fn is_eh_frame_hdr(data: &[u8]) -> bool {
    let encodings = [0x00, 0x03, 0x04, 0x0b, 0x0c, 0x1b, 0x1c, 0x3b, 0x3c, 0xff];
    match data {
        [1, frame_ptr, fde_count, table, ..] => {
            encodings.contains(frame_ptr) && encodings.contains(fde_count) && encodings.contains(table)
        }
        _ => false,
    }
}
