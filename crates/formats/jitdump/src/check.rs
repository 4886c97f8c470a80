//! Checks a dump against its specification, record by record, and reports every departure.

use std::borrow::Cow;
use std::fmt;

use perfuse_wire::{Diagnostics, Rule, machine_name};
use rustc_hash::FxHashMap;

use super::consts::{JITDUMP_FLAGS_ARCH_TIMESTAMP, RecordTag};
use super::dump::JitDump;
use super::functions::NO_INDEX;
use super::index::{DumpIndex, LoadedCode, LostBytes, Pairing};
use super::inline;
use super::layout::{FileHeader, Move, RecordPrefix};
use super::lines::{self, LineFindings};
use super::producer::Producer;
use super::reader::{RawRecord, Reader, ReaderStep};
use super::records::{DebugInfoRecord, LoadRecord, UnwindOrder, UnwindingInfoRecord};
use super::rules::*;
use perfuse_recording::{PassPages, Source};

pub use super::rules::RULES;

/// Largest thread id on Linux.
const MAX_TID: u64 = 1 << 22;

/// Difference of clocks that is accepted, in nanoseconds.
const MINUTE_NS: u64 = 60_000_000_000;

impl LostBytes {
    /// The rule that they violate: the file ends inside a record only where that claims more bytes than there are.
    pub(crate) fn rule(&self) -> &'static Rule {
        match self.prefix {
            Some(prefix) if u64::from(prefix.total_size) < RecordPrefix::SIZE => &RECORD_SIZE,
            Some(prefix) if self.at_end && u64::from(prefix.total_size) > self.len => &TRUNCATED,
            None if self.at_end => &TRUNCATED,
            _ => &LOST,
        }
    }
}

/// Reports every departure from the specification.
pub fn check(dump: &JitDump, sink: &mut Diagnostics) {
    let mut check = Checker::new(dump, sink);
    check.check_header();
    check.report_lost_bytes();
    let start = dump.start();
    let mut pages = PassPages::default();
    let mut reader = Reader::new(dump.bytes(), start.endian, start.first_record, 0);
    while let Some(step) = reader.next() {
        if let ReaderStep::Record(record) = step {
            check.check_record(&record);
        }
        pages.release_before(dump.bytes(), reader.offset());
    }
    check.check_pairing();
    check.check_lines();
    check.check_skew();
}

/// Reports the departures that the index contains, without reading records again.
pub fn findings(dump: &JitDump, sink: &mut Diagnostics) {
    let mut check = Checker::new(dump, sink);
    check.check_header();
    check.report_lost_bytes();
    check.check_pairing();
    check.check_skew();
}

/// A check in progress.
struct Checker<'a> {
    index: &'a DumpIndex,
    data: &'a Source,
    sink: &'a mut Diagnostics,
    /// Size and current address of code, by `code_index`.
    code_ranges: FxHashMap<u64, (u64, u64)>,
    /// Largest time stamp so far.
    last_time: u64,
    /// Whether the previous record is JIT_CODE_CLOSE.
    closed: bool,
}

impl<'a> Checker<'a> {
    fn new(dump: &'a JitDump, sink: &'a mut Diagnostics) -> Self {
        let (index, data) = (dump.index(), dump.bytes());
        Self { index, data, sink, code_ranges: FxHashMap::default(), last_time: 0, closed: false }
    }

    fn check_header(&mut self) {
        let header = self.index.header;
        let mut report = |rule, offset, field, message| self.sink.push(rule, offset, None, field, || message);
        if header.version != 1 {
            report(&VERSION, 4, "version", owned(format!("version is {}", header.version)));
        }
        if u64::from(header.total_size) != FileHeader::SIZE {
            let message =
                format!("header size is {}; records begin at {}", header.total_size, self.index.first_record);
            report(&HEADER_SIZE, 8, "total_size", owned(message));
        }
        if machine_name(header.elf_mach).is_none() {
            report(&MACHINE, 12, "elf_mach", owned(format!("elf_mach is {}", header.elf_mach)));
        }
        if header.pad1 != 0 {
            report(&PAD, 16, "pad1", owned(format!("pad1 is {:#x}", header.pad1)));
        }
        if header.flags & !JITDUMP_FLAGS_ARCH_TIMESTAMP != 0 {
            report(&RESERVED_FLAGS, 32, "flags", owned(format!("flags are {:#x}", header.flags)));
        } else if header.flags == JITDUMP_FLAGS_ARCH_TIMESTAMP {
            report(&ARCH_TIMESTAMP, 32, "flags", owned("flags are JITDUMP_FLAGS_ARCH_TIMESTAMP".to_owned()));
        }
        match self.index.span {
            Some((first, _)) if first.abs_diff(header.timestamp) > MINUTE_NS => {
                let message = format!("the header has {}, the first record {first}", header.timestamp);
                report(&HEADER_CLOCK, 24, "timestamp", owned(message));
            }
            Some(_) => {}
            None => report(
                &NO_RECORDS,
                self.index.first_record,
                "",
                owned("no record follows the header".to_owned()),
            ),
        }
        for (offset, header) in &self.index.later_headers {
            let message = format!("a header of process {} follows", header.pid);
            report(&SECOND_HEADER, *offset, "magic", owned(message));
        }
    }

