//! A JITDUMP file that may still be written.

use std::path::Path;
use std::sync::Arc;

use perfuse_addresses::code_map::{CodeHit, CodeMap, Moves, PlacedInTime};
use perfuse_addresses::inlined;
use perfuse_jitdump::consts::{JITDUMP_FLAGS_ARCH_TIMESTAMP, RecordTag};
use perfuse_jitdump::functions::Function;
use perfuse_jitdump::growing::{GrowingIndex, LifeChanges, Rest};
use perfuse_jitdump::index::{DumpIndex, LoadedCode};

use crate::bytes::GrowingBytes;
use crate::error::Error;
use crate::kept_lines::{KeptLines, LinePosition};

/// A time after all records: what is at an address now.
pub const LATEST: u64 = u64::MAX;

/// Bytes that are read before the pages that were read are returned to the operating system.
const WINDOW_BYTES: usize = 32 << 20;

/// Bytes at the start of a dump that differ from one run to the next: the header, and the prefix of the first record.
const START_BYTES: usize = 56;

/// A JITDUMP file, or its bytes so far.
#[derive(Debug)]
pub struct GrowingDump {
    bytes: GrowingBytes,
    index: GrowingIndex,
    codes: CodeMap,
    lines: KeptLines,
    num_records: u64,
    /// The first bytes that were read.
    start: Vec<u8>,
}

/// What became known in one step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpProgress {
    /// Number of records that were added.
    pub num_records: u64,
    /// Number of pieces of code that were added.
    pub num_code: u64,
}

/// Facts about a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpFacts {
    /// Process id in the header: as the process itself knew it.
    pub pid: u32,
    /// ELF `e_machine` of the code; 0 where the producer does not write it.
    pub elf_machine: u32,
    /// Whether time stamps are the processor's counter; else they are nanoseconds of CLOCK_MONOTONIC.
    pub has_arch_timestamps: bool,
    /// Program that wrote the dump, as far as its first records show.
    pub producer: String,
    /// Number of records so far.
    pub num_records: u64,
    /// Number of pieces of code so far.
    pub num_code: u64,
    /// Number of bytes that belong to those records: the bytes after them are of a record that is not complete, or damaged.
    pub read_bytes: u64,
    /// Number of places with bytes that are not records.
    pub num_damaged: u64,
    /// Whether the writer closed the dump.
    pub is_closed: bool,
}

/// What code is, according to its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CodeKind {
    /// A compiled function.
    Jit,
    /// A stub, thunk, builtin or handler.
    Stub,
}

/// A piece of code, from one JIT_CODE_LOAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Code<'a> {
    /// Its number in the dump, from 0.
    pub id: u32,
    /// Name of the function, without tier marks and position.
    pub name: &'a str,
    /// Name as written.
    pub linkage_name: &'a str,
    /// Source file of the function, where its name or a debug record has it.
    pub path: Option<&'a str>,
    /// Line at which the function starts, from 1.
    pub line: Option<u32>,
    /// Column at which the function starts, from 1.
    pub column: Option<u32>,
    /// Tier of the compiler, as the runtime names it.
    pub tier: Option<&'a str>,
    /// What it is.
    pub kind: CodeKind,
    /// Address at which it was created.
    pub start_address: u64,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Time stamp of its record.
    pub created: u64,
    /// Time stamp at which other code replaced it.
    pub replaced: Option<u64>,
    /// Process id in its record.
    pub pid: u32,
    /// Thread that compiled it.
    pub tid: u32,
    /// The writer's number for it.
    pub code_index: u64,
    /// Offset of its record in the dump.
    pub record_offset: u64,
}

/// A function at an address: the compiled one, or one that is inlined in it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeFrame<'a> {
    /// Name of the function.
    pub function: &'a str,
    /// Name as written.
    pub linkage_name: &'a str,
    /// Source file of the position.
    pub path: Option<Arc<str>>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Column, from 1.
    pub column: Option<u32>,
    /// Whether it is inlined in the next frame.
    pub is_inlined: bool,
}

/// What is at an address at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeLocation<'a> {
    /// The code.
    pub code: Code<'a>,
    /// Bytes from the start of the code, wherever it was moved to.
    pub code_offset: u64,
    /// The functions at the address, innermost first; the last one is that of the code.
    pub frames: Vec<CodeFrame<'a>>,
}

impl Default for GrowingDump {
    fn default() -> Self {
        Self::new()
    }
}

impl GrowingDump {
    /// A dump without bytes, for [`push`](Self::push). All bytes that are pushed stay in memory.
    #[must_use]
    pub fn new() -> Self {
        Self::of(GrowingBytes::Pushed(Vec::new()), "")
    }

