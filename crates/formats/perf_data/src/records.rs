//! Bodies of mapping records.

use perfuse_wire::Endian;

use super::consts::{RecordType, misc};
use super::layout::{Mmap, Mmap2Protection};
use super::record::RawEvent;

/// `PROT_EXEC`.
const PROT_EXEC: u32 = 4;
/// Number of bytes in MMAP2 that contain either an inode or a build id.
pub const MMAP2_FILE_BYTES: u64 = 24;
/// Offset of a build id in those bytes, after its length and three bytes of padding.
const MMAP2_BUILD_ID_START: usize = 4;

/// A mapping, from an MMAP or MMAP2 record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappingRecord<'a> {
    /// Process; -1 for the kernel.
    pub pid: i32,
    /// Thread.
    pub tid: i32,
    /// First address.
    pub start_address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Offset in the file of the first address.
    pub file_offset: u64,
    /// Build id of the file; `None` where the record contains none.
    pub build_id: Option<&'a [u8]>,
    /// Whether it is executable.
    pub executable: bool,
    /// `misc` of the record.
    pub misc: u16,
    /// File, or a name such as `//anon` or `[vdso]`.
    pub path: &'a [u8],
}

impl<'a> MappingRecord<'a> {
    /// Decodes an MMAP or MMAP2 record; `None` for other records and for one that is too short.
    #[must_use]
    pub fn read(record: &RawEvent<'a>, endian: Endian) -> Option<Self> {
        if !matches!(record.record_type, RecordType::MMAP | RecordType::MMAP2) {
            return None;
        }
        let mut cursor = record.cursor(endian);
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

    /// Whether it is a mapping of the kernel, which all processes of the host share.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        !self.is_guest_kernel() && (self.pid == -1 || self.misc & misc::CPUMODE_MASK == misc::KERNEL)
    }

    /// Whether it is a mapping of a guest's kernel.
    #[must_use]
    pub fn is_guest_kernel(&self) -> bool {
        self.misc & misc::CPUMODE_MASK == misc::GUEST_KERNEL
    }

    /// Whether the file is a JITDUMP file, which all runtimes name `jit-PID.dump`.
    #[must_use]
    pub fn is_jit_marker(&self) -> bool {
        let name = self.path.rsplit(|&byte| byte == b'/').next().unwrap_or_default();
        name.starts_with(b"jit-") && name.ends_with(b".dump")
    }

    /// Whether the mapping is not backed by a file.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        [&b"//anon"[..], b"[anon:", b"/memfd:", b"/dev/zero", b"/anon_hugepage"]
            .iter()
            .any(|name| self.path.starts_with(name))
    }
}

/// The build id in the `MMAP2_FILE_BYTES`; `None` where its length is larger than they are.
pub fn mmap2_build_id(identity: &[u8]) -> Option<&[u8]> {
    let len = usize::from(*identity.first()?);
    identity.get(MMAP2_BUILD_ID_START..MMAP2_BUILD_ID_START.saturating_add(len))
}
