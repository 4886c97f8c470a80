//! Records of a file, those in compressed records included, each with its absolute offset.

use std::sync::{Arc, OnceLock};

use perfuse_wire::{ErrorKind, ParseError};

use super::attribute::{EventAttribute, EventRecordLayout};
use super::damage::FoundDamage;
use super::guests::{GuestProcess, Guests, is_guest};
use super::header::Preamble;
use super::off_cpu;
use super::record::{RawEvent, RecordLocation, RecordsEnd, read_record};
use super::sample::{SampleHead, SampleRecord, UserState};
use super::unpacked::Unpacked;
use perfuse_recording::{PassPages, Position, Source};

/// A file as a sequence of records, with its header, attributes and features.
#[derive(Debug)]
pub struct RecordFile {
    preamble: Preamble,
    unpacked: OnceLock<Unpacked>,
    /// Processes of guests.
    pub(super) guests: Guests,
    /// Bytes that are not records.
    pub(super) damage: FoundDamage,
}

impl std::ops::Deref for RecordFile {
    type Target = Preamble;

    fn deref(&self) -> &Preamble {
        &self.preamble
    }
}

impl RecordFile {
    /// Reads the header, the attributes and the table of features.
    ///
    /// # Errors
    /// When the bytes are not a perf.data file, or end inside its header.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        Ok(Self {
            preamble: Preamble::read(source)?,
            unpacked: OnceLock::new(),
            guests: Guests::default(),
            damage: FoundDamage::default(),
        })
    }

    /// Reads the record at a position and moves the position past it. The records in a compressed record follow it. Bytes that
    /// are not a record are skipped.
    ///
    /// # Errors
    /// The reason where there is no whole record.
    pub fn next<'a>(&'a self, at: &mut Position) -> Result<RawEvent<'a>, RecordsEnd> {
        if let Some(inner_offset) = at.inner.checked_sub(1) {
            let (_, end) = self.unpacked().range(at.offset).unwrap_or_default();
            if inner_offset < end {
                let mut record = read_record(self.unpacked().bytes(), inner_offset, self.endian, false)?;
                at.inner = at.inner.saturating_add(record.size);
                record.location = RecordLocation::unpacked(inner_offset);
                record.offset = at.offset;
                record.index = at.index;
                at.index = at.index.saturating_add(1);
                return Ok(record);
            }
            let compressed = self.record_at_offset(at.offset)?;
            at.offset = at.offset.saturating_add(compressed.size);
            at.inner = 0;
        }
        at.offset = at.offset.max(self.records.start);
        let mut record = match self.accepted(at.offset) {
            Ok(record) => record,
            Err(end @ (RecordsEnd::Complete | RecordsEnd::Message { .. })) => return Err(end),
            Err(reason) => {
                at.offset = self.after_damage(at.offset, reason)?;
                self.record_at_offset(at.offset)?
            }
        };
        record.index = at.index;
        at.index = at.index.saturating_add(1);
        match self.unpacked_start(&record) {
            Some(start) => at.inner = start.saturating_add(1),
            None => at.offset = at.offset.saturating_add(record.size),
        }
        Ok(record)
    }

    /// Offset of the first record in a compressed record; `None` for other records.
    fn unpacked_start(&self, record: &RawEvent<'_>) -> Option<u64> {
        if !record.record_type.is_compressed() {
            return None;
        }
        self.unpacked().range(record.offset).map(|(start, _)| start)
    }

    /// Reads a record of the file that is not in a compressed record.
    ///
    /// # Errors
    /// The reason where there is no whole record.
    pub fn record_at_offset(&self, offset: u64) -> Result<RawEvent<'_>, RecordsEnd> {
        read_record(self.source.get(..self.end()).unwrap_or_default(), offset, self.endian, self.pipe)
    }

    /// Offset of the end of the records.
    pub(super) fn end(&self) -> usize {
        usize::try_from(self.records.end).unwrap_or(usize::MAX)
    }

    /// Prefetches the cache lines that are read of a sample with a copy of the stack: the end of the previous record, the fields
    /// up to the call chain, the size of the stack.
    #[inline]
    pub fn prefetch_sample(&self, offset: u64) {
        [0, 64, 256].iter().for_each(|line| self.source.touch(offset.saturating_add(*line)));
    }

    /// The record at a location.
    #[must_use]
    pub fn at(&self, location: RecordLocation) -> Option<RawEvent<'_>> {
        let Some(inner_offset) = location.unpacked_offset() else {
            return self.record_at_offset(location.number()).ok();
        };
        let mut record = read_record(self.unpacked().bytes(), inner_offset, self.endian, false).ok()?;
        record.location = location;
        record.offset = self.unpacked().compressed_record(inner_offset);
        Some(record)
    }

    /// The time of a record of the kernel; `None` for records of perf and records without a time.
    #[must_use]
    #[inline]
    pub fn time(&self, record: &RawEvent<'_>) -> Option<u64> {
        if record.record_type.is_user() {
            return None;
        }
        let (index, _) = self.attributes.find(record.record_type, record.body, self.endian)?;
        self.attributes.list().get(index)?.layout.time(record.record_type, record.body, self.endian)
    }

    /// The layout of a record's body; `None` without an attribute.
    pub fn event_layout(&self, record: &RawEvent<'_>) -> Option<&EventRecordLayout> {
        let (index, _) = self.attributes.find(record.record_type, record.body, self.endian)?;
        self.attributes.list().get(index).map(|attribute| &attribute.layout)
    }

    /// Decodes a sample up to its call chain. The pid of a process of a guest is a number below -1.
    #[inline]
    pub fn sample_head<'a>(&self, record: &RawEvent<'a>) -> Option<SampleHead<'a>> {
        let (index, _) = self.attributes.find(record.record_type, record.body, self.endian)?;
        let attribute = self.attributes.list().get(index)?;
        let head = SampleHead::read(&mut record.cursor(self.endian), &attribute.layout).ok()?;
        Some(self.own_head(record, attribute, head))
    }

    /// The head of a sample of an event with the number of its process, and the fields of a sample of time off the processor.
    #[inline]
    pub fn own_head<'a>(
        &self,
        record: &RawEvent<'a>,
        attribute: &EventAttribute,
        mut head: SampleHead<'a>,
    ) -> SampleHead<'a> {
        head.pid = head.pid.map(|pid| self.process_number(record, pid));
        if off_cpu::may_be_off_cpu(attribute) { self.off_cpu_head(record, attribute, head) } else { head }
    }

    /// The head of a sample of an event that may be of time off the processor, whose fields are then in its raw data.
    fn off_cpu_head<'a>(
        &self,
        record: &RawEvent<'a>,
        attribute: &EventAttribute,
        head: SampleHead<'a>,
    ) -> SampleHead<'a> {
        if !off_cpu::is_off_cpu(attribute) {
            return head;
        }
        let sample = SampleRecord::read(&mut record.cursor(self.endian), &attribute.layout).ok();
        sample.and_then(|sample| off_cpu::read(head, sample.raw?, self.endian)).unwrap_or(head)
    }

    /// Whether a time is that of a sample, and not a number that stands for the time of a sum.
    #[must_use]
    #[inline]
    pub fn is_time(&self, record: &RawEvent<'_>, time: u64) -> bool {
        time < off_cpu::SUM_TIMES || {
            let found = self.attributes.find(record.record_type, record.body, self.endian);
            let attribute = found.and_then(|(index, _)| self.attributes.list().get(index));
            !attribute.is_some_and(off_cpu::is_off_cpu)
        }
    }

    /// Decodes a whole sample.
    ///
    /// # Errors
    /// When its body ends inside a field, or no attribute defines its fields.
    pub fn sample<'a>(&self, record: &RawEvent<'a>) -> Result<SampleRecord<'a>, ParseError> {
        let expected = "an event attribute that defines the fields of samples";
        let Some(layout) = self.event_layout(record) else {
            let kind = ErrorKind::Invalid { value: 0, expected };
            return Err(ParseError::new(kind, record.offset, "sample_type"));
        };
        SampleRecord::read(&mut record.cursor(self.endian), layout)
    }

    /// Decodes the registers and the stack of a sample; `None` where its body ends before.
    #[must_use]
    pub fn user_state<'a>(&self, record: &RawEvent<'a>) -> Option<UserState<'a>> {
        UserState::read(&mut record.cursor(self.endian), self.event_layout(record)?).ok()
    }

    /// Whether a sample has registers and a copy of its user stack. Those of kernel threads are empty, and those of stacks that
    /// simpleperf has unwound.
    #[must_use]
    pub fn has_stack_copy(&self, record: &RawEvent<'_>) -> bool {
        let mut cursor = record.cursor(self.endian);
        self.event_layout(record).is_some_and(|layout| UserState::is_in(&mut cursor, layout).unwrap_or(false))
    }

    /// The pid of a record of the kernel; for a record of a guest the number of that process.
    #[must_use]
    #[inline]
    pub fn process_number(&self, record: &RawEvent<'_>, pid: i32) -> i32 {
        if is_guest(record.misc) { self.guest_number(record, pid) } else { pid }
    }

    #[cold]
    fn guest_number(&self, record: &RawEvent<'_>, pid: i32) -> i32 {
        let machine_pid = self.machine_pid(record, pid);
        self.guests.number(GuestProcess { machine_pid, pid })
    }

    /// The guest of a record: that of its event's id, or else the process that is stated: `perf kvm record` states QEMU.
    #[must_use]
    pub fn machine_pid(&self, record: &RawEvent<'_>, pid: i32) -> i32 {
        let records = || {
            let mut at = Position::default();
            std::iter::from_fn(move || self.next(&mut at).ok())
        };
        let layout = self.attributes.list().first().map(|attribute| &attribute.layout);
        let id = layout.and_then(|layout| layout.id(record.record_type, record.body, self.endian));
        id.and_then(|id| self.guests.machine(id, self.endian, records)).unwrap_or(pid)
    }

    /// The content of compressed records; the first call unpacks them.
    pub fn unpacked(&self) -> &Unpacked {
        self.unpacked.get_or_init(|| {
            let mut offset = self.records.start;
            let mut pages = PassPages::default();
            let mut has_damage = false;
            let records = std::iter::from_fn(|| {
                let record = match self.accepted(offset) {
                    Ok(record) => record,
                    Err(reason) => {
                        has_damage = !matches!(reason, RecordsEnd::Complete | RecordsEnd::Message { .. });
                        return None;
                    }
                };
                pages.release_before(&self.source, record.offset);
                offset = offset.saturating_add(record.size);
                Some(record)
            });
            let mut unpacked = Unpacked::new(records, self.source.unpack_limit, self.endian);
            // A part of the stream may be in the damaged bytes, without which later parts are others.
            if has_damage {
                let message = "compressed records after damaged bytes are not unpacked";
                unpacked.error.get_or_insert((offset, message.to_owned()));
            }
            unpacked
        })
    }
}

/// Pages of a file and of its unpacked content during a pass over its records.
#[derive(Debug, Default)]
pub struct RecordPages {
    file: PassPages,
    unpacked: PassPages,
}

impl RecordPages {
    /// Returns pages before a position, which the pass does not need again.
    #[inline]
    pub fn release_before(&mut self, file: &RecordFile, at: Position) {
        self.file.release_before(&file.source, at.offset);
        self.unpacked.release_with(at.inner, |range| file.unpacked().release(range));
    }
}