    fn report_lost_bytes(&mut self) {
        for lost in &self.index.lost {
            let rule = lost.rule();
            let message = match lost.prefix {
                Some(prefix) if rule == &RECORD_SIZE => {
                    format!("total_size is {}; {} bytes were skipped", prefix.total_size, lost.len)
                }
                Some(prefix) if rule == &TRUNCATED => {
                    format!(
                        "{} claims {} bytes, {} are left",
                        RecordTag(prefix.id),
                        prefix.total_size,
                        lost.len
                    )
                }
                None if lost.len == 0 => "no record follows at total_size; one was found inside".to_owned(),
                None if lost.at_end => format!("{} bytes are left, a record header needs 16", lost.len),
                _ => {
                    let end = lost.offset.saturating_add(lost.len);
                    format!("{} bytes up to {end:#x} are not a record", lost.len)
                }
            };
            self.sink.push(rule, lost.offset, Some(lost.index), "total_size", || message.into());
        }
    }

    fn check_record(&mut self, record: &RawRecord<'_>) {
        let time = record.prefix.timestamp;
        if time < self.last_time {
            let last = self.last_time;
            self.report(&TIME_BACK, record, "timestamp", || format!("{time} after {last}"));
        }
        if time == 0 {
            self.report(&TIME_ZERO, record, "timestamp", || "timestamp is 0".to_owned());
        }
        self.last_time = self.last_time.max(time);
        if std::mem::replace(&mut self.closed, record.tag() == RecordTag::JIT_CODE_CLOSE) {
            self.report(&AFTER_CLOSE, record, "id", || format!("{} follows JIT_CODE_CLOSE", record.tag()));
        }
        let readable = match record.tag() {
            RecordTag::JIT_CODE_LOAD => {
                LoadRecord::decode(record.cursor()).map(|load| self.check_load(record, &load))
            }
            RecordTag::JIT_CODE_MOVE => {
                Move::read(&mut record.cursor()).map(|fixed| self.check_move(record, &fixed))
            }
            RecordTag::JIT_CODE_DEBUG_INFO => DebugInfoRecord::decode(record.cursor()).map(|_| ()),
            RecordTag::JIT_CODE_UNWINDING_INFO => {
                UnwindingInfoRecord::decode(record.cursor()).map(|info| self.check_unwinding(record, &info))
            }
            RecordTag::JIT_CODE_CLOSE => Ok(()),
            tag if tag.name().is_none() => {
                self.report(&UNKNOWN_RECORD, record, "id", || format!("record of kind {}", record.prefix.id));
                Ok(())
            }
            _ => {
                inline::check(record, self.sink);
                Ok(())
            }
        };
        if let Err(error) = readable {
            let error = error.within(record.tag().name().unwrap_or_default(), record.index);
            self.sink.push(&SHORT_RECORD, record.offset, Some(record.index), error.field, || {
                error.to_string().into()
            });
        }
    }

