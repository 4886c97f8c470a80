//! Repairs a dump: writes the longest valid dump that can be saved, which perf accepts and shows correctly.
//!
//! Implements the repairs that the actions in [`rules`](super::rules) describe, and reports each change with the code of its
//! rule. Records without a departure are copied byte for byte.

use std::collections::HashSet;
use std::io::{self, Write};

use perfuse_wire::{Diagnostics, Endian, Rule};
use rustc_hash::FxHashMap;

use super::consts::{JITDUMP_FLAGS_ARCH_TIMESTAMP, MAGIC, RecordTag};
use super::dump::JitDump;
use super::encode;
use super::functions::NO_INDEX;
use super::index::{CodeMove, DumpIndex, LoadedCode, Pairing};
use super::layout::{self, FileHeader, Move};
use super::lines::{self, DebugLine, LineFindings};
use super::reader::{RawRecord, Reader, ReaderStep};
use super::records::{DebugInfoEntry, LoadRecord, UnwindOrder, UnwindingInfoRecord};
use super::rules::*;
use super::skew::{RECORDS_OF_SKEW, SkewEvidence};
use perfuse_recording::{Change, PassPages, Repaired, Source};

/// Writes the repaired dump.
///
/// # Errors
/// When the output cannot be written, or a repaired record is larger than the format allows.
pub fn repair(dump: &JitDump, out: &mut dyn Write) -> io::Result<Repaired> {
    let index = dump.index();
    // Only records after the last header belong to the process in that header.
    let begin = index.later_headers.last().map_or(0, |(offset, _)| *offset);
    let mut repair = Repairer {
        index,
        data: dump.bytes(),
        endian: index.endian,
        begin,
        renumber: has_duplicate_indices(index, begin),
        by_load: index.codes.iter().zip(0u32..).map(|(code, id)| (code.offset, id)).collect(),
        buffer: Vec::new(),
        skew_mark: None,
        close: None,
        done: Repaired::default(),
    };
    repair.skew_mark = repair.code_to_mark();
    repair.repair_header();
    let mut pages = PassPages::default();
    let mut reader = Reader::new(dump.bytes(), index.endian, index.first_record, 0);
    while let Some(step) = reader.next() {
        match step {
            ReaderStep::Record(record) => repair.repair_record(&record)?,
            ReaderStep::Header(offset, _) => {
                repair.change(&SECOND_HEADER, offset, "everything before it was left out")
            }
            ReaderStep::Lost { .. } => {}
        }
        out.write_all(&repair.buffer)?;
        repair.buffer.clear();
        pages.release_before(dump.bytes(), reader.offset());
    }
    repair.finish()?;
    out.write_all(&repair.buffer)?;
    let mut done = repair.done;
    done.lost = lost_data(dump);
    Ok(done)
}

/// The departures that lost data, which a repair cannot restore.
fn lost_data(dump: &JitDump) -> Vec<perfuse_wire::Diagnostic> {
    let mut sink = Diagnostics::default();
    super::check::check(dump, &mut sink);
    let lost: [&Rule; 6] = [&TRUNCATED, &LOST, &RECORD_SIZE, &SHORT_RECORD, &ENTRIES_MISSING, &LOST_NAMES];
    sink.into_rows().into_iter().filter(|row| lost.contains(&row.rule)).collect()
}

/// Whether two pieces of code have the same `code_index`, so that all code must be renumbered.
fn has_duplicate_indices(index: &DumpIndex, begin: u64) -> bool {
    let mut seen = HashSet::new();
    !index.codes.iter().filter(|code| code.offset >= begin).all(|code| seen.insert(code.code_index))
}

/// A repair in progress.
struct Repairer<'a> {
    index: &'a DumpIndex,
    data: &'a Source,
    endian: Endian,
    /// Offset from which records are written.
    begin: u64,
    renumber: bool,
    /// Index of code by the offset of its load.
    by_load: FxHashMap<u64, u32>,
    buffer: Vec<u8>,
    /// Offset of the load before which an entry shows that the skew was subtracted.
    skew_mark: Option<u64>,
    /// Time stamp and body of the JIT_CODE_CLOSE, which is written last.
    close: Option<(u64, &'a [u8])>,
    done: Repaired,
}

impl<'a> Repairer<'a> {
    fn change(&mut self, rule: &'static Rule, offset: u64, message: impl Into<String>) {
        self.done.changes.push(Change { rule, offset, message: message.into() });
    }

    fn repair_header(&mut self) {
        let mut header = self.index.later_headers.last().map_or(self.index.header, |(_, header)| *header);
        if header.version != 1 {
            self.change(&VERSION, 4, format!("version {} set to 1", header.version));
        }
        if u64::from(header.total_size) != FileHeader::SIZE {
            self.change(&HEADER_SIZE, 8, format!("header size {} set to 40", header.total_size));
        }
        if header.flags & !JITDUMP_FLAGS_ARCH_TIMESTAMP != 0 {
            // The clock flag among undefined flags is undefined too.
            self.change(&RESERVED_FLAGS, 32, format!("flags {:#x} set to 0", header.flags));
            header.flags = 0;
        }
        header.version = 1;
        header.total_size = FileHeader::SIZE as u32;
        header.magic = MAGIC;
        header.write(&mut self.buffer, self.endian);
    }

