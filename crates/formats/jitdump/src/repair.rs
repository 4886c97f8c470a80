//! The longest valid dump that can be saved: one that perf accepts and shows right.
//!
//! Every rule of [`rules`](super::rules) whose action says what `perfuse repair` does is done here, and each change is told by
//! that rule's code. Records that need nothing are copied byte for byte.

use std::collections::HashSet;
use std::io::{self, Write};

use perfuse_wire::{Diagnostics, Endian, Rule};
use rustc_hash::FxHashMap;

use super::consts::{JITDUMP_FLAGS_ARCH_TIMESTAMP, MAGIC, RecordTag};
use super::index::{Code, Index, NONE, Pairing};
use super::layout::{FileHeader, Move};
use super::lines::{self, Habits, LineRow};
use super::reader::{Reader, Step};
use super::records::{DebugEntry, DebugInfo, Load, RawRecord, UnwindOrder, UnwindingInfo};
use super::rules::*;
use super::{JitDump, encode, layout};
use perfuse_recording::{Change, Repaired};
use perfuse_recording::{Recording, machine_endian};

/// Writes the repaired dump.
///
/// # Errors
/// What the output says, or a record that has become larger than the format allows.
pub fn repair(dump: &JitDump, out: &mut dyn Write) -> io::Result<Repaired> {
    let index = dump.index();
    let endian = machine_endian(index.header.elf_mach).unwrap_or(index.endian);
    // Only the part behind the last header is of the process whose pid the file has.
    let begin = index.later_headers.last().map_or(0, |(offset, _)| *offset);
    let mut repair = Repair {
        index,
        data: dump.source(),
        endian,
        begin,
        renumber: renumber(index, begin),
        by_load: index.codes.iter().zip(0u32..).map(|(code, id)| (code.offset, id)).collect(),
        buffer: Vec::new(),
        close: None,
        done: Repaired::default(),
    };
    repair.header();
    let mut released = 0;
    let mut reader = Reader::new(dump.source(), index.endian, index.first_record, 0);
    while let Some(step) = reader.next() {
        match step {
            Step::Record(record) => repair.record(&record)?,
            Step::Header(offset, _) => {
                repair.change(&SECOND_HEADER, offset, "what lies before it was left out")
            }
            Step::Lost { .. } => {}
        }
        out.write_all(&repair.buffer)?;
        repair.buffer.clear();
        if reader.offset().saturating_sub(released) > super::index::RELEASE {
            dump.source().release(released as usize..reader.offset() as usize);
            released = reader.offset();
        }
    }
    repair.end()?;
    out.write_all(&repair.buffer)?;
    let mut done = repair.done;
    done.lost = losses(dump);
    Ok(done)
}

/// What could not be saved: departures that lost data.
fn losses(dump: &JitDump) -> Vec<perfuse_wire::Diagnostic> {
    let mut sink = Diagnostics::default();
    dump.check(&mut sink);
    let lost: [&Rule; 6] = [&TRUNCATED, &LOST, &RECORD_SIZE, &SHORT_RECORD, &ENTRIES_MISSING, &LOST_NAMES];
    sink.into_rows().into_iter().filter(|row| lost.contains(&row.rule)).collect()
}

/// Whether code has to be numbered anew: an index that two pieces of code have.
fn renumber(index: &Index, begin: u64) -> bool {
    let mut seen = HashSet::new();
    !index.codes.iter().filter(|code| code.offset >= begin).all(|code| seen.insert(code.code_index))
}

struct Repair<'a> {
    index: &'a Index,
    data: &'a [u8],
    endian: Endian,
    begin: u64,
    renumber: bool,
    by_load: FxHashMap<u64, u32>,
    buffer: Vec<u8>,
    /// Time of the JIT_CODE_CLOSE to be written last.
    close: Option<u64>,
    done: Repaired,
}

impl<'a> Repair<'a> {
    fn change(&mut self, rule: &'static Rule, offset: u64, message: impl Into<String>) {
        self.done.changes.push(Change { rule, offset, message: message.into() });
    }

    fn header(&mut self) {
        let mut header = self.index.later_headers.last().map_or(self.index.header, |(_, header)| *header);
        if header.version != 1 {
            self.change(&VERSION, 4, format!("version {} is 1", header.version));
        }
        if u64::from(header.total_size) != FileHeader::SIZE {
            self.change(&HEADER_SIZE, 8, format!("header size {} is 40", header.total_size));
        }
        if header.flags & !JITDUMP_FLAGS_ARCH_TIMESTAMP != 0 {
            // Garbage says nothing about the clock either.
            self.change(&RESERVED_FLAGS, 32, format!("flags {:#x} are 0", header.flags));
            header.flags = 0;
        }
        header.version = 1;
        header.total_size = FileHeader::SIZE as u32;
        header.magic = MAGIC;
        header.write(&mut self.buffer, self.endian);
    }