    fn check_load(&mut self, record: &RawRecord<'_>, load: &LoadRecord<'_>) {
        let fixed = &load.fixed;
        if !load.name_terminated {
            self.report(&NAME_END, record, "name", || "no NUL before the record ends".to_owned());
        }
        if (load.code.len() as u64) < fixed.code_size {
            let have = load.code.len();
            self.report(&CODE_SIZE, record, "code_size", || {
                format!("code_size is {}, the record contains {have} bytes", fixed.code_size)
            });
        }
        if !load.padding.is_empty() {
            self.report(&LOAD_PADDING, record, "total_size", || {
                format!("{} bytes follow the code", load.padding.len())
            });
        }
        if load.tid > u64::from(u32::MAX)
            || load.code_offset
                != record.body_offset().saturating_add(41).saturating_add(load.name.len() as u64)
                && load.name_terminated
        {
            self.report(&WIDE_TID, record, "tid", || format!("tid is {:#x}", load.tid));
        } else if load.tid > MAX_TID {
            self.report(&STRANGE_TID, record, "tid", || format!("tid is {}", load.tid));
        }
        if fixed.vma != fixed.code_addr {
            self.report(&VMA, record, "vma", || {
                format!("vma is {:#x}, code_addr {:#x}", fixed.vma, fixed.code_addr)
            });
        }
        if fixed.pid != self.index.header.pid {
            let header = self.index.header.pid;
            self.report(&FOREIGN_PID, record, "pid", || {
                format!("pid is {}, the header's {header}", fixed.pid)
            });
        }
        if fixed.code_size == 0 {
            self.report(&EMPTY_CODE, record, "code_size", || "code_size is 0".to_owned());
        }
        match std::str::from_utf8(load.name) {
            Err(_) => self.report(&NAME_NOT_TEXT, record, "name", || "the name is not UTF-8".to_owned()),
            Ok(name) if !name.is_ascii() => {
                self.report(&NAME_ENCODING, record, "name", || format!("the name is {name:?}"))
            }
            Ok(_) => {}
        }
        if load.name.len() > 255 || load.name.contains(&b'\n') {
            self.report(&LONG_NAME, record, "name", || format!("the name has {} bytes", load.name.len()));
        }
        if let Some((_, address)) =
            self.code_ranges.insert(fixed.code_index, (fixed.code_size, fixed.code_addr))
        {
            self.report(&CODE_INDEX, record, "code_index", || {
                format!("{} is also the code at {address:#x}", fixed.code_index)
            });
        }
    }

    fn check_move(&mut self, record: &RawRecord<'_>, fixed: &Move) {
        if fixed.vma != fixed.new_code_addr {
            self.report(&MOVE_VMA, record, "vma", || format!("vma is {:#x}", fixed.vma));
        }
        let Some((size, address)) = self.code_ranges.get(&fixed.code_index).copied() else {
            let index = fixed.code_index;
            return self
                .report(&MOVE_OF_NOTHING, record, "code_index", || format!("no code has index {index}"));
        };
        self.code_ranges.insert(fixed.code_index, (size, fixed.new_code_addr));
        if address != fixed.old_code_addr || size != fixed.code_size {
            self.report(&MOVE_CONTRADICTS, record, "old_code_addr", || {
                let (moved_size, moved_from) = (fixed.code_size, fixed.old_code_addr);
                format!(
                    "the code is {size} bytes at {address:#x}, the move has {moved_size} at {moved_from:#x}"
                )
            });
        }
    }

    fn check_unwinding(&mut self, record: &RawRecord<'_>, info: &UnwindingInfoRecord<'_>) {
        let fixed = &info.fixed;
        let have = info.data.len() as u64;
        if have < fixed.unwind_data_size || fixed.eh_frame_hdr_size > fixed.unwind_data_size {
            self.report(&UNWIND_SIZE, record, "unwind_data_size", || {
                format!(
                    "{} bytes and a header of {}, the record contains {have}",
                    fixed.unwind_data_size, fixed.eh_frame_hdr_size
                )
            });
        }
        match info.order() {
            _ if fixed.eh_frame_hdr_size == fixed.unwind_data_size => {
                self.report(&HEADER_ONLY, record, "eh_frame_hdr_size", || "there is no .eh_frame".to_owned());
            }
            UnwindOrder::FrameFirst => {
                self.report(&FRAME_FIRST, record, "unwinding_data", || "the header is last".to_owned());
            }
            UnwindOrder::HeaderFirst => {
                self.report(&HEADER_FIRST, record, "unwinding_data", || "the header is first".to_owned());
            }
            UnwindOrder::Unknown => {
                self.report(&UNWIND_UNREADABLE, record, "unwinding_data", || {
                    "no header at either end".to_owned()
                });
            }
        }
        if fixed.mapped_size != 0 && fixed.mapped_size != fixed.unwind_data_size {
            self.report(&MAPPED_SIZE, record, "mapped_size", || {
                format!("mapped_size is {}, the data {}", fixed.mapped_size, fixed.unwind_data_size)
            });
        }
    }

