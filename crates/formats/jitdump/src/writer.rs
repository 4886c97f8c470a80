//! Writes a dump record by record: streaming, in either byte order, in the order readers need.

use std::io::Write;

use perfuse_wire::Endian;

use super::consts::{MAGIC, RecordTag};
use super::encode::{self, WriteError, text};
use super::inline::{self, Declaration, InlineTree, convert, convert::Misfits};
use super::layout::{self, FileHeader};
use super::records::{DebugEntry, Load, UnwindOrder, UnwindingInfo};

/// The parts of a header that a writer chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// ELF `e_machine` of the code.
    pub elf_mach: u32,
    /// Process id, as the process sees itself.
    pub pid: u32,
    /// When the file is made, on the records' clock.
    pub timestamp: u64,
    /// `JITDUMP_FLAGS_ARCH_TIMESTAMP`, or 0 for nanoseconds of the monotonic clock.
    pub flags: u64,
}

/// Writes a dump to a sink, each record in one call.
///
/// Nothing is kept back: what a call returned from is in the sink.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    endian: Endian,
    buffer: Vec<u8>,
    /// Address of the code that debug information was written for and whose load must come next.
    pending: Option<u64>,
    closed: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a dump with its header.
    ///
    /// # Errors
    /// When the sink refuses.
    pub fn new(out: W, header: &Header, endian: Endian) -> Result<Self, WriteError> {
        let mut writer = Self::resume(out, endian);
        let Header { elf_mach, pid, timestamp, flags } = *header;
        let total_size = FileHeader::SIZE as u32;
        FileHeader { magic: MAGIC, version: 1, total_size, elf_mach, pad1: 0, pid, timestamp, flags }
            .write(&mut writer.buffer, endian);
        writer.drain()?;
        Ok(writer)
    }

    /// Goes on with a dump that has its header already.
    #[must_use]
    pub fn resume(out: W, endian: Endian) -> Self {
        Self { out, endian, buffer: Vec::new(), pending: None, closed: false }
    }

    /// Appends JIT_CODE_LOAD; `fixed.code_size` is computed from `code`.
    ///
    /// # Errors
    /// `Order` where debug information of other code waits; `Nul`, `TooLarge`, `Closed`, `Io`.
    pub fn load(
        &mut self,
        timestamp: u64,
        mut fixed: layout::Load,
        name: &[u8],
        code: &[u8],
    ) -> Result<(), WriteError> {
        self.about(fixed.code_addr)?;
        fixed.code_size = code.len() as u64;
        let load = Load {
            fixed,
            name: text(name, "name")?,
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
    pub fn moved(&mut self, timestamp: u64, fixed: &layout::Move) -> Result<(), WriteError> {
        let mut body = Vec::new();
        fixed.write(&mut body, self.endian);
        self.raw(timestamp, RecordTag::JIT_CODE_MOVE, &body)
    }

    /// Appends JIT_CODE_DEBUG_INFO for the load to come. With `repeat`, repeated names take one byte.
    ///
    /// # Errors
    /// `Order`, `Nul`, `TooLarge`, `Closed`, `Io`.
    pub fn debug_info(
        &mut self,
        timestamp: u64,
        code_addr: u64,
        entries: &[DebugEntry<'_>],
        repeat: bool,
    ) -> Result<(), WriteError> {
        self.about(code_addr)?;
        let body = encode::debug_info(code_addr, entries, repeat, self.endian)?;
        self.raw(timestamp, RecordTag::JIT_CODE_DEBUG_INFO, &body)?;
        self.pending = Some(code_addr);
        Ok(())
    }

    /// Appends JIT_CODE_UNWINDING_INFO for the load to come. `order` is which part comes first: the specification says
    /// the header, perf reads it last.
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
        let body = UnwindingInfo { fixed, data: &data, padding: &[] }.encode(self.endian);
        self.raw(timestamp, RecordTag::JIT_CODE_UNWINDING_INFO, &body)
    }

    /// Appends lines and inlined calls for the load to come, in dialect A or B; what does not fit is counted.
    ///
    /// # Errors
    /// `Order`, `Nul`, `TooLarge`, `Closed`, `Io`.
    pub fn inline_info(
        &mut self,
        timestamp: u64,
        code_addr: u64,
        tree: &InlineTree<'_>,
        dialect: InlineDialect,
    ) -> Result<Misfits, WriteError> {
        self.about(code_addr)?;
        no_nul(tree)?;
        let (tag, body, misfits) = match dialect {
            InlineDialect::DebugInfo2 => {
                let (info, misfits) = convert::to_debug_info2(tree);
                let body = inline::debug_info2::encode(&info, self.endian);
                (RecordTag::SAMPLY_JIT_CODE_DEBUG_INFO2, body, misfits)
            }
            InlineDialect::Frames => {
                let (frames, misfits) = convert::to_frames(tree, code_addr);
                (RecordTag::SAMPLY_JIT_TIER, inline::frames::encode(&frames, self.endian), misfits)
            }
        };
        self.raw(timestamp, tag, &body)?;
        self.pending = Some(code_addr);
        Ok(misfits)
    }

    /// Appends SAMPLY_JIT_TIER, in perfuse's layout, for the load to come.
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
        self.about(code_addr)?;
        let tier = inline::tier::Tier { code_addr, color, name: text(name, "name")?, padding: &[] };
        self.raw(timestamp, RecordTag::SAMPLY_JIT_TIER, &inline::tier::encode(&tier, self.endian))?;
        self.pending = Some(code_addr);
        Ok(())
    }

    /// Appends SAMPLY_EMBEDDED_SOURCE_FILE, in perfuse's layout.
    ///
    /// # Errors
    /// `Nul`, `TooLarge`, `Closed`, `Io`.
    pub fn embedded_source(&mut self, timestamp: u64, path: &[u8], source: &[u8]) -> Result<(), WriteError> {
        let file = inline::embedded::EmbeddedFile { path: text(path, "path")?, text: source, padding: &[] };
        let body = inline::embedded::encode(&file, self.endian);
        self.raw(timestamp, RecordTag::SAMPLY_EMBEDDED_SOURCE_FILE, &body)
    }

    /// Appends a record of any kind as it is, without holding it against the order of records.
    ///
    /// # Errors
    /// `TooLarge`, `Closed`, `Io`.
    pub fn raw(&mut self, timestamp: u64, tag: RecordTag, body: &[u8]) -> Result<(), WriteError> {
        if self.closed {
            return Err(WriteError::Closed);
        }
        encode::record(tag, timestamp, body, self.endian, &mut self.buffer)?;
        self.drain()
    }

    /// Appends JIT_CODE_CLOSE; nothing can follow.
    ///
    /// # Errors
    /// `Pending` (with the record written) where debug information never got its load; `Closed`, `Io`.
    pub fn close(&mut self, timestamp: u64) -> Result<(), WriteError> {
        self.raw(timestamp, RecordTag::JIT_CODE_CLOSE, &[])?;
        self.closed = true;
        self.out.flush()?;
        self.pending.take().map_or(Ok(()), |code_addr| Err(WriteError::Pending { code_addr }))
    }

    /// Forgets debug information that waits for its load, after a call failed.
    pub fn forget_pending(&mut self) {
        self.pending = None;
    }

    /// The byte order.
    #[must_use]
    pub fn endian(&self) -> Endian {
        self.endian
    }

    /// The sink.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Gives the sink back.
    #[must_use]
    pub fn into_inner(self) -> W {
        self.out
    }

    fn about(&self, code_addr: u64) -> Result<(), WriteError> {
        match self.pending {
            Some(pending) if pending != code_addr => Err(WriteError::Order { pending, code_addr }),
            _ => Ok(()),
        }
    }

    fn drain(&mut self) -> Result<(), WriteError> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        Ok(written?)
    }
}

/// The dialects that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineDialect {
    /// A, the gist's.
    DebugInfo2,
    /// B, samply's branch and WebKit.
    Frames,
}

fn no_nul(tree: &InlineTree<'_>) -> Result<(), WriteError> {
    let declared =
        |function: &Declaration<'_>| text(function.name, "name").and(text(function.path, "path")).map(|_| ());
    declared(&tree.outer)?;
    tree.lines.iter().try_for_each(|line| text(line.path, "path").map(|_| ()))?;
    tree.calls
        .iter()
        .try_for_each(|call| text(call.call_path, "call_path").and_then(|_| declared(&call.function)))
}

#[cfg(test)]
mod tests;