    fn record(&mut self, record: &RawRecord<'a>) -> io::Result<()> {
        self.done.records_in = self.done.records_in.saturating_add(1);
        if record.offset < self.begin {
            return Ok(());
        }
        match record.tag() {
            RecordTag::JIT_CODE_LOAD => self.load(record),
            RecordTag::JIT_CODE_MOVE => self.moved(record),
            RecordTag::JIT_CODE_DEBUG_INFO => self.debug_record(record),
            RecordTag::JIT_CODE_UNWINDING_INFO => self.unwinding(record),
            RecordTag::JIT_CODE_CLOSE => {
                let at = record.offset.saturating_add(u64::from(record.prefix.total_size));
                if at < self.data.len() as u64 {
                    self.change(&AFTER_CLOSE, record.offset, "moved to the end");
                }
                self.close = Some(record.prefix.timestamp);
                Ok(())
            }
            _ => self.copy(record),
        }
    }

    fn copy(&mut self, record: &RawRecord<'_>) -> io::Result<()> {
        self.write(record.tag(), record.prefix.timestamp, record.body)
    }

    fn write(&mut self, tag: RecordTag, timestamp: u64, body: &[u8]) -> io::Result<()> {
        self.done.records_out = self.done.records_out.saturating_add(1);
        encode::record(tag, timestamp, body, self.endian, &mut self.buffer).map_err(io::Error::other)
    }

    fn load(&mut self, record: &RawRecord<'a>) -> io::Result<()> {
        let id = self.by_load.get(&record.offset).copied();
        let Some((id, code)) = id.and_then(|id| Some((id, *self.index.codes.get(id as usize)?))) else {
            self.change(&SHORT_RECORD, record.offset, "left out");
            return Ok(());
        };
        self.debug_of(&code)?;
        let Ok(mut load) = Load::decode(record.cursor()) else { return Ok(()) };
        if !load.name_terminated {
            self.change(&NAME_END, record.offset, "the name was ended");
            load.name_terminated = true;
        }
        if load.fixed.code_size != load.code.len() as u64 {
            let message = format!("code_size {} is {}", load.fixed.code_size, load.code.len());
            self.change(&CODE_SIZE, record.offset, message);
            load.fixed.code_size = load.code.len() as u64;
        }
        if !load.padding.is_empty() {
            self.change(&LOAD_PADDING, record.offset, format!("{} bytes removed", load.padding.len()));
            load.padding = &[];
        }
        if load.wide_tid {
            self.change(&WIDE_TID, record.offset, "written with 32 bits");
            load.wide_tid = false;
        }
        if self.renumber {
            self.change(&CODE_INDEX, record.offset, format!("code_index {} is {id}", load.fixed.code_index));
            load.fixed.code_index = u64::from(id);
        }
        let body = load.encode(self.endian);
        self.write(record.tag(), record.prefix.timestamp, &body)
    }

    fn moved(&mut self, record: &RawRecord<'_>) -> io::Result<()> {
        let followed = self.index.moves.binary_search_by_key(&record.offset, |moved| moved.offset);
        let moved = followed.ok().and_then(|at| self.index.moves.get(at));
        match (moved, Move::read(&mut record.cursor())) {
            (Some(moved), Ok(mut fixed)) => {
                if self.renumber {
                    fixed.code_index = u64::from(moved.code);
                }
                let mut body = Vec::new();
                fixed.write(&mut body, self.endian);
                self.write(record.tag(), record.prefix.timestamp, &body)
            }
            (_, Err(_)) => {
                self.change(&SHORT_RECORD, record.offset, "left out");
                Ok(())
            }
            (None, Ok(_)) => {
                self.change(&MOVE_OF_NOTHING, record.offset, "left out");
                Ok(())
            }
        }
    }

    /// Debug records are written with their code; those of none are left out.
    fn debug_record(&mut self, record: &RawRecord<'_>) -> io::Result<()> {
        let abouts = &self.index.abouts;
        let about = abouts
            .binary_search_by_key(&record.offset, |about| about.offset)
            .ok()
            .and_then(|at| abouts.get(at));
        match about.map(|about| about.pairing) {
            Some(Pairing::Next) => {}
            Some(Pairing::Address | Pairing::OrderOnly) => {
                self.change(&BATCHED, record.offset, "put before its code")
            }
            Some(Pairing::Before) => self.change(&DEBUG_AFTER, record.offset, "put before its code"),
            Some(Pairing::Orphan) => self.change(&DEBUG_ORPHAN, record.offset, "left out"),
            Some(Pairing::Replaced) => self.change(&DEBUG_REPLACED, record.offset, "left out"),
            None => self.change(&SHORT_RECORD, record.offset, "left out"),
        }
        Ok(())
    }

