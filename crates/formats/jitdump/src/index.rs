//! One pass over a dump: what code there was, where, when, and which debug records are about it.

mod pass;
mod retire;
mod skew;

use perfuse_wire::Endian;

use super::consts::RecordTag;
use super::functions::{Function, Functions, Named};
use super::layout::{FileHeader, RecordPrefix};
use super::lines::Target;
use super::producer::Producer;
use super::reader::{self, Reader, Step};
use super::records::{DebugInfo, RawRecord};
use pass::Pass;
use perfuse_recording::Source;

/// No partner.
pub const NONE: u32 = u32::MAX;

/// A JIT_CODE_LOAD, as far as look-ups need it.
#[derive(Clone, Copy, Debug)]
pub struct Code {
    /// Offset of the record.
    pub offset: u64,
    /// Index of the record.
    pub index: u64,
    /// Time stamp, as written.
    pub timestamp: u64,
    /// When other code took its place, as written; `u64::MAX` for never.
    pub retired: u64,
    /// Address it was loaded at.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// The writer's number.
    pub code_index: u64,
    /// Process, as the process sees itself.
    pub pid: u32,
    /// Thread that made it.
    pub tid: u32,
    /// Name, function and tier.
    pub named: Named,
    /// Index of its debug record, or `NONE`.
    pub debug: u32,
    /// Index of its inline-aware debug record, or `NONE`.
    pub inline: u32,
    /// Index of the unwinding record before it, or `NONE`.
    pub unwind: u32,
}

/// A JIT_CODE_UNWINDING_INFO with more than a header.
#[derive(Clone, Copy, Debug)]
pub struct Unwind {
    /// Offset of the record.
    pub offset: u64,
    /// Index of the record.
    pub index: u64,
    /// The first code behind it, or `NONE`.
    pub code: u32,
}

/// A record that tells about code: JIT_CODE_DEBUG_INFO or one of the inline dialects.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Offset of the record.
    pub offset: u64,
    /// Index of the record.
    pub index: u64,
    /// Code it says it is about; 0 where the dialect has no address.
    pub code_addr: u64,
    /// Index of the code it was paired with, or `NONE`.
    pub code: u32,
    /// Whether it is of an inline dialect.
    pub inline: bool,
    /// How it was paired.
    pub pairing: Pairing,
}

/// How a debug record found its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// The next load, at the same address: the specification's order.
    #[default]
    Next,
    /// A later load, at the same address: written in batches.
    Address,
    /// The next load, at another address.
    OrderOnly,
    /// An earlier load, at the same address.
    Before,
    /// None.
    Orphan,
    /// A later record for the same code came before the load.
    Replaced,
}

/// A JIT_CODE_MOVE that could be followed.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// Offset of the record.
    pub offset: u64,
    /// Time stamp, as written.
    pub timestamp: u64,
    /// Index of the code that moved.
    pub code: u32,
    /// Address before.
    pub old: u64,
    /// Address after.
    pub new: u64,
}

/// Bytes that were no record.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Where they begin.
    pub offset: u64,
    /// How many; 0 where a record's size is a lie and reading went on inside it.
    pub len: u64,
    /// The prefix that could not be believed.
    pub prefix: Option<RecordPrefix>,
    /// Whether nothing readable follows.
    pub at_end: bool,
    /// Index of the record that would stand there.
    pub index: u64,
}

/// What one pass over a dump finds.
#[derive(Debug)]
pub struct Index {
    /// Byte order.
    pub endian: Endian,
    /// The header.
    pub header: FileHeader,
    /// Offset of the first record.
    pub first_record: u64,
    /// Further headers in the middle of the file.
    pub later_headers: Vec<(u64, FileHeader)>,
    /// Who wrote it.
    pub producer: Producer,
    /// What the producer adds to every debug entry's address.
    pub skew: u64,
    /// Records by kind, in order of first appearance.
    pub counts: Vec<(RecordTag, u64)>,
    /// First and last time stamp.
    pub span: Option<(u64, u64)>,
    /// Loads, in file order.
    pub codes: Vec<Code>,
    /// Debug and inline records, in file order.
    pub abouts: Vec<About>,
    /// Offset and index of records that hold a source text.
    pub embedded: Vec<(u64, u64)>,
    /// Unwinding records that have frames, in file order.
    pub unwinds: Vec<Unwind>,
    /// Moves, in file order.
    pub moves: Vec<Moved>,
    /// Records that are not whole or not of the format.
    pub losses: Vec<Loss>,
    /// Functions by name.
    pub functions: Functions,
}

/// Pages behind a pass are given back this often.
pub const RELEASE: u64 = 32 << 20;

impl Index {
    /// Reads a source whose header was found good.
    #[must_use]
    pub fn build(source: &Source, start: reader::Start) -> Self {
        let mut pass = Pass::new(start);
        let mut released = 0u64;
        source.prepare(0..RELEASE as usize);
        let mut reader = Reader::new(source, start.endian, start.first_record, 0);
        while let Some(step) = reader.next() {
            match step {
                Step::Record(record) => pass.record(&record),
                Step::Header(offset, header) => pass.index.later_headers.push((offset, header)),
                Step::Lost { offset, len, prefix, at_end } => {
                    pass.index.losses.push(Loss { offset, len, prefix, at_end, index: reader.index() });
                }
            }
            if reader.offset().saturating_sub(released) > RELEASE {
                source.release(released as usize..reader.offset() as usize);
                released = reader.offset();
                source.prepare(released as usize..released.saturating_add(RELEASE) as usize);
            }
        }
        source.release(released as usize..source.len());
        pass.finish(source)
    }

    /// The debug record of a piece of code, decoded as far as its fixed fields.
    #[must_use]
    pub fn debug_info<'a>(&self, data: &'a [u8], code: &Code) -> Option<(About, DebugInfo<'a>)> {
        let about = *self.abouts.get(code.debug as usize)?;
        let record = self.record_at(data, about.offset, about.index)?;
        Some((about, DebugInfo::decode(record.cursor()).ok()?))
    }

    /// The record at an offset the pass has seen.
    #[must_use]
    pub fn record_at<'a>(&self, data: &'a [u8], offset: u64, index: u64) -> Option<RawRecord<'a>> {
        match Reader::new(data, self.endian, offset, index).next()? {
            Step::Record(record) => Some(record),
            _ => None,
        }
    }

    /// How the lines of a piece of code are to be read.
    #[must_use]
    pub fn target<'a>(&'a self, code: &Code) -> Target<'a> {
        Target {
            start: code.start,
            size: code.size,
            skew: self.skew,
            may_be_corrupt: self.producer == Producer::V8,
            path: self.functions.get(code.named.function).and_then(Function::path).map(str::as_bytes),
        }
    }
}