    /// A file of which the records so far are read; [`poll`](Self::poll) reads what is added later. A file that is shorter than
    /// a header is one that its writer has just created.
    ///
    /// # Errors
    /// [`Error::Io`], also where the path is not that of a regular file; [`Error::Format`] where it is not a JITDUMP file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let mut dump = Self::of(GrowingBytes::open(path)?, &path.to_string_lossy());
        dump.advance(false)?;
        Ok(dump)
    }

    fn of(bytes: GrowingBytes, path: &str) -> Self {
        Self {
            bytes,
            index: GrowingIndex::new(path),
            codes: CodeMap::default(),
            lines: KeptLines::default(),
            num_records: 0,
            start: Vec::new(),
        }
    }

    /// Appends bytes, and reads the records that they complete.
    ///
    /// # Errors
    /// [`Error::Format`] where the bytes do not begin as a JITDUMP file; [`Error::IsFile`] for a dump that was opened by its path.
    pub fn push(&mut self, bytes: &[u8]) -> Result<DumpProgress, Error> {
        match &mut self.bytes {
            GrowingBytes::Pushed(all) => all.extend_from_slice(bytes),
            GrowingBytes::File(..) => return Err(Error::IsFile),
        }
        self.advance(false)
    }

    /// Reads what was appended to the file since the last call.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`Error::Cut`].
    pub fn poll(&mut self) -> Result<DumpProgress, Error> {
        self.refresh()?;
        self.advance(false)
    }

    /// Reads the rest when the writer has ended: after it, an incomplete or damaged record is not waited for any longer.
    ///
    /// # Errors
    /// As [`poll`](Self::poll); [`Error::Format`] too where there is no complete header.
    pub fn finish(&mut self) -> Result<DumpProgress, Error> {
        self.refresh()?;
        let before = self.advance(false)?;
        let rest = self.advance(true)?;
        Ok(DumpProgress {
            num_records: before.num_records.saturating_add(rest.num_records),
            num_code: before.num_code.saturating_add(rest.num_code),
        })
    }

    fn refresh(&mut self) -> Result<(), Error> {
        if self.is_written_anew() {
            return Err(Error::Cut);
        }
        self.bytes.refresh()
    }

    /// Whether other bytes are where the first ones were: a writer with the same process id, as in a container that is started
    /// again, has replaced the content.
    fn is_written_anew(&self) -> bool {
        !self.bytes.starts_with(&self.start)
    }

    fn advance(&mut self, is_whole: bool) -> Result<DumpProgress, Error> {
        let mut progress = DumpProgress::default();
        let all = self.bytes.len();
        let mut released = usize::try_from(self.index.offset()).unwrap_or(all);
        loop {
            let end = released.saturating_add(WINDOW_BYTES).min(all);
            let is_last = end == all;
            let rest = match (is_last, is_whole) {
                (false, _) => Rest::Follows,
                (true, false) => Rest::MayFollow,
                (true, true) => Rest::Nothing,
            };
            let data = self.bytes.get(..end).unwrap_or_default();
            let num_before = self.index.index().map_or(0, |index| index.codes.len());
            let revision = self.index.line_revision();
            if let Some(advanced) = self.index.advance(data, rest)? {
                progress.num_records = progress.num_records.saturating_add(advanced.num_records);
                if revision != self.index.line_revision() {
                    self.lines.clear();
                }
                let codes = self.index.index().map_or(0, |index| index.codes.len());
                progress.num_code = progress.num_code.saturating_add(codes.saturating_sub(num_before) as u64);
                self.update_codes(&advanced.life);
            }
            self.bytes.release(released..end);
            if is_last {
                let read = usize::try_from(self.index.offset()).unwrap_or(all).min(START_BYTES);
                if read > self.start.len() {
                    self.start = self.bytes.get(..read).unwrap_or_default().to_vec();
                }
                self.num_records = self.num_records.saturating_add(progress.num_records);
                return Ok(progress);
            }
            released = end;
        }
    }

    fn update_codes(&mut self, life: &LifeChanges) {
        let Some(index) = self.index.index() else { return };
        let place = |(id, code): (u32, &LoadedCode)| PlacedInTime {
            code_object_id: id,
            process_id: code.pid,
            start_address: code.start,
            size_bytes: code.size,
            from_ns: signed(code.timestamp),
            until_ns: if code.retired == u64::MAX { i64::MAX } else { signed(code.retired) },
        };
        match life {
            LifeChanges::Added { first, overwritten } if index.moves.is_empty() => {
                for &id in overwritten {
                    if let Some(code) = index.codes.get(id as usize) {
                        let placed = place((id, code));
                        self.codes.end(&placed, placed.until_ns);
                    }
                }
                let added = index.codes.get(*first as usize..).unwrap_or_default();
                self.codes.extend_apart((*first..).zip(added).map(place));
            }
            _ => {
                let mut moves = Moves::default();
                for moved in &index.moves {
                    moves.entry(moved.code).or_default().push((signed(moved.timestamp), moved.new));
                }
                moves.values_mut().for_each(|moves| moves.sort_by_key(|(at, _)| *at));
                self.codes = CodeMap::default();
                self.codes.extend((0u32..).zip(&index.codes).map(place), &moves);
            }
        }
    }

    /// Facts about the dump; `None` before its header is complete.
    #[must_use]
    pub fn facts(&self) -> Option<DumpFacts> {
        let index = self.index.index()?;
        let closes = |(tag, _): &(RecordTag, u64)| *tag == RecordTag::JIT_CODE_CLOSE;
        Some(DumpFacts {
            pid: index.header.pid,
            elf_machine: index.header.elf_mach,
            has_arch_timestamps: index.header.flags == JITDUMP_FLAGS_ARCH_TIMESTAMP,
            producer: index.producer.to_string(),
            num_records: self.num_records,
            num_code: index.codes.len() as u64,
            read_bytes: self.index.offset(),
            num_damaged: index.lost.len() as u64,
            is_closed: index.counts.iter().any(closes),
        })
    }

    /// The code at an address at a time, given as a time stamp of the dump's clock, or [`LATEST`]. Subtract 1 from a return
    /// address: it may belong to the next function.
    ///
    /// The process is that of the header, or of the first code where the header's has none.
    #[must_use]
    pub fn find_code(&self, at: u64, address: u64) -> Option<(Code<'_>, u64)> {
        let index = self.index.index()?;
        let first = index.codes.first()?.pid;
        let found = self.hit(index.header.pid, at, address).or_else(|| self.hit(first, at, address))?;
        Some((self.code(index, found.code_object_id)?, found.code_offset))
    }

    /// The same in a process of a dump with code of several, as of a program that forked.
    #[must_use]
    pub fn find_code_of(&self, pid: u32, at: u64, address: u64) -> Option<(Code<'_>, u64)> {
        let found = self.hit(pid, at, address)?;
        Some((self.code(self.index.index()?, found.code_object_id)?, found.code_offset))
    }

    fn hit(&self, pid: u32, at: u64, address: u64) -> Option<CodeHit> {
        self.codes.find(pid, address, signed(at))
    }

    /// What is at an address at a time, with lines and inlined functions; see [`find_code`](Self::find_code).
    #[must_use]
    pub fn find(&self, at: u64, address: u64) -> Option<CodeLocation<'_>> {
        let (code, code_offset) = self.find_code(at, address)?;
        Some(CodeLocation { code, code_offset, frames: self.frames(code.id, code_offset) })
    }

    /// The same in a process of a dump with code of several.
    #[must_use]
    pub fn find_of(&self, pid: u32, at: u64, address: u64) -> Option<CodeLocation<'_>> {
        let (code, code_offset) = self.find_code_of(pid, at, address)?;
        Some(CodeLocation { code, code_offset, frames: self.frames(code.id, code_offset) })
    }

    /// The functions at an offset of a piece of code, innermost first.
    #[must_use]
    pub fn frames(&self, code_id: u32, code_offset: u64) -> Vec<CodeFrame<'_>> {
        let Some(index) = self.index.index() else { return Vec::new() };
        let Some(code) = index.codes.get(code_id as usize) else { return Vec::new() };
        let rows = self.lines.of(&self.bytes, index, code_id, code);
        let frames = inlined::frames(code.name.function, rows.calls(code_offset), rows.position(code_offset));
        let frame = |(depth, (function, position)): (usize, (u32, LinePosition))| {
            let function: &Function = index.functions.get(function)?;
            let LinePosition { path, line, column } = position;
            Some(CodeFrame {
                function: function.name(),
                linkage_name: &function.linkage_name,
                path,
                line,
                column,
                is_inlined: depth > 0,
            })
        };
        frames.into_iter().enumerate().rev().filter_map(frame).collect()
    }

    /// All code so far, in the order of its records.
    pub fn code_objects(&self) -> impl Iterator<Item = Code<'_>> {
        let index = self.index.index();
        let num = index.map_or(0, |index| index.codes.len() as u32);
        (0..num).filter_map(move |id| self.code(index?, id))
    }

    fn code<'a>(&'a self, index: &'a DumpIndex, id: u32) -> Option<Code<'a>> {
        let code = index.codes.get(id as usize)?;
        let function = index.functions.get(code.name.function)?;
        Some(Code {
            id,
            name: function.name(),
            linkage_name: &function.linkage_name,
            path: function.path(),
            line: function.line,
            column: function.column,
            tier: index.functions.tier(code.name.tier),
            kind: if code.name.stub { CodeKind::Stub } else { CodeKind::Jit },
            start_address: code.start,
            size_bytes: code.size,
            created: code.timestamp,
            replaced: (code.retired != u64::MAX).then_some(code.retired),
            pid: code.pid,
            tid: code.tid,
            code_index: code.code_index,
            record_offset: code.offset,
        })
    }

    /// Whether the file became shorter or was written anew since it was opened, so that what was read of it may be wrong.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.bytes.is_cut() || self.is_written_anew()
    }
}

/// A time stamp as the code map has it, where the largest number is "never".
fn signed(timestamp: u64) -> i64 {
    i64::try_from(timestamp).unwrap_or(i64::MAX).min(i64::MAX - 1)
}