    fn debug_of(&mut self, code: &Code) -> io::Result<()> {
        if code.debug == NONE {
            return Ok(());
        }
        let index = self.index;
        let Some((about, info)) = index.debug_info(self.data, code) else { return Ok(()) };
        let Some(record) = index.record_at(self.data, about.offset, about.index) else { return Ok(()) };
        let mut rows = Vec::new();
        let target = index.target(code);
        let habits = lines::decode(&info, &target, &mut rows);
        let body = if self.needs_rewriting(&habits) || about.code_addr != code.start {
            self.tell_lines(about.offset, &habits);
            self.rewritten(code, &rows)?
        } else if self.endian == index.endian {
            record.body.to_vec()
        } else {
            DebugInfo::encode(&info, self.endian)
        };
        self.write(RecordTag::JIT_CODE_DEBUG_INFO, record.prefix.timestamp, &body)
    }

    fn needs_rewriting(&self, habits: &Habits) -> bool {
        self.index.skew > 0
            || habits.restored > 0
            || habits.unrestored > 0
            || habits.constant_stride
            || habits.missing > 0
            || habits.unsorted
            || habits.past > 0
            || habits.padding > 7
    }

    fn rewritten(&self, code: &Code, rows: &[LineRow<'_>]) -> io::Result<Vec<u8>> {
        let entries: Vec<DebugEntry<'_>> = rows
            .iter()
            .map(|row| DebugEntry {
                fixed: layout::DebugEntry {
                    code_addr: code.start.wrapping_add(row.code_offset),
                    line: row.line,
                    discrim: row.discrim,
                },
                name: row.name,
            })
            .collect();
        encode::debug_info(code.start, &entries, false, self.endian).map_err(io::Error::other)
    }

    fn tell_lines(&mut self, offset: u64, habits: &Habits) {
        if self.index.skew > 0 {
            let skew = self.index.skew;
            self.change(&SKEW, offset, format!("{skew:#x} taken off {} addresses", habits.entries));
        }
        if habits.restored > 0 {
            self.change(&CORRUPT_NAMES, offset, format!("{} names restored", habits.restored));
        }
        if habits.missing > 0 {
            self.change(&ENTRIES_MISSING, offset, format!("nr_entry is {}", habits.entries));
        }
        if habits.unsorted {
            self.change(&UNSORTED, offset, "sorted by address");
        }
        if habits.past > 0 {
            self.change(&PAST_CODE, offset, format!("{} entries left out", habits.past));
        }
    }

    fn unwinding(&mut self, record: &RawRecord<'_>) -> io::Result<()> {
        let Ok(mut info) = UnwindingInfo::decode(record.cursor()) else {
            self.change(&SHORT_RECORD, record.offset, "left out");
            return Ok(());
        };
        let fixed = info.fixed;
        if (info.data.len() as u64) < fixed.unwind_data_size
            || fixed.eh_frame_hdr_size > fixed.unwind_data_size
        {
            self.change(&UNWIND_SIZE, record.offset, "left out");
            return Ok(());
        }
        let (header, frame) = info.parts();
        let reordered = [frame, header].concat();
        if info.order() == UnwindOrder::HeaderFirst && !frame.is_empty() {
            self.change(&HEADER_FIRST, record.offset, ".eh_frame put first");
            info.data = &reordered;
        }
        let body = info.encode(self.endian);
        self.write(record.tag(), record.prefix.timestamp, &body)
    }

    fn end(&mut self) -> io::Result<()> {
        for loss in &self.index.losses {
            let rule: &'static Rule = match loss.prefix {
                Some(prefix) if prefix.total_size < 16 => &RECORD_SIZE,
                _ if loss.at_end => &TRUNCATED,
                _ => &LOST,
            };
            let message = match loss.len {
                0 => "the record ends where the next one begins".to_owned(),
                len => format!("{len} bytes left out"),
            };
            self.done.changes.push(Change { rule, offset: loss.offset, message });
        }
        match self.close {
            Some(timestamp) => self.write(RecordTag::JIT_CODE_CLOSE, timestamp, &[]),
            None => Ok(()),
        }
    }
}