    fn repair_record(&mut self, record: &RawRecord<'a>) -> io::Result<()> {
        if record.offset < self.begin {
            return Ok(());
        }
        match record.tag() {
            RecordTag::JIT_CODE_LOAD => self.repair_load(record),
            RecordTag::JIT_CODE_MOVE => self.repair_move(record),
            RecordTag::JIT_CODE_DEBUG_INFO => self.report_debug_record(record),
            RecordTag::JIT_CODE_UNWINDING_INFO => self.repair_unwinding(record),
            RecordTag::JIT_CODE_CLOSE => {
                let at = record.offset.saturating_add(u64::from(record.prefix.total_size));
                if at < self.data.len() as u64 {
                    self.change(&AFTER_CLOSE, record.offset, "moved to the end");
                }
                self.close = Some((record.prefix.timestamp, record.body));
                Ok(())
            }
            _ => self.copy(record),
        }
    }

    fn copy(&mut self, record: &RawRecord<'_>) -> io::Result<()> {
        self.write(record.tag(), record.prefix.timestamp, record.body)
    }

    fn write(&mut self, tag: RecordTag, timestamp: u64, body: &[u8]) -> io::Result<()> {
        encode::record(tag, timestamp, body, self.endian, &mut self.buffer).map_err(io::Error::other)
    }

    fn repair_load(&mut self, record: &RawRecord<'a>) -> io::Result<()> {
        let id = self.by_load.get(&record.offset).copied();
        let Some((id, code)) = id.and_then(|id| Some((id, *self.index.codes.get(id as usize)?))) else {
            self.change(&SHORT_RECORD, record.offset, "left out");
            return Ok(());
        };
        self.write_debug_record(&code)?;
        let Ok(mut load) = LoadRecord::decode(record.cursor()) else { return Ok(()) };
        if !load.name_terminated {
            self.change(&NAME_END, record.offset, "a NUL was added to the name");
            load.name_terminated = true;
        }
        if load.fixed.code_size != load.code.len() as u64 {
            let message = format!("code_size {} set to {}", load.fixed.code_size, load.code.len());
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
            self.change(
                &CODE_INDEX,
                record.offset,
                format!("code_index {} set to {id}", load.fixed.code_index),
            );
            load.fixed.code_index = u64::from(id);
        }
        let body = load.encode(self.endian);
        self.write(record.tag(), record.prefix.timestamp, &body)
    }

