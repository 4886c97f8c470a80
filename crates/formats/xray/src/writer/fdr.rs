//! Writes FDR logs: buffers as they were, or gathered for each thread where the source has none.

use std::io::Write;

use rustc_hash::FxHashMap;

use super::buffer::BufferWriter;
use super::sink::{
    BUFFER_BYTES, BufferStart, FinishLog, LogSink, LogSpec, ThreadEvent, ThreadIds, TscStamp, WriteError,
    WriteSummary,
};
use crate::consts::{FUNCTION_BYTES, METADATA_BYTES};
use crate::header::Mode;
use crate::records::{Dialect, Record};

/// Writes the buffers of an FDR log to a sink.
#[derive(Debug)]
pub struct FdrWriter<W: Write> {
    out: W,
    spec: LogSpec,
}

impl<W: Write> FdrWriter<W> {
    /// Begins a log with its header.
    ///
    /// # Errors
    /// When there is no such version, or the sink refuses.
    pub fn new(mut out: W, spec: LogSpec) -> Result<Self, WriteError> {
        if spec.mode != Mode::Fdr || !spec.is_known() {
            return Err(WriteError::Version(spec.mode, spec.version));
        }
        out.write_all(&spec.header())?;
        Ok(Self { out, spec })
    }

    /// How records of its buffers are written.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.spec.dialect()
    }

    /// Bytes that a buffer takes in a log of a version, padding apart.
    #[must_use]
    pub fn bytes_of(buffer: &BufferWriter) -> u64 {
        // BufferExtents before it, or EndOfBuffer behind.
        buffer.bytes().len().saturating_add(METADATA_BYTES) as u64
    }

    /// Appends a buffer: behind its extents, or up to the place of the next one.
    ///
    /// # Errors
    /// When the sink refuses, or a buffer of version 1 is larger than `buffer_size`.
    pub fn write(&mut self, buffer: &mut BufferWriter) -> Result<(), WriteError> {
        buffer.seal();
        let (bytes, records) = (Self::bytes_of(buffer), buffer.bytes());
        let dialect = self.dialect();
        let mut marker = Vec::with_capacity(METADATA_BYTES);
        if dialect.version > 1 {
            // Every version from 2 on has it.
            let _ = Record::BufferExtents(records.len() as u64).encode(dialect, &mut marker);
            self.out.write_all(&marker)?;
            self.out.write_all(records)?;
            return Ok(());
        }
        let buffer_size = self.spec.buffer_size;
        let padding = buffer_size.checked_sub(bytes).ok_or(WriteError::TooLarge { bytes, buffer_size })?;
        let _ = Record::EndOfBuffer.encode(dialect, &mut marker);
        self.out.write_all(records)?;
        self.out.write_all(&marker)?;
        std::io::copy(&mut std::io::Read::take(std::io::repeat(0), padding), &mut self.out)?;
        Ok(())
    }

    /// The sink.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Hands everything on.
    ///
    /// # Errors
    /// When the sink refuses.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }

    /// Hands everything on, and gives the sink back.
    ///
    /// # Errors
    /// When the sink refuses.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.out)
    }
}

/// Most bytes a call takes, with its counter, its argument and what may end the buffer.
const CALL_BYTES: usize = FUNCTION_BYTES + 3 * METADATA_BYTES;

/// Most bytes an event takes beside its own, with its counter and what may end the buffer.
const EVENT_BYTES: usize = 3 * METADATA_BYTES;

/// Writes buffers as they end.
#[derive(Debug)]
pub struct FdrSink<W: Write> {
    writer: FdrWriter<W>,
    /// How records are written.
    dialect: Dialect,
    /// The buffer that was begun, and whether it is.
    buffer: BufferWriter,
    is_open: bool,
    /// Buffers of threads that told something without one, in the order they came.
    gathered: Vec<BufferWriter>,
    of_thread: FxHashMap<ThreadIds, usize>,
    /// Whether the last call was left out, and its argument is to be.
    left_out: bool,
    /// Rate of ticks that count from when CLOCK_MONOTONIC began, where they do.
    monotonic_hz: Option<u64>,
    largest_bytes: u64,
    bytes: u64,
    written: WriteSummary,
    failed: Option<WriteError>,
}

