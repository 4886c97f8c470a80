//! Bodies of records that tables are made of: mappings and samples.

use perfuse_wire::{ErrorKind, ParseError};

use super::attribute::Shape;
use super::consts::{RecordType, misc};
use super::layout::{Mmap, Mmap2Protection};
use super::reader::{File, RawRecord};
use super::sample::{Sample, SampleHead};

/// `PROT_EXEC`.
const PROT_EXEC: u32 = 4;
/// Bytes of MMAP2 that hold an inode or a build id.
pub const MMAP2_FILE_BYTES: u64 = 24;
/// A build id begins with its length and three bytes of padding.
const MMAP2_BUILD_ID_START: usize = 4;

/// A mapping, from MMAP or MMAP2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping<'a> {
    /// Process, -1 for the kernel.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// First address.
    pub start_address: u64,
    /// Length in bytes.
    pub size: u64,
    /// Offset in the file of the first address.
    pub file_offset: u64,
    /// Build id of the file, where the record has it.
    pub build_id: Option<&'a [u8]>,
    /// Whether it could be executed.
    pub executable: bool,
    /// `misc` of the record.
    pub misc: u16,
    /// File, `//anon`, `[vdso]` and the like.
    pub path: &'a [u8],
}

impl<'a> Mapping<'a> {
    /// Decodes an MMAP or MMAP2 record; `None` where it is neither or too short.
    #[must_use]
    pub fn read(file: &File, record: &RawRecord<'a>) -> Option<Self> {
        if !matches!(record.record_type, RecordType::MMAP | RecordType::MMAP2) {
            return None;
        }
        let mut cursor = record.cursor(file.endian);
        let Mmap { pid, tid, addr, len, pgoff } = Mmap::read(&mut cursor).ok()?;
        let mut mapping = Self {
            pid,
            tid,
            start_address: addr,
            size: len,
            file_offset: pgoff,
            build_id: None,
            executable: record.misc & misc::MMAP_DATA == 0,
            misc: record.misc,
            path: &[],
        };
        if record.record_type == RecordType::MMAP2 {
            let identity = cursor.bytes(MMAP2_FILE_BYTES, "build_id").ok()?;
            if record.misc & misc::MMAP_BUILD_ID != 0 {
                mapping.build_id = mmap2_build_id(identity);
            }
            mapping.executable = Mmap2Protection::read(&mut cursor).ok()?.prot & PROT_EXEC != 0;
        }
        let rest = cursor.rest();
        mapping.path = rest.get(..memchr::memchr(0, rest).unwrap_or(rest.len())).unwrap_or_default();
        Some(mapping)
    }

    /// Whether it is the kernel's, which all processes share.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        self.pid == -1 || matches!(self.misc & misc::CPUMODE_MASK, misc::KERNEL | misc::GUEST_KERNEL)
    }
}

/// The build id in those bytes; `None` where its length is more than they hold.
pub fn mmap2_build_id(identity: &[u8]) -> Option<&[u8]> {
    let len = usize::from(*identity.first()?);
    identity.get(MMAP2_BUILD_ID_START..MMAP2_BUILD_ID_START.saturating_add(len))
}

impl File {
    /// The layout of a record's body, where its event is known.
    pub fn shape(&self, record: &RawRecord<'_>) -> Option<&Shape> {
        let (index, _) = self.attributes.of(record.record_type, record.body, self.endian)?;
        self.attributes.list().get(index).map(|attribute| &attribute.shape)
    }

    /// Decodes a sample up to its call chain.
    #[inline]
    pub fn sample_head<'a>(&self, record: &RawRecord<'a>) -> Option<SampleHead<'a>> {
        SampleHead::read(&mut record.cursor(self.endian), self.shape(record)?).ok()
    }

    /// Decodes a whole sample.
    ///
    /// # Errors
    /// Where its body ends inside a field, or no attribute says what its fields are.
    pub fn sample<'a>(&self, record: &RawRecord<'a>) -> Result<Sample<'a>, ParseError> {
        let expected = "an event attribute that says what samples hold";
        let Some(shape) = self.shape(record) else {
            let kind = ErrorKind::Invalid { value: 0, expected };
            return Err(ParseError::new(kind, record.offset, "sample_type"));
        };
        Sample::read(&mut record.cursor(self.endian), shape)
    }
}
