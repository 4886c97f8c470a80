//! Records of the specification, decoded on demand from a raw record, and their fields as `perfuse records` prints them.

use std::borrow::Cow;

use perfuse_wire::{Cursor, ParseError, RecordView, Value};

use super::consts::{REPEATED_NAME, RecordTag};
use super::inline::{self, entries::padding_field};
use super::layout;
use super::reader::RawRecord;

/// A record with its fields decoded where its name is wanted; a body that cannot be decoded becomes one field of bytes.
#[must_use]
pub fn view<'a>(record: &RawRecord<'a>, wanted: &dyn Fn(&str) -> bool) -> RecordView<'a> {
    let tag = inline::effective_tag(record);
    let name = tag.name().map_or_else(|| Cow::Owned(tag.to_string()), Cow::Borrowed);
    let fields = match wanted(&name) {
        true => fields(record).unwrap_or_else(|_| vec![("body", Value::Bytes(record.body))]),
        false => Vec::new(),
    };
    RecordView {
        index: record.index,
        offset: record.offset,
        size: record.prefix.total_size.into(),
        name,
        timestamp: Some(record.prefix.timestamp),
        fields,
    }
}

fn fields<'a>(record: &RawRecord<'a>) -> Result<Vec<(&'static str, Value<'a>)>, ParseError> {
    let mut cursor = record.cursor();
    Ok(match record.tag() {
        RecordTag::JIT_CODE_LOAD => LoadRecord::decode(cursor)?.fields(),
        RecordTag::JIT_CODE_MOVE => layout::Move::read(&mut cursor)?.values(),
        RecordTag::JIT_CODE_DEBUG_INFO => DebugInfoRecord::decode(cursor)?.fields(),
        RecordTag::JIT_CODE_UNWINDING_INFO => UnwindingInfoRecord::decode(cursor)?.fields(),
        RecordTag::JIT_CODE_CLOSE if record.body.is_empty() => Vec::new(),
        _ => match inline::extension(record) {
            Some(extension) => extension.fields(),
            None => vec![("body", Value::Bytes(record.body))],
        },
    })
}

/// JIT_CODE_LOAD, section V.
#[derive(Clone, Copy, Debug)]
pub struct LoadRecord<'a> {
    /// Fixed fields.
    pub fixed: layout::Load,
    /// Function name; ends at the code, or at the end of the record, where no NUL ends it.
    pub name: &'a [u8],
    /// Whether a NUL ended the name.
    pub name_terminated: bool,
    /// Thread id in full; only CPython on macOS writes more than 32 bits.
    pub tid: u64,
    /// Whether the thread id occupies 64 bits in the record.
    pub wide_tid: bool,
    /// Machine code; shorter than `code_size` where the record ends earlier.
    pub code: &'a [u8],
    /// Absolute offset of the code.
    pub code_offset: u64,
    /// Bytes after the code: padding.
    pub padding: &'a [u8],
}

impl<'a> LoadRecord<'a> {
    /// Decodes a body. Sizes larger than the record are reduced to the bytes it contains; the checker reports them.
    ///
    /// # Errors
    /// When the body is shorter than the fixed fields.
    pub fn decode(cursor: Cursor<'a>) -> Result<Self, ParseError> {
        let mut at = cursor;
        let fixed = layout::Load::read(&mut at)?;
        let plain = Self::decode_variable(fixed, u64::from(fixed.tid), at);
        if plain.padding.is_empty() && plain.code.len() as u64 == fixed.code_size {
            return Ok(plain);
        }
        // CPython on macOS writes an aligned 64-bit thread id, so that every later field starts 8 bytes later.
        Ok(Self::decode_wide_tid(cursor).filter(|wide| wide.padding.is_empty()).unwrap_or(plain))
    }

    /// Decodes the layout with a 64-bit thread id; `None` where its fields contradict each other.
    fn decode_wide_tid(mut at: Cursor<'a>) -> Option<Self> {
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
        let load = Self { wide_tid: true, ..Self::decode_variable(fixed, tid, at) };
        let whole = load.name_terminated && load.code.len() as u64 == fixed.code_size;
        (pad == 0 && whole && fixed.vma == fixed.code_addr).then_some(load)
    }