    fn check_pairing(&mut self) {
        let index = self.index;
        for debug in &index.debug_records {
            let (rule, message): (&'static Rule, &'static str) = match debug.pairing {
                Pairing::Next => continue,
                Pairing::Address => (&BATCHED, "other records are between it and its code"),
                Pairing::OrderOnly => (&BATCHED, "it was paired with the next code, whose address differs"),
                Pairing::Before => (&DEBUG_AFTER, "its code precedes it"),
                Pairing::Orphan => (&DEBUG_ORPHAN, "no code has its address"),
                Pairing::Replaced => (&DEBUG_REPLACED, "another record with its address follows"),
            };
            self.sink.push(rule, debug.offset, Some(debug.index), "code_addr", || {
                format!("{message} ({:#x})", debug.code_addr).into()
            });
        }
        let unwinds = self.count(RecordTag::JIT_CODE_UNWINDING_INFO);
        if unwinds > 0 && unwinds < index.codes.len() as u64 && index.producer == Producer::Llvm {
            self.sink.push(&UNWIND_SHARED, index.first_record, None, "", || {
                format!("{unwinds} records for {} functions", index.codes.len()).into()
            });
        }
        let is_bytecode = |code: &&LoadedCode| code.debug != NO_INDEX && index.has_bytecode_offsets(code);
        let count = index.codes.iter().filter(is_bytecode).count();
        let first = index.codes.iter().find(is_bytecode).map(|code| code.debug as usize);
        if let Some(debug) = first.and_then(|first| index.debug_records.get(first)) {
            self.sink.push(&BYTECODE_OFFSETS, debug.offset, Some(debug.index), "code_addr", || {
                format!("lines of {count} pieces of Sparkplug code are at offsets of bytecode; omitted")
                    .into()
            });
        }
        for code in index.codes.iter().filter(|code| code.retired != u64::MAX) {
            self.sink.push(&REUSED, code.offset, Some(code.index), "code_addr", || {
                format!("later code overwrote it at {:#x}", code.start).into()
            });
        }
    }

    fn check_lines(&mut self) {
        let index = self.index;
        let mut rows = Vec::new();
        let mut pages = PassPages::default();
        for code in index.codes.iter().filter(|code| code.debug != NO_INDEX) {
            let Some((debug, info)) = index.debug_info(self.data, code) else { continue };
            let findings = lines::decode(&info, &index.described_code(code), &mut rows);
            self.report_lines(debug.offset, debug.index, code, &info, &findings);
            pages.release_with(debug.offset, |range| self.data.release(range));
        }
    }

    fn check_skew(&mut self) {
        let index = self.index;
        let first = index.debug_records.iter().find(|debug| !debug.inline);
        if let (Some(first), 1..) = (first, index.skew) {
            let skew = index.skew;
            self.sink.push(&SKEW, first.offset, None, "code_addr", || {
                format!("every entry is {skew:#x} too high in this file; subtracted").into()
            });
        }
    }

    fn report_lines(
        &mut self,
        offset: u64,
        record: u64,
        code: &LoadedCode,
        info: &DebugInfoRecord<'_>,
        findings: &LineFindings,
    ) {
        let LineFindings { entries, restored, unrestored, padding, repeated, line_zero, .. } = *findings;
        let expected = info.fixed.nr_entry;
        if findings.missing > 0 {
            let at = findings.failed_at.unwrap_or(offset);
            self.sink.push(&ENTRIES_MISSING, at, Some(record), "nr_entry", || {
                format!("{expected} entries, {entries} could be read").into()
            });
        }
        let mut report = |applies, rule: &'static Rule, field, message: fmt::Arguments<'_>| {
            if applies {
                self.sink.push(rule, offset, Some(record), field, || message.to_string().into());
            }
        };
        report(restored > 0, &CORRUPT_NAMES, "name", format_args!("{restored} of {expected} names restored"));
        report(unrestored > 0, &LOST_NAMES, "name", format_args!("{unrestored} of {expected} names"));
        report(padding > 7, &DEBUG_PADDING, "total_size", format_args!("{padding} bytes follow the entries"));
        report(repeated > 0, &REPEATED_NAME, "name", format_args!("{repeated} of {expected} names"));
        report(line_zero > 0, &LINE_ZERO, "line", format_args!("{line_zero} of {expected} entries"));
        let LineFindings { terminator, unsorted, duplicates, before, past, .. } = *findings;
        let size = code.size;
        report(terminator, &TERMINATOR, "code_addr", format_args!("at offset {size:#x}"));
        report(unsorted, &UNSORTED, "code_addr", format_args!("sorted by address"));
        report(duplicates > 0, &DUPLICATE_ADDRESS, "code_addr", format_args!("{duplicates} entries"));
        report(before > 0, &BEFORE_CODE, "code_addr", format_args!("{before} entries"));
        report(past > 0, &PAST_CODE, "code_addr", format_args!("{past} entries past {size:#x} bytes"));
    }

    fn count(&self, tag: RecordTag) -> u64 {
        self.index.counts.iter().find(|(counted, _)| *counted == tag).map_or(0, |(_, count)| *count)
    }

    fn report(
        &mut self,
        rule: &'static Rule,
        record: &RawRecord<'_>,
        field: &'static str,
        message: impl FnOnce() -> String,
    ) {
        self.sink.push(rule, record.offset, Some(record.index), field, || message().into());
    }
}

/// A message in the form of [`Diagnostics`].
fn owned(message: String) -> Cow<'static, str> {
    Cow::Owned(message)
}