impl<W: Write> FdrSink<W> {
    /// A sink whose records are of the version of `spec`.
    pub fn new(writer: FdrWriter<W>, spec: LogSpec) -> Self {
        let nothing = BufferStart { thread_ids: (0, 0), wall: (0, 0), at: TscStamp::default() };
        let dialect = spec.dialect();
        Self {
            writer,
            dialect,
            buffer: BufferWriter::new(dialect, &nothing),
            is_open: false,
            gathered: Vec::new(),
            of_thread: FxHashMap::default(),
            left_out: false,
            monotonic_hz: None,
            largest_bytes: 0,
            bytes: 0,
            written: WriteSummary::default(),
            failed: None,
        }
    }

    /// The same, of a thread's time since CLOCK_MONOTONIC began: ticks at this rate. So its buffers have wall times.
    #[must_use]
    pub fn with_monotonic_ticks(self, hz: u64) -> Self {
        Self { monotonic_hz: Some(hz).filter(|&hz| hz > 0), ..self }
    }

    /// The sink of its bytes.
    pub fn get_mut(&mut self) -> &mut W {
        self.writer.get_mut()
    }

    /// Bytes of the largest buffer, bytes of all, and how many there are.
    pub fn sizes(&self) -> (u64, u64, u64) {
        (self.largest_bytes, self.bytes, self.written.num_buffers)
    }

    /// Writes the gathered buffers that are not empty.
    pub fn write_gathered(&mut self) -> Result<(), WriteError> {
        for mut buffer in std::mem::take(&mut self.gathered) {
            if !buffer.is_empty() {
                self.write(&mut buffer)?;
            }
        }
        self.of_thread.clear();
        Ok(())
    }

