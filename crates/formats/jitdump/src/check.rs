//! Holds a dump against its specification, record by record.

mod debug;

use std::borrow::Cow;

use perfuse_wire::{Diagnostics, Rule};
use rustc_hash::FxHashMap;

use super::JitDump;
use super::consts::{JITDUMP_FLAGS_ARCH_TIMESTAMP, RecordTag};
use super::index::{Code, Index, NONE, Pairing};
use super::layout::{FileHeader, Move};
use super::lines::Habits;
use super::reader::{Reader, Step};
use super::records::{DebugInfo, Load, RawRecord, UnwindOrder, UnwindingInfo};
use super::rules::*;
use perfuse_recording::{Recording, Source, machine_name};

pub use super::rules::RULES;

/// The largest thread id Linux gives.
const MAX_TID: u64 = 1 << 22;

const MINUTE_NS: u64 = 60_000_000_000;

/// Tells every departure.
pub fn check(dump: &JitDump, sink: &mut Diagnostics) {
    let mut check = Check::new(dump, sink);
    check.header();
    check.losses();
    let start = dump.start();
    let mut released = 0u64;
    let mut reader = Reader::new(dump.source(), start.endian, start.first_record, 0);
    while let Some(step) = reader.next() {
        if let Step::Record(record) = step {
            check.record(&record);
        }
        if reader.offset().saturating_sub(released) > super::index::RELEASE {
            dump.source().release(released as usize..reader.offset() as usize);
            released = reader.offset();
        }
    }
    check.pairing();
    check.lines();
    check.skew();
}

/// Tells what the index knows, without reading records again.
pub fn findings(dump: &JitDump, sink: &mut Diagnostics) {
    let mut check = Check::new(dump, sink);
    check.header();
    check.losses();
    check.pairing();
    check.skew();
}

struct Check<'a> {
    index: &'a Index,
    data: &'a Source,
    sink: &'a mut Diagnostics,
    /// Size and address of the code that has an index.
    places: FxHashMap<u64, (u64, u64)>,
    last_time: u64,
    closed: bool,
}

impl<'a> Check<'a> {
    fn new(dump: &'a JitDump, sink: &'a mut Diagnostics) -> Self {
        let (index, data) = (dump.index(), dump.source());
        Self { index, data, sink, places: FxHashMap::default(), last_time: 0, closed: false }
    }

    fn header(&mut self) {
        let header = self.index.header;
        let mut tell = |rule, offset, field, message| self.sink.push(rule, offset, None, field, || message);
        if header.version != 1 {
            tell(&VERSION, 4, "version", say(format!("version is {}", header.version)));
        }
        if u64::from(header.total_size) != FileHeader::SIZE {
            let message =
                format!("header size is {}; records begin at {}", header.total_size, self.index.first_record);
            tell(&HEADER_SIZE, 8, "total_size", say(message));
        }
        if machine_name(header.elf_mach).is_none() {
            tell(&MACHINE, 12, "elf_mach", say(format!("elf_mach is {}", header.elf_mach)));
        }
        if header.pad1 != 0 {
            tell(&PAD, 16, "pad1", say(format!("pad1 is {:#x}", header.pad1)));
        }
        if header.flags & !JITDUMP_FLAGS_ARCH_TIMESTAMP != 0 {
            tell(&RESERVED_FLAGS, 32, "flags", say(format!("flags are {:#x}", header.flags)));
        } else if header.flags == JITDUMP_FLAGS_ARCH_TIMESTAMP {
            tell(&ARCH_TIMESTAMP, 32, "flags", say("flags are JITDUMP_FLAGS_ARCH_TIMESTAMP".to_owned()));
        }
        match self.index.span {
            Some((first, _)) if first.abs_diff(header.timestamp) > MINUTE_NS => {
                let message = format!("header says {}, the first record {first}", header.timestamp);
                tell(&HEADER_CLOCK, 24, "timestamp", say(message));
            }
            Some(_) => {}
            None => {
                tell(&NO_RECORDS, self.index.first_record, "", say("no record follows the header".to_owned()))
            }
        }
        for (offset, header) in &self.index.later_headers {
            let message = format!("a header of process {} stands here", header.pid);
            tell(&SECOND_HEADER, *offset, "magic", say(message));
        }
    }