    fn repair_move(&mut self, record: &RawRecord<'_>) -> io::Result<()> {
        let found = self.index.moves.binary_search_by_key(&record.offset, |moved| moved.offset);
        // Code of an earlier header is left out, and its moves with it.
        let is_written = |moved: &&CodeMove| {
            self.index.codes.get(moved.code as usize).is_some_and(|code| code.offset >= self.begin)
        };
        let moved = found.ok().and_then(|at| self.index.moves.get(at)).filter(is_written);
        let mut cursor = record.cursor();
        match (moved, Move::read(&mut cursor)) {
            (Some(moved), Ok(mut fixed)) => {
                if self.renumber {
                    fixed.code_index = u64::from(moved.code);
                }
                let mut body = Vec::new();
                fixed.write(&mut body, self.endian);
                body.extend_from_slice(cursor.rest());
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

    /// Reports the changes to the position of a debug record. It is written before its code, or left out without code.
    fn report_debug_record(&mut self, record: &RawRecord<'_>) -> io::Result<()> {
        let records = &self.index.debug_records;
        let debug = records
            .binary_search_by_key(&record.offset, |debug| debug.offset)
            .ok()
            .and_then(|at| records.get(at));
        match debug.map(|debug| debug.pairing) {
            Some(Pairing::Next) => {}
            Some(Pairing::Address | Pairing::OrderOnly) => {
                self.change(&BATCHED, record.offset, "moved before its code")
            }
            Some(Pairing::Before) => self.change(&DEBUG_AFTER, record.offset, "moved before its code"),
            Some(Pairing::Orphan) => self.change(&DEBUG_ORPHAN, record.offset, "left out"),
            Some(Pairing::Replaced) => self.change(&DEBUG_REPLACED, record.offset, "left out"),
            None => self.change(&SHORT_RECORD, record.offset, "left out"),
        }
        Ok(())
    }

    /// Writes the debug record of a piece of code, repaired where needed.
    fn write_debug_record(&mut self, code: &LoadedCode) -> io::Result<()> {
        if code.debug == NO_INDEX {
            return Ok(());
        }
        let index = self.index;
        let Some((debug, info)) = index.debug_info(self.data, code) else { return Ok(()) };
        if index.has_bytecode_offsets(code) {
            self.change(&BYTECODE_OFFSETS, debug.offset, "left out");
            return Ok(());
        }
        let Some(record) = index.record_at(self.data, debug.offset, debug.index) else { return Ok(()) };
        let mut rows = Vec::new();
        let findings = lines::decode(&info, &index.described_code(code), &mut rows);
        let is_marked = self.skew_mark == Some(code.offset);
        let body = if self.needs_rewriting(&findings) || debug.code_addr != code.start || is_marked {
            self.report_lines(debug.offset, &findings);
            if let (true, Some(first)) = (is_marked, rows.first()) {
                rows.insert(0, DebugLine { code_offset: 0, line: 0, discrim: 0, name: first.name });
                if self.index.skew == 0 {
                    self.change(
                        &SKEW,
                        debug.offset,
                        "an entry of no line shows that nothing is to be subtracted",
                    );
                }
            }
            self.encode_lines(code, &rows)?
        } else {
            record.body.to_vec()
        };
        self.write(RecordTag::JIT_CODE_DEBUG_INFO, record.prefix.timestamp, &body)
    }

    /// Code that gets an entry of no line at its start. It shows that nothing is to be subtracted, where readers would take
    /// the written entries for skewed ones.
    fn code_to_mark(&self) -> Option<u64> {
        let index = self.index;
        let mut evidence = SkewEvidence::new(index, &self.data.path);
        let mut first_written = None;
        let mut rows = Vec::new();
        let is_written = |code: &&LoadedCode| code.debug != NO_INDEX && code.offset >= self.begin;
        let described =
            index.codes.iter().filter(is_written).filter(|code| !index.has_bytecode_offsets(code));
        for code in described.filter(|code| code.size > 0).take(RECORDS_OF_SKEW) {
            let Some((debug, info)) = index.debug_info(self.data, code) else { continue };
            let findings = lines::decode(&info, &index.described_code(code), &mut rows);
            if self.needs_rewriting(&findings) || debug.code_addr != code.start {
                evidence.add(code.size, rows.iter().map(|row| (row.code_offset, row.line)));
            } else {
                let entries = info.iter_entries().map_while(Result::ok);
                let offset = |address: u64| address.wrapping_sub(code.start);
                evidence
                    .add(code.size, entries.map(|entry| (offset(entry.fixed.code_addr), entry.fixed.line)));
            }
            if !rows.is_empty() {
                first_written.get_or_insert(code.offset);
            }
        }
        if evidence.skew() > 0 { first_written } else { None }
    }

    fn needs_rewriting(&self, findings: &LineFindings) -> bool {
        self.index.skew > 0
            || findings.restored > 0
            || findings.unrestored > 0
            || findings.constant_stride
            || findings.missing > 0
            || findings.unsorted
            || findings.past > 0
            || findings.padding > 7
    }

    /// Encodes a debug record from decoded lines.
    fn encode_lines(&self, code: &LoadedCode, rows: &[DebugLine<'_>]) -> io::Result<Vec<u8>> {
        let entries: Vec<DebugInfoEntry<'_>> = rows
            .iter()
            .map(|row| DebugInfoEntry {
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

    fn report_lines(&mut self, offset: u64, findings: &LineFindings) {
        if self.index.skew > 0 {
            let skew = self.index.skew;
            self.change(&SKEW, offset, format!("{skew:#x} subtracted from {} addresses", findings.entries));
        }
        if findings.restored > 0 {
            self.change(&CORRUPT_NAMES, offset, format!("{} names restored", findings.restored));
        }
        if findings.unrestored > 0 {
            self.change(
                &LOST_NAMES,
                offset,
                format!("{} names without their damaged bytes", findings.unrestored),
            );
        }
        if findings.padding > 7 {
            self.change(&DEBUG_PADDING, offset, format!("{} bytes removed", findings.padding));
        }
        if findings.missing > 0 {
            self.change(&ENTRIES_MISSING, offset, format!("nr_entry set to {}", findings.entries));
        }
        if findings.unsorted {
            self.change(&UNSORTED, offset, "sorted by address");
        }
        if findings.past > 0 {
            self.change(&PAST_CODE, offset, format!("{} entries left out", findings.past));
        }
    }

    fn repair_unwinding(&mut self, record: &RawRecord<'_>) -> io::Result<()> {
        let Ok(mut info) = UnwindingInfoRecord::decode(record.cursor()) else {
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
            self.change(&HEADER_FIRST, record.offset, ".eh_frame moved to the front");
            info.data = &reordered;
        }
        let body = info.encode(self.endian);
        self.write(record.tag(), record.prefix.timestamp, &body)
    }

    fn finish(&mut self) -> io::Result<()> {
        for lost in &self.index.lost {
            let message = match lost.len {
                0 => "the record was shortened to the start of the next one".to_owned(),
                len => format!("{len} bytes left out"),
            };
            self.done.changes.push(Change { rule: lost.rule(), offset: lost.offset, message });
        }
        match self.close {
            Some((timestamp, body)) => self.write(RecordTag::JIT_CODE_CLOSE, timestamp, body),
            None => Ok(()),
        }
    }
}
