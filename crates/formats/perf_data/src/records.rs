//! Bodies of mapping records.

use perfuse_addresses::mapped_memory::is_memory;
use perfuse_wire::{Cursor, Endian};

use super::consts::{RecordType, misc};
use super::layout::{Ksymbol, Mmap, Mmap2Protection};
use super::record::RawEvent;

/// A bit in the protection that simpleperf adds to mappings of its own files with code of JIT compilers.
const PROT_JIT_FILE: u32 = 0x4000;
/// `PROT_*` of all machines, with those of stacks that grow and simpleperf's.
const PROT_BITS: u32 = 0x0300_0000 | PROT_JIT_FILE | 0x3f;
/// `PROT_EXEC`.
const PROT_EXEC: u32 = 4;
/// Number of bytes in MMAP2 that contain either an inode or a build id.
pub const MMAP2_FILE_BYTES: u64 = 24;
/// Offset of a build id in those bytes, after its length and three bytes of padding.
const MMAP2_BUILD_ID_START: usize = 4;

/// A mapping, from an MMAP, MMAP2 or KSYMBOL record.
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
    /// Whether it is of a file with code of JIT compilers, whose symbols have addresses in memory.
    pub is_jit_file: bool,
    /// `misc` of the record.
    pub misc: u16,
    /// File, or a name such as `//anon` or `[vdso]`.
    pub path: &'a [u8],
}

impl<'a> MappingRecord<'a> {
    /// Decodes an MMAP, MMAP2 or KSYMBOL record; `None` for other records, for removed code and for a record that is too short.
    #[must_use]
    pub fn read(record: &RawEvent<'a>, endian: Endian) -> Option<Self> {
        let mut cursor = record.cursor(endian);
        match record.record_type {
            RecordType::MMAP | RecordType::MMAP2 => {}
            RecordType::KSYMBOL => return Self::of_kernel_code(record, &mut cursor),
            _ => return None,
        }
        let Mmap { pid, tid, addr, len, pgoff } = Mmap::read(&mut cursor).ok()?;
        let mut mapping = Self {
            pid,
            tid,
            start_address: addr,
            size: len,
            file_offset: pgoff,
            build_id: None,
            executable: record.misc & misc::MMAP_DATA == 0,
            is_jit_file: false,
            misc: record.misc,
            path: &[],
        };
        if record.record_type == RecordType::MMAP2 {
            let identity = cursor.bytes(MMAP2_FILE_BYTES, "build_id").ok()?;
            if record.misc & misc::MMAP_BUILD_ID != 0 {
                mapping.build_id = mmap2_build_id(identity);
            }
            if has_protection(cursor.rest(), endian) {
                let Mmap2Protection { prot, .. } = Mmap2Protection::read(&mut cursor).ok()?;
                mapping.executable = prot & PROT_EXEC != 0;
                mapping.is_jit_file = prot & PROT_JIT_FILE != 0;
            }
        }
        let rest = cursor.rest();
        mapping.path = up_to_nul(rest);
        Some(mapping)
    }

    /// Code that the kernel added, such as a BPF program: as in perf, a file of its own with the symbol's name.
    fn of_kernel_code(record: &RawEvent<'a>, cursor: &mut Cursor<'a>) -> Option<Self> {
        let Ksymbol { addr, len, flags, .. } = Ksymbol::read(cursor).ok()?;
        let added = Self {
            pid: -1,
            tid: 0,
            start_address: addr,
            size: u64::from(len),
            file_offset: 0,
            build_id: None,
            executable: true,
            is_jit_file: false,
            misc: record.misc,
            path: up_to_nul(cursor.rest()),
        };
        // Without privileges addresses are 0.
        (flags & UNREGISTER == 0 && addr != 0).then_some(added)
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

    /// Whether the mapping is of memory, where JIT code is, rather than of a file with symbols.
    #[must_use]
    pub fn is_anonymous(&self) -> bool {
        is_memory(self.path, self.build_id.is_some())
    }
}

/// `PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`.
pub const UNREGISTER: u16 = 1;

fn up_to_nul(bytes: &[u8]) -> &[u8] {
    bytes.get(..memchr::memchr(0, bytes).unwrap_or(bytes.len())).unwrap_or_default()
}

/// Whether the rest of MMAP2 begins with a protection and flags. Linux 3.12 to 3.15, and 3.10 of RHEL 7.0, wrote the name there, whose
/// letters cannot be a protection.
pub fn has_protection(rest: &[u8], endian: Endian) -> bool {
    let prot = Cursor::new(rest, 0, endian).u32("prot").unwrap_or(0);
    !matches!(rest.first(), Some(b'/' | b'[')) || prot & !PROT_BITS == 0
}

/// The build id in the `MMAP2_FILE_BYTES`; `None` where its length is larger than they are.
pub fn mmap2_build_id(identity: &[u8]) -> Option<&[u8]> {
    let len = usize::from(*identity.first()?);
    identity.get(MMAP2_BUILD_ID_START..MMAP2_BUILD_ID_START.saturating_add(len))
}