    fn write(&mut self, buffer: &mut BufferWriter) -> Result<(), WriteError> {
        buffer.seal();
        let bytes = FdrWriter::<W>::bytes_of(buffer);
        self.largest_bytes = self.largest_bytes.max(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        self.written.num_buffers = self.written.num_buffers.saturating_add(1);
        let unsupported = &mut self.written.unsupported;
        unsupported.ambiguous = unsupported.ambiguous.saturating_add(buffer.is_ambiguous().into());
        self.writer.write(buffer)
    }

    fn count_missing_ids(&mut self, (pid, _): ThreadIds, has_wall: bool) {
        let unsupported = &mut self.written.unsupported;
        let is_lost = self.dialect.version < 3 && pid != 0;
        unsupported.pids = unsupported.pids.saturating_add(is_lost.into());
        unsupported.unknown_wall_times = unsupported.unknown_wall_times.saturating_add((!has_wall).into());
    }

    /// The buffer a thread's records are gathered in; full ones are written before a call, not between it and its argument.
    fn append_gathered(&mut self, thread_ids: ThreadIds, at: TscStamp, event: &ThreadEvent<'_>) {
        let start = BufferStart { thread_ids, wall: self.wall(at), at };
        let has_wall = start.wall != (0, 0);
        let index = match self.of_thread.get(&thread_ids) {
            Some(&index) => index,
            None => {
                self.count_missing_ids(thread_ids, has_wall);
                self.gathered.push(BufferWriter::new(self.dialect, &start));
                let index = self.gathered.len().saturating_sub(1);
                self.of_thread.insert(thread_ids, index);
                index
            }
        };
        let Some(slot) = self.gathered.get_mut(index) else { return };
        std::mem::swap(&mut self.buffer, slot);
        if !self.has_room(event) {
            let mut full = std::mem::replace(&mut self.buffer, BufferWriter::new(self.dialect, &start));
            if let Err(error) = self.write(&mut full) {
                let _ = self.failed.get_or_insert(error);
            }
            self.count_missing_ids(thread_ids, has_wall);
        }
        self.append_event(at, event);
        if let Some(slot) = self.gathered.get_mut(index) {
            std::mem::swap(&mut self.buffer, slot);
        }
    }

    /// Whether the buffer stays of the usual size with this in it: a call with its argument, each behind a counter.
    fn has_room(&self, event: &ThreadEvent<'_>) -> bool {
        let more = match event {
            ThreadEvent::Call { .. } => CALL_BYTES,
            ThreadEvent::Argument(_) => 0,
            ThreadEvent::Event { payload, .. } => payload.len().saturating_add(EVENT_BYTES),
        };
        let bytes = FdrWriter::<W>::bytes_of(&self.buffer).saturating_add(more as u64);
        self.buffer.is_empty() || more == 0 || bytes <= BUFFER_BYTES
    }

    /// Seconds and microseconds of CLOCK_MONOTONIC, where ticks tell.
    fn wall(&self, at: TscStamp) -> (i64, i32) {
        let Some(hz) = self.monotonic_hz else { return (0, 0) };
        let (seconds, rest) = (at.tsc.checked_div(hz), at.tsc.checked_rem(hz).unwrap_or(0));
        let microseconds = u128::from(rest).saturating_mul(1_000_000).checked_div(hz.into());
        let seconds = seconds.and_then(|seconds| i64::try_from(seconds).ok()).unwrap_or(i64::MAX);
        (seconds, microseconds.and_then(|micros| i32::try_from(micros).ok()).unwrap_or(0))
    }

    #[inline]
    fn append_event(&mut self, at: TscStamp, event: &ThreadEvent<'_>) {
        let WriteSummary { num_calls, num_events, unsupported, .. } = &mut self.written;
        match *event {
            ThreadEvent::Call { action, function_id } => match self.buffer.call(at, action, function_id) {
                Ok(()) => {
                    *num_calls = num_calls.wrapping_add(1);
                    self.left_out = false;
                }
                Err(_) => {
                    unsupported.function_ids = unsupported.function_ids.saturating_add(1);
                    self.left_out = true;
                }
            },
            ThreadEvent::Argument(value) => {
                if self.left_out || !self.buffer.argument(value) {
                    unsupported.arguments = unsupported.arguments.saturating_add(1);
                }
            }
            ThreadEvent::Event { event_type, payload } => {
                match self.buffer.event(at, event_type, payload) {
                    Ok(()) => *num_events = num_events.saturating_add(1),
                    Err(_) => unsupported.events = unsupported.events.saturating_add(1),
                }
                self.left_out = false;
            }
        }
    }
}

impl<W: Write> LogSink for FdrSink<W> {
    fn begin(&mut self, start: &BufferStart) {
        self.buffer.restart(start);
        self.is_open = true;
        self.left_out = false;
        self.count_missing_ids(start.thread_ids, start.wall != (0, 0));
    }

    fn end(&mut self, even_empty: bool) -> Result<(), WriteError> {
        self.is_open = false;
        if even_empty || !self.buffer.is_empty() {
            let nothing = BufferStart { thread_ids: (0, 0), wall: (0, 0), at: TscStamp::default() };
            let mut buffer = std::mem::replace(&mut self.buffer, BufferWriter::new(self.dialect, &nothing));
            let done = self.write(&mut buffer);
            self.buffer = buffer;
            done?;
        }
        self.check()
    }

    fn new_cpu(&mut self, at: TscStamp) {
        self.buffer.new_cpu(at);
    }

    fn wrap(&mut self, tsc: u64) {
        self.buffer.wrap(tsc);
    }

    #[inline]
    fn write_event(&mut self, thread_ids: ThreadIds, at: TscStamp, event: ThreadEvent<'_>) {
        if self.is_open {
            self.append_event(at, &event);
        } else {
            self.append_gathered(thread_ids, at, &event);
        }
    }

    fn check(&mut self) -> Result<(), WriteError> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl<W: Write> FinishLog for FdrSink<W> {
    fn finish(&mut self) -> Result<WriteSummary, WriteError> {
        self.write_gathered()?;
        self.check()?;
        self.writer.flush()?;
        Ok(self.written)
    }
}