    /// Decodes name, code and padding.
    fn decode_variable(fixed: layout::Load, tid: u64, mut at: Cursor<'a>) -> Self {
        let (name, name_terminated) = match at.c_string("name") {
            Ok(name) => (name, true),
            Err(_) => {
                // Without a NUL, the name ends where `code_size` bytes are left.
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

    fn fields(&self) -> Vec<(&'static str, Value<'a>)> {
        let mut fields: Vec<(&str, Value<'a>)> = self.fixed.values();
        if let Some((_, tid)) = fields.iter_mut().find(|(name, _)| *name == "tid") {
            *tid = Value::Unsigned(self.tid);
        }
        fields.extend([("name", Value::text(self.name)), ("code", Value::Bytes(self.code))]);
        fields.extend(padding_field(self.padding));
        fields
    }
}

/// JIT_CODE_DEBUG_INFO, section VII.
#[derive(Clone, Copy, Debug)]
pub struct DebugInfoRecord<'a> {
    /// Fixed fields.
    pub fixed: layout::DebugInfo,
    /// The undecoded entries and their padding.
    pub entries: Cursor<'a>,
}

impl<'a> DebugInfoRecord<'a> {
    /// Decodes a body.
    ///
    /// # Errors
    /// When the body is shorter than the fixed fields.
    pub fn decode(cursor: Cursor<'a>) -> Result<Self, ParseError> {
        let mut at = cursor;
        Ok(Self { fixed: layout::DebugInfo::read(&mut at)?, entries: at })
    }

    /// Iterates over the entries.
    #[must_use]
    pub fn iter_entries(&self) -> DebugInfoEntries<'a> {
        DebugInfoEntries { at: self.entries, left: self.fixed.nr_entry, previous: &[] }
    }

    /// The fields; entries have the addresses and names of the file, without corrections.
    fn fields(&self) -> Vec<(&'static str, Value<'a>)> {
        let mut iter = self.iter_entries();
        let entries = iter.by_ref().map_while(Result::ok).map(|entry| {
            let mut fields: Vec<(&str, Value<'a>)> = entry.fixed.values();
            fields.push(("name", Value::text(entry.name)));
            fields
        });
        let entries = Value::Entries(entries.collect());
        let mut fields: Vec<(&str, Value<'a>)> = self.fixed.values();
        fields.push(("entries", entries));
        fields.extend(padding_field(iter.rest()));
        fields
    }
}

/// One line of a JIT_CODE_DEBUG_INFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebugInfoEntry<'a> {
    /// Address, line and column as written.
    pub fixed: layout::DebugEntry,
    /// Source file; the repeated-name marker is replaced by the name it stands for.
    pub name: &'a [u8],
}

/// Iterator over debug entries: ends after `nr_entry` entries, or with an error at an entry that is not whole.
#[derive(Clone, Debug)]
pub struct DebugInfoEntries<'a> {
    at: Cursor<'a>,
    left: u64,
    previous: &'a [u8],
}

impl<'a> DebugInfoEntries<'a> {
    /// Bytes after the last entry that was read.
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
    fn entry(&mut self) -> Result<DebugInfoEntry<'a>, ParseError> {
        let fixed = layout::DebugEntry::read(&mut self.at)?;
        let name = self.at.c_string("name")?;
        if name != REPEATED_NAME {
            self.previous = name;
        }
        Ok(DebugInfoEntry { fixed, name: self.previous })
    }
}

impl<'a> Iterator for DebugInfoEntries<'a> {
    type Item = Result<DebugInfoEntry<'a>, ParseError>;

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

/// Order of the parts of unwinding data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwindOrder {
    /// `.eh_frame_hdr`, then `.eh_frame`: the specification's order; LLVM ORC.
    HeaderFirst,
    /// `.eh_frame`, then `.eh_frame_hdr`: V8 and CPython; the order that perf reads.
    FrameFirst,
    /// Neither end contains a known header.
    Unknown,
}

/// JIT_CODE_UNWINDING_INFO, section IX.
#[derive(Clone, Copy, Debug)]
pub struct UnwindingInfoRecord<'a> {
    /// Fixed fields.
    pub fixed: layout::UnwindingInfo,
    /// Unwinding data; shorter than `unwind_data_size` where the record ends earlier.
    pub data: &'a [u8],
    /// Bytes after the data: padding.
    pub padding: &'a [u8],
}

impl<'a> UnwindingInfoRecord<'a> {
    /// Decodes a body.
    ///
    /// # Errors
    /// When the body is shorter than the fixed fields.
    pub fn decode(cursor: Cursor<'a>) -> Result<Self, ParseError> {
        let mut at = cursor;
        let fixed = layout::UnwindingInfo::read(&mut at)?;
        let have = fixed.unwind_data_size.min(at.remaining() as u64);
        let data = at.bytes(have, "unwinding_data")?;
        Ok(Self { fixed, data, padding: at.rest() })
    }

    fn fields(&self) -> Vec<(&'static str, Value<'a>)> {
        let mut fields: Vec<(&str, Value<'a>)> = self.fixed.values();
        fields.push(("unwinding_data", Value::Bytes(self.data)));
        fields.extend(padding_field(self.padding));
        fields
    }

    /// The order of the parts, from the position of a `.eh_frame_hdr` (version 1, known encodings).
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

    /// `.eh_frame_hdr` and `.eh_frame`, in either order in the file.
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

/// Whether data begins with version 1 and three DWARF pointer encodings; the length of a CIE does not have this pattern.
fn is_eh_frame_hdr(data: &[u8]) -> bool {
    let encodings = [0x00, 0x03, 0x04, 0x0b, 0x0c, 0x1b, 0x1c, 0x3b, 0x3c, 0xff];
    match data {
        [1, frame_ptr, fde_count, table, ..] => {
            encodings.contains(frame_ptr) && encodings.contains(fde_count) && encodings.contains(table)
        }
        _ => false,
    }
}
