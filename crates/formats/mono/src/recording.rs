//! An open log, as a [`Recording`].

use std::any::Any;
use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use perfuse_recording::{
    BatchStream, CallStream, Format, Placement, Position, Recording, Repaired, Source, Summary, TableRequest,
    WallClockTime,
};
use perfuse_tables::{AllocationSum, Offsets, SnapshotSum};
use perfuse_wire::{Diagnostics, Endian, ParseError, RecordView, Value};

use crate::consts::EventByte;
use crate::decode::DecoderState;
use crate::header::Header;
use crate::log::LogData;
use crate::reader::EventBuffer;
use crate::records::Event;
use crate::survey::LogSurvey;
use crate::{FORMAT, check, ingest, named_fields, repair};

/// An open log.
#[derive(Debug)]
pub struct MonoLog {
    data: Arc<LogData>,
    /// Where the last record was read, so that the next one is found without decoding its buffer again.
    cursor: Mutex<Option<EventCursor>>,
}

/// The decoder's position after the last record that was read one by one.
#[derive(Clone, Copy, Debug)]
struct EventCursor {
    /// File offset of the next event.
    offset: u64,
    /// Index of its buffer.
    buffer: usize,
    state: DecoderState,
}

impl MonoLog {
    /// Reads the header.
    ///
    /// # Errors
    /// When there is no valid header, or the data version is unknown.
    pub fn open(source: Arc<Source>) -> Result<Self, ParseError> {
        Ok(Self { data: Arc::new(LogData::new(source)?), cursor: Mutex::new(None) })
    }

    /// The file header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.data.header
    }

    /// The result of the survey; computed once.
    #[must_use]
    pub fn survey(&self) -> &LogSurvey {
        self.data.survey()
    }

    /// The data of the log.
    #[must_use]
    pub fn data(&self) -> &Arc<LogData> {
        &self.data
    }

    /// Reads the next event at or after a position; returns it with the thread of its buffer.
    fn read_next<'a>(&'a self, at: &mut Position) -> Option<(Event<'a>, u64)> {
        let survey = self.survey();
        let buffers = &survey.buffers;
        let resumed = *self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let resumed = resumed.filter(|cursor| cursor.offset == at.offset);
        let mut number = resumed.map_or_else(|| buffers.at(at.offset), |cursor| cursor.buffer);
        let mut state = resumed.map(|cursor| cursor.state);
        let mut event = Event::default();
        loop {
            let buffer = buffers.list.get(number)?;
            let mut decoder = buffer.decoder(&self.data.source, survey.dialect);
            if let Some(state) = state.take() {
                decoder = decoder.resume(state);
            }
            while let Some(Ok(())) = decoder.read(&mut event) {
                if event.offset < at.offset {
                    continue;
                }
                *at = Position { offset: decoder.offset(), index: at.index.saturating_add(1), inner: 0 };
                let cursor = EventCursor { offset: at.offset, buffer: number, state: decoder.state() };
                *self.cursor.lock().unwrap_or_else(PoisonError::into_inner) = Some(cursor);
                return Some((event, buffer.header.thread_id));
            }
            number = number.saturating_add(1);
            at.offset = at.offset.max(buffer.end());
        }
    }

    /// Architecture as `uname -m` spells it; `None` if unknown.
    fn arch(&self) -> Option<&'static str> {
        Some(match self.data.header.text(1)?.as_str() {
            "x86-64" | "amd64" => "x86_64",
            "x86" => "i386",
            "arm64" => "aarch64",
            "arm" => "arm",
            "ppc" => "ppc",
            "ppc64" => "ppc64",
            "s390x" => "s390x",
            "sparc" => "sparc",
            "mips" => "mips",
            "riscv32" => "riscv32",
            "riscv64" => "riscv64",
            _ => return None,
        })
    }

    /// The header fields for `perfuse info`.
    fn header_fields(&self) -> Vec<(&'static str, Value<'static>)> {
        let header = &self.data.header;
        let fixed = header.fixed;
        let mut fields = vec![
            ("id", Value::Hex(fixed.id.into())),
            ("major", Value::Unsigned(fixed.major.into())),
            ("minor", Value::Unsigned(fixed.minor.into())),
            ("format", Value::Unsigned(fixed.format.into())),
            ("ptrsize", Value::Unsigned(fixed.ptrsize.into())),
            ("startup_time", Value::Unsigned(fixed.startup_time)),
        ];
        if fixed.major >= 3 {
            fields.push(("startup_ns", Value::Unsigned(header.startup_ns)));
        }
        fields.extend([
            ("timer_overhead", Value::Unsigned(header.timer_overhead.into())),
            ("flags", Value::Hex(header.flags.into())),
            ("pid", Value::Unsigned(header.pid.into())),
            ("port", Value::Unsigned(header.port.into())),
        ]);
        for (which, name) in ["args", "arch", "os"].into_iter().enumerate() {
            fields.extend(header.text(which).map(|text| (name, Value::Text(text.into()))));
        }
        fields.push(("buffers", Value::Unsigned(self.survey().buffers.list.len() as u64)));
        fields
    }
}

