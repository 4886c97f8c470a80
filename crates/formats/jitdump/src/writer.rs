//! A streaming writer of dumps, in either byte order, which checks the order of records that readers need.

use std::io::Write;

use perfuse_wire::Endian;

use super::consts::{MAGIC, RecordTag};
use super::encode::{self, WriteError, check_text};
use super::inline::{self, DeclaredFunction, InlineTree, convert, convert::UnsupportedCounts};
use super::layout::{self, FileHeader};
use super::records::{DebugInfoEntry, LoadRecord, UnwindOrder, UnwindingInfoRecord};

/// The fields of a file header that the caller chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// ELF `e_machine` of the code.
    pub elf_mach: u32,
    /// Process id in the process's own pid namespace.
    pub pid: u32,
    /// Time when the file is made, on the records' clock.
    pub timestamp: u64,
    /// `JITDUMP_FLAGS_ARCH_TIMESTAMP`, or 0 for nanoseconds of the monotonic clock.
    pub flags: u64,
}

/// Writes a dump to an output, one record for each call. Every record is written before its call returns.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    endian: Endian,
    buffer: Vec<u8>,
    /// Address of the code whose debug information was written and whose load must follow.
    pending: Option<u64>,
    closed: bool,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn new(out: W, header: &Header, endian: Endian) -> Result<Self, WriteError> {
        let mut writer = Self::resume(out, endian);
        let Header { elf_mach, pid, timestamp, flags } = *header;
        let total_size = FileHeader::SIZE as u32;
        FileHeader { magic: MAGIC, version: 1, total_size, elf_mach, pad1: 0, pid, timestamp, flags }
            .write(&mut writer.buffer, endian);
        writer.flush_buffer()?;
        Ok(writer)
    }

    /// Continues a dump whose header is already written.
    #[must_use]
    pub fn resume(out: W, endian: Endian) -> Self {
        Self { out, endian, buffer: Vec::new(), pending: None, closed: false }
    }

    /// Appends JIT_CODE_LOAD; `fixed.code_size` is computed from `code`.
    ///
    /// # Errors
    /// `Order` where debug information of other code has no load yet; `Nul`, `TooLarge`, `Closed`, `Io`.
    pub fn load(
        &mut self,
        timestamp: u64,
        mut fixed: layout::Load,
        name: &[u8],
        code: &[u8],
    ) -> Result<(), WriteError> {
        self.check_order(fixed.code_addr)?;
        fixed.code_size = code.len() as u64;
        let load = LoadRecord {
            fixed,
            name: check_text(name, "name")?,
            name_terminated: true,
            tid: fixed.tid.into(),
            wide_tid: false,
            code,
            code_offset: 0,
            padding: &[],
        };
        self.raw(timestamp, RecordTag::JIT_CODE_LOAD, &load.encode(self.endian))?;
        self.pending = None;
        Ok(())
    }

    /// Appends JIT_CODE_MOVE.
    ///
    /// # Errors
    /// `Closed`, `Io`.
    pub fn code_move(&mut self, timestamp: u64, fixed: &layout::Move) -> Result<(), WriteError> {
        let mut body = Vec::new();
        fixed.write(&mut body, self.endian);
        self.raw(timestamp, RecordTag::JIT_CODE_MOVE, &body)
    }

    /// Appends JIT_CODE_DEBUG_INFO for the next load. With `repeat`, repeated names need one byte.
    ///
    /// # Errors
    /// `Order`, `Nul`, `TooLarge`, `Closed`, `Io`.
    pub fn debug_info(
        &mut self,
        timestamp: u64,
        code_addr: u64,
        entries: &[DebugInfoEntry<'_>],
        repeat: bool,
    ) -> Result<(), WriteError> {
        self.check_order(code_addr)?;
        let body = encode::debug_info(code_addr, entries, repeat, self.endian)?;
        self.raw(timestamp, RecordTag::JIT_CODE_DEBUG_INFO, &body)?;
        self.pending = Some(code_addr);
        Ok(())
    }

    /// Appends JIT_CODE_UNWINDING_INFO for the next load. `order` is the order of its parts: the header is first in the
    /// specification, and last for perf.
    ///
    /// # Errors
    /// `TooLarge`, `Closed`, `Io`.
    pub fn unwinding_info(
        &mut self,
        timestamp: u64,
        eh_frame_hdr: &[u8],
        eh_frame: &[u8],
        mapped_size: u64,
        order: UnwindOrder,
    ) -> Result<(), WriteError> {
        let parts = match order {
            UnwindOrder::HeaderFirst => [eh_frame_hdr, eh_frame],
            UnwindOrder::FrameFirst | UnwindOrder::Unknown => [eh_frame, eh_frame_hdr],
        };
        let data = parts.concat();
        let (unwind_data_size, eh_frame_hdr_size) = (data.len() as u64, eh_frame_hdr.len() as u64);
        let fixed = layout::UnwindingInfo { unwind_data_size, eh_frame_hdr_size, mapped_size };
        let body = UnwindingInfoRecord { fixed, data: &data, padding: &[] }.encode(self.endian);
        self.raw(timestamp, RecordTag::JIT_CODE_UNWINDING_INFO, &body)
    }

    /// Appends lines and inlined calls for the next load, in dialect A or B. Returns numbers of unsupported items.
    ///
    /// # Errors
    /// `Order`, `Nul`, `TooLarge`, `Closed`, `Io`.
    pub fn inline_info(
        &mut self,
        timestamp: u64,
        code_addr: u64,
        tree: &InlineTree<'_>,
        dialect: InlineDialect,
    ) -> Result<UnsupportedCounts, WriteError> {
        self.check_order(code_addr)?;
        check_texts(tree)?;
        let (tag, body, unsupported) = match dialect {
            InlineDialect::DebugInfo2 => {
                let (info, unsupported) = convert::to_debug_info2(tree);
                let body = inline::debug_info2::encode(&info, self.endian);
                (RecordTag::SAMPLY_JIT_CODE_DEBUG_INFO2, body, unsupported)
            }
            InlineDialect::Frames => {
                let (frames, unsupported) = convert::to_frames(tree, code_addr);
                (RecordTag::SAMPLY_JIT_TIER, inline::frames::encode(&frames, self.endian), unsupported)
            }
        };
        self.raw(timestamp, tag, &body)?;
        self.pending = Some(code_addr);
        Ok(unsupported)
    }

    /// Appends SAMPLY_JIT_TIER, in perfuse's layout, for the next load.
    ///
    /// # Errors
    /// `Order`, `Nul`, `Closed`, `Io`.
    pub fn tier(
        &mut self,
        timestamp: u64,
        code_addr: u64,
        color: u32,
        name: &[u8],
    ) -> Result<(), WriteError> {
        self.check_order(code_addr)?;
        let tier = inline::tier::Tier { code_addr, color, name: check_text(name, "name")?, padding: &[] };
        self.raw(timestamp, RecordTag::SAMPLY_JIT_TIER, &inline::tier::encode(&tier, self.endian))?;
        self.pending = Some(code_addr);
        Ok(())
    }

    /// Appends SAMPLY_EMBEDDED_SOURCE_FILE, in perfuse's layout.
    ///
    /// # Errors
    /// `Nul`, `TooLarge`, `Closed`, `Io`.
    pub fn embedded_source(&mut self, timestamp: u64, path: &[u8], source: &[u8]) -> Result<(), WriteError> {
        let file =
            inline::embedded::EmbeddedFile { path: check_text(path, "path")?, text: source, padding: &[] };
        let body = inline::embedded::encode(&file, self.endian);
        self.raw(timestamp, RecordTag::SAMPLY_EMBEDDED_SOURCE_FILE, &body)
    }

    /// Appends a record of any kind unchanged, without checking the order of records.
    ///
    /// # Errors
    /// `TooLarge`, `Closed`, `Io`.
    pub fn raw(&mut self, timestamp: u64, tag: RecordTag, body: &[u8]) -> Result<(), WriteError> {
        if self.closed {
            return Err(WriteError::Closed);
        }
        encode::record(tag, timestamp, body, self.endian, &mut self.buffer)?;
        self.flush_buffer()
    }

    /// Appends JIT_CODE_CLOSE, after which no record can be written.
    ///
    /// # Errors
    /// `Pending`, with the record written, where the last debug information has no load; `Closed`, `Io`.
    pub fn close(&mut self, timestamp: u64) -> Result<(), WriteError> {
        self.raw(timestamp, RecordTag::JIT_CODE_CLOSE, &[])?;
        self.closed = true;
        self.out.flush()?;
        self.pending.take().map_or(Ok(()), |code_addr| Err(WriteError::Pending { code_addr }))
    }

    /// Removes the requirement that a load follows the last debug information, after a call failed.
    pub fn forget_pending(&mut self) {
        self.pending = None;
    }

    /// The byte order.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// The output.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Returns the output.
    #[must_use]
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Checks that no debug information of other code has no load yet.
    fn check_order(&self, code_addr: u64) -> Result<(), WriteError> {
        match self.pending {
            Some(pending) if pending != code_addr => Err(WriteError::Order { pending, code_addr }),
            _ => Ok(()),
        }
    }

    /// Writes the buffer to the output.
    fn flush_buffer(&mut self) -> Result<(), WriteError> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        Ok(written?)
    }
}

/// The inline dialects that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineDialect {
    /// Dialect A, of samply's document.
    DebugInfo2,
    /// Dialect B, of samply's branch and WebKit.
    Frames,
}

impl InlineDialect {
    /// The dialects by name.
    pub const ALL: [(&'static str, Self); 2] = [("debug_info2", Self::DebugInfo2), ("frames", Self::Frames)];
}

/// Checks that no text of a tree contains a NUL.
fn check_texts(tree: &InlineTree<'_>) -> Result<(), WriteError> {
    let check_function = |function: &DeclaredFunction<'_>| {
        check_text(function.name, "name").and(check_text(function.path, "path")).map(|_| ())
    };
    check_function(&tree.outer)?;
    tree.lines.iter().try_for_each(|line| check_text(line.path, "path").map(|_| ()))?;
    tree.calls.iter().try_for_each(|call| {
        check_text(call.call_path, "call_path").and_then(|_| check_function(&call.function))
    })
}
