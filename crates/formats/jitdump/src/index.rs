//! The index of a dump: each piece of code with its address and time, and the debug records that describe it.

use perfuse_wire::Endian;

use super::consts::RecordTag;
use super::functions::{Function, FunctionTable, InternedName};
use super::layout::{FileHeader, RecordPrefix};
use super::lines::DescribedCode;
use super::producer::Producer;
use super::reader::{RawRecord, Reader, ReaderStep};
use super::records::DebugInfoRecord;

/// A piece of code: the facts of its JIT_CODE_LOAD that look-ups need.
#[derive(Clone, Copy, Debug)]
pub struct LoadedCode {
    /// Offset of the record.
    pub offset: u64,
    /// Index of the record.
    pub index: u64,
    /// Time stamp, as written.
    pub timestamp: u64,
    /// Time stamp, as written, at which other code overwrote it; `u64::MAX` for never.
    pub retired: u64,
    /// Address at which it was loaded.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// The writer's number for it.
    pub code_index: u64,
    /// Process id in the process's own pid namespace.
    pub pid: u32,
    /// Thread that compiled it.
    pub tid: u32,
    /// Function and tier.
    pub name: InternedName,
    /// Index of its JIT_CODE_DEBUG_INFO in `debug_records`, or `NO_INDEX`.
    pub debug: u32,
    /// Index of its debug record of an inline dialect in `debug_records`, or `NO_INDEX`.
    pub inline: u32,
    /// Index of the unwinding record that precedes it in `unwind_records`, or `NO_INDEX`.
    pub unwind: u32,
}

/// A JIT_CODE_UNWINDING_INFO that contains frames, not only a header.
#[derive(Clone, Copy, Debug)]
pub struct UnwindRecord {
    /// Offset of the record.
    pub offset: u64,
    /// Index of the record.
    pub index: u64,
    /// Index of the first code that follows it, or `NO_INDEX`.
    pub code: u32,
}

/// A record that describes lines or inlined calls of code: JIT_CODE_DEBUG_INFO or an inline dialect.
#[derive(Clone, Copy, Debug)]
pub struct DebugRecord {
    /// Offset of the record.
    pub offset: u64,
    /// Index of the record.
    pub index: u64,
    /// Address of the described code; 0 where the dialect has no address.
    pub code_addr: u64,
    /// Index of the code it was paired with, or `NO_INDEX`.
    pub code: u32,
    /// Whether it is a record of an inline dialect.
    pub inline: bool,
    /// How it was paired with code.
    pub pairing: Pairing,
}

/// How a debug record was paired with code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// With the next load, at the same address: the order of the specification.
    #[default]
    Next,
    /// With a later load, at the same address: records are written in batches.
    Address,
    /// With the next load, at another address.
    OrderOnly,
    /// With an earlier load, at the same address.
    Before,
    /// With no code.
    Orphan,
    /// With no code: a later record for the same address precedes the load.
    Replaced,
}

/// A JIT_CODE_MOVE of known code.
#[derive(Clone, Copy, Debug)]
pub struct CodeMove {
    /// Offset of the record.
    pub offset: u64,
    /// Time stamp, as written.
    pub timestamp: u64,
    /// Index of the code that moved.
    pub code: u32,
    /// Address before the move.
    pub old: u64,
    /// Address after the move.
    pub new: u64,
}

/// Bytes that are not a record.
#[derive(Clone, Copy, Debug)]
pub struct LostBytes {
    /// Offset of the bytes, or of a record whose size is wrong.
    pub offset: u64,
    /// Number of bytes; 0 for a record whose size is wrong, when reading continued inside it.
    pub len: u64,
    /// The rejected prefix.
    pub prefix: Option<RecordPrefix>,
    /// Whether no further record follows.
    pub at_end: bool,
    /// Index of the next record.
    pub index: u64,
}

/// The index of a dump.
#[derive(Debug)]
pub struct DumpIndex {
    /// Byte order.
    pub endian: Endian,
    /// The header.
    pub header: FileHeader,
    /// Offset of the first record.
    pub first_record: u64,
    /// Further file headers in the middle of the file, with their offsets.
    pub later_headers: Vec<(u64, FileHeader)>,
    /// Program that wrote the dump.
    pub producer: Producer,
    /// Number that the producer adds to the address of every debug entry; 0 for none.
    pub skew: u64,
    /// Number of records of each kind, in order of first appearance.
    pub counts: Vec<(RecordTag, u64)>,
    /// Smallest and largest time stamp, as written; `None` without records.
    pub span: Option<(u64, u64)>,
    /// Loads, in file order.
    pub codes: Vec<LoadedCode>,
    /// Debug records, of inline dialects too, in file order.
    pub debug_records: Vec<DebugRecord>,
    /// Offset and index of each SAMPLY_EMBEDDED_SOURCE_FILE.
    pub embedded_files: Vec<(u64, u64)>,
    /// Unwinding records that contain frames, in file order.
    pub unwind_records: Vec<UnwindRecord>,
    /// Moves, in file order.
    pub moves: Vec<CodeMove>,
    /// Bytes that are not records, in file order.
    pub lost: Vec<LostBytes>,
    /// Functions and tiers.
    pub functions: FunctionTable,
}

impl DumpIndex {
    /// The JIT_CODE_DEBUG_INFO of a piece of code, its entries undecoded.
    #[must_use]
    pub fn debug_info<'a>(
        &self,
        data: &'a [u8],
        code: &LoadedCode,
    ) -> Option<(DebugRecord, DebugInfoRecord<'a>)> {
        let debug = *self.debug_records.get(code.debug as usize)?;
        let record = self.record_at(data, debug.offset, debug.index)?;
        Some((debug, DebugInfoRecord::decode(record.cursor()).ok()?))
    }

    /// The record at an offset that the index contains.
    #[must_use]
    pub fn record_at<'a>(&self, data: &'a [u8], offset: u64, index: u64) -> Option<RawRecord<'a>> {
        match Reader::new(data, self.endian, offset, index).next()? {
            ReaderStep::Record(record) => Some(record),
            _ => None,
        }
    }

    /// Whether the debug entries of a piece of code contain offsets in its bytecode instead of addresses. V8 writes the source
    /// position table of the bytecode for code of its baseline compiler.
    #[must_use]
    pub fn has_bytecode_offsets(&self, code: &LoadedCode) -> bool {
        self.producer == Producer::V8 && self.functions.tier(code.name.tier) == Some("sparkplug")
    }

    /// The facts that decoding the lines of a piece of code needs.
    #[must_use]
    pub fn described_code<'a>(&'a self, code: &LoadedCode) -> DescribedCode<'a> {
        DescribedCode {
            start: code.start,
            size: code.size,
            skew: self.skew,
            may_be_corrupt: self.producer == Producer::V8,
            path: self.functions.get(code.name.function).and_then(Function::path).map(str::as_bytes),
        }
    }
}