impl Recording for MonoLog {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn source(&self) -> &Arc<Source> {
        &self.data.source
    }

    fn summary(&self) -> Summary {
        let survey = self.survey();
        let fixed = self.data.header.fixed;
        let counts = EventByte::ALL.iter().map(|&byte| (byte.to_string(), survey.count(byte)));
        Summary {
            version: Some(survey.dialect.name()),
            endian: Endian::Little,
            pointer_bytes: Some(fixed.ptrsize),
            arch: self.arch(),
            producer: Some(format!("Mono log profiler {}.{}", fixed.major, fixed.minor)),
            clock: "monotonic",
            span: survey.events.span,
            counts: counts.filter(|(_, count)| *count > 0).collect(),
            header: self.header_fields(),
        }
    }

    fn pids(&self) -> Vec<i32> {
        vec![self.data.header.pid as i32]
    }

    fn process_start(&self) -> Option<i64> {
        i64::try_from(self.data.header.fixed.startup_time).ok().filter(|&ms| ms > 0)
    }

    fn read_record<'a>(&'a self, at: &mut Position, wanted: &dyn Fn(&str) -> bool) -> Option<RecordView<'a>> {
        let index = at.index;
        let (mut event, thread) = self.read_next(at)?;
        Some(named_fields::record_view(&self.survey().dialect, &mut event, index, thread, wanted))
    }

    fn seek_index(&self, index: u64) -> Position {
        let survey = self.survey();
        let first_indices = survey.first_indices();
        let number = first_indices.partition_point(|&first| first <= index).saturating_sub(1);
        let mut at = Position::default();
        if let (Some(buffer), Some(&first)) = (survey.buffers.list.get(number), first_indices.get(number)) {
            at = Position { offset: buffer.start(), index: first, inner: 0 };
        }
        while at.index < index && self.read_next(&mut at).is_some() {}
        at
    }

    fn seek_offset(&self, offset: u64) -> Option<Position> {
        let survey = self.survey();
        let number = survey.buffers.at(offset);
        let first = survey.first_indices().get(number).copied().unwrap_or_else(|| survey.num_events());
        let start = survey.buffers.list.get(number).map_or(offset, EventBuffer::start);
        let mut at = Position { offset: start, index: first, inner: 0 };
        loop {
            let before = at;
            match self.read_next(&mut at) {
                Some((event, _)) if event.offset >= offset => return Some(before),
                Some(_) => {}
                None => return Some(at),
            }
        }
    }

    fn check(&self, sink: &mut Diagnostics) {
        check::check(&self.data, sink);
    }

    fn findings(&self, sink: &mut Diagnostics) {
        check::findings(&self.data, sink);
    }

    fn repair(&self, out: &mut File) -> io::Result<Repaired> {
        repair::repair(&self.data, out)
    }

    fn fills(&self, table: &str) -> bool {
        ingest::fills(&self.data, table)
    }

    fn num_rows(&self, table: &str) -> Option<u64> {
        (table == "object_moves").then_some(self.survey().events.num_moves)
    }

    fn wall_clock_time(&self) -> Option<WallClockTime> {
        let header = &self.data.header;
        // Earlier headers have only the time of day, in milliseconds.
        let startup_ms = Some(header.fixed.startup_time).filter(|&ms| ms > 0 && header.fixed.major >= 3)?;
        let realtime_ns = i64::try_from(startup_ms).ok()?.checked_mul(1_000_000)?;
        Some(WallClockTime { ticks: header.startup_ns, realtime_ns })
    }

    fn extent(&self) -> Offsets {
        ingest::extent(&self.data)
    }

    fn table(&self, name: &str, placement: &Placement, request: &TableRequest) -> Option<BatchStream> {
        ingest::table(&self.data, name, placement, request)
    }

    fn call_segments(&self, placement: &Placement) -> Vec<CallStream> {
        ingest::call_segments(&self.data, placement)
    }

    fn allocation_sums(&self, placement: &Placement) -> Option<Vec<AllocationSum>> {
        ingest::allocation_totals(&self.data, placement)
    }

    fn snapshot_sums(&self, placement: &Placement) -> Option<Vec<SnapshotSum>> {
        ingest::heapshot_totals(&self.data, placement)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