    fn losses(&mut self) {
        for loss in &self.index.losses {
            let (rule, message) = match loss.prefix {
                Some(prefix) if prefix.total_size < 16 => (
                    &RECORD_SIZE,
                    format!("total_size is {}; {} bytes were passed over", prefix.total_size, loss.len),
                ),
                Some(prefix) if loss.at_end => {
                    let tag = RecordTag(prefix.id);
                    (&TRUNCATED, format!("{tag} claims {} bytes, {} are left", prefix.total_size, loss.len))
                }
                None if loss.len == 0 => {
                    (&LOST, "total_size leads to no record; one was found inside".to_owned())
                }
                None if loss.at_end => {
                    (&TRUNCATED, format!("{} bytes are left, a record header needs 16", loss.len))
                }
                _ => (
                    &LOST,
                    format!(
                        "{} bytes up to {:#x} are no record",
                        loss.len,
                        loss.offset.saturating_add(loss.len)
                    ),
                ),
            };
            self.sink.push(rule, loss.offset, Some(loss.index), "total_size", || message.into());
        }
    }

    fn record(&mut self, record: &RawRecord<'_>) {
        let time = record.prefix.timestamp;
        if time < self.last_time {
            let last = self.last_time;
            self.tell(&TIME_BACK, record, "timestamp", || format!("{time} after {last}"));
        }
        if time == 0 {
            self.tell(&TIME_ZERO, record, "timestamp", || "timestamp is 0".to_owned());
        }
        self.last_time = self.last_time.max(time);
        if std::mem::replace(&mut self.closed, record.tag() == RecordTag::JIT_CODE_CLOSE) {
            self.tell(&AFTER_CLOSE, record, "id", || format!("{} follows JIT_CODE_CLOSE", record.tag()));
        }
        let readable = match record.tag() {
            RecordTag::JIT_CODE_LOAD => Load::decode(record.cursor()).map(|load| self.load(record, &load)),
            RecordTag::JIT_CODE_MOVE => {
                Move::read(&mut record.cursor()).map(|fixed| self.moved(record, &fixed))
            }
            RecordTag::JIT_CODE_DEBUG_INFO => DebugInfo::decode(record.cursor()).map(|_| ()),
            RecordTag::JIT_CODE_UNWINDING_INFO => {
                UnwindingInfo::decode(record.cursor()).map(|info| self.unwinding(record, &info))
            }
            RecordTag::JIT_CODE_CLOSE => Ok(()),
            tag if tag.name().is_none() => {
                self.tell(&UNKNOWN_RECORD, record, "id", || format!("record of kind {}", record.prefix.id));
                Ok(())
            }
            _ => {
                super::inline::check(record, self.sink);
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

    fn load(&mut self, record: &RawRecord<'_>, load: &Load<'_>) {
        let fixed = &load.fixed;
        if !load.name_terminated {
            self.tell(&NAME_END, record, "name", || "no NUL before the record ends".to_owned());
        }
        if (load.code.len() as u64) < fixed.code_size {
            let have = load.code.len();
            self.tell(&CODE_SIZE, record, "code_size", || {
                format!("code_size is {}, {have} bytes are there", fixed.code_size)
            });
        }
        if !load.padding.is_empty() {
            self.tell(&LOAD_PADDING, record, "total_size", || {
                format!("{} bytes follow the code", load.padding.len())
            });
        }
        if load.tid > u64::from(u32::MAX)
            || load.code_offset
                != record.body_offset().saturating_add(41).saturating_add(load.name.len() as u64)
                && load.name_terminated
        {
            self.tell(&WIDE_TID, record, "tid", || format!("tid is {:#x}", load.tid));
        } else if load.tid > MAX_TID {
            self.tell(&STRANGE_TID, record, "tid", || format!("tid is {}", load.tid));
        }
        if fixed.vma != fixed.code_addr {
            self.tell(&VMA, record, "vma", || {
                format!("vma is {:#x}, code_addr {:#x}", fixed.vma, fixed.code_addr)
            });
        }
        if fixed.pid != self.index.header.pid {
            let header = self.index.header.pid;
            self.tell(&FOREIGN_PID, record, "pid", || format!("pid is {}, the header's {header}", fixed.pid));
        }
        if fixed.code_size == 0 {
            self.tell(&EMPTY_CODE, record, "code_size", || "code_size is 0".to_owned());
        }
        match std::str::from_utf8(load.name) {
            Err(_) => self.tell(&NAME_NOT_TEXT, record, "name", || "the name is not UTF-8".to_owned()),
            Ok(name) if !name.is_ascii() => {
                self.tell(&NAME_ENCODING, record, "name", || format!("the name is {name:?}"))
            }
            Ok(_) => {}
        }
        if load.name.len() > 255 || load.name.contains(&b'\n') {
            self.tell(&LONG_NAME, record, "name", || format!("the name has {} bytes", load.name.len()));
        }
        if let Some((_, place)) = self.places.insert(fixed.code_index, (fixed.code_size, fixed.code_addr)) {
            self.tell(&CODE_INDEX, record, "code_index", || {
                format!("{} was given to the code at {place:#x}", fixed.code_index)
            });
        }
    }

    fn moved(&mut self, record: &RawRecord<'_>, fixed: &Move) {
        if fixed.vma != fixed.new_code_addr {
            self.tell(&MOVE_VMA, record, "vma", || format!("vma is {:#x}", fixed.vma));
        }
        let Some((size, was)) = self.places.get(&fixed.code_index).copied() else {
            let index = fixed.code_index;
            return self
                .tell(&MOVE_OF_NOTHING, record, "code_index", || format!("no code was loaded as {index}"));
        };
        self.places.insert(fixed.code_index, (size, fixed.new_code_addr));
        if was != fixed.old_code_addr || size != fixed.code_size {
            self.tell(&MOVE_CONTRADICTS, record, "old_code_addr", || {
                let (said, from) = (fixed.code_size, fixed.old_code_addr);
                format!("the code is {size} bytes at {was:#x}, the move says {said} at {from:#x}")
            });
        }
    }

    fn unwinding(&mut self, record: &RawRecord<'_>, info: &UnwindingInfo<'_>) {
        let fixed = &info.fixed;
        let have = info.data.len() as u64;
        if have < fixed.unwind_data_size || fixed.eh_frame_hdr_size > fixed.unwind_data_size {
            self.tell(&UNWIND_SIZE, record, "unwind_data_size", || {
                format!(
                    "{} bytes and a header of {}, {have} are there",
                    fixed.unwind_data_size, fixed.eh_frame_hdr_size
                )
            });
        }
        match info.order() {
            _ if fixed.eh_frame_hdr_size == fixed.unwind_data_size => {
                self.tell(&HEADER_ONLY, record, "eh_frame_hdr_size", || "there is no .eh_frame".to_owned());
            }
            UnwindOrder::FrameFirst => {
                self.tell(&FRAME_FIRST, record, "unwinding_data", || "the header is last".to_owned());
            }
            UnwindOrder::HeaderFirst => {
                self.tell(&HEADER_FIRST, record, "unwinding_data", || "the header is first".to_owned());
            }
            UnwindOrder::Unknown => {
                self.tell(&UNWIND_UNREADABLE, record, "unwinding_data", || {
                    "no header at either end".to_owned()
                });
            }
        }
        if fixed.mapped_size != 0 && fixed.mapped_size != fixed.unwind_data_size {
            self.tell(&MAPPED_SIZE, record, "mapped_size", || {
                format!("mapped_size is {}, the data {}", fixed.mapped_size, fixed.unwind_data_size)
            });
        }
    }

    fn count(&self, tag: RecordTag) -> u64 {
        self.index.counts.iter().find(|(known, _)| *known == tag).map_or(0, |(_, count)| *count)
    }

    fn tell(
        &mut self,
        rule: &'static Rule,
        record: &RawRecord<'_>,
        field: &'static str,
        message: impl FnOnce() -> String,
    ) {
        self.sink.push(rule, record.offset, Some(record.index), field, || message().into());
    }
}

fn say(message: String) -> Cow<'static, str> {
    Cow::Owned(message)
}
