//! Writes FDR logs: buffers as in the source, or gathered for each thread where the source has none.

use std::hash::{BuildHasher, RandomState};
use std::io::Write;

use rustc_hash::{FxHashMap, FxHashSet};

use super::buffer::BufferWriter;
use super::sink::{
    BUFFER_BYTES, BufferStart, FinishLog, LogSink, LogSpec, ThreadEvent, ThreadIds, TscStamp, WriteError,
    WriteSummary,
};
use crate::consts::{FUNCTION_BYTES, METADATA_BYTES};
use crate::header::Mode;
use crate::records::{Record, XRayDialect};

/// Writes the buffers of an FDR log.
#[derive(Debug)]
pub struct FdrWriter<W: Write> {
    out: W,
    spec: LogSpec,
}

impl<W: Write> FdrWriter<W> {
    /// Starts a log with its header.
    ///
    /// # Errors
    /// When the version does not exist, or writing fails.
    pub fn new(mut out: W, spec: LogSpec) -> Result<Self, WriteError> {
        if spec.mode != Mode::Fdr || !spec.is_known() {
            return Err(WriteError::Version(spec.mode, spec.version));
        }
        out.write_all(&spec.header())?;
        Ok(Self { out, spec })
    }

    /// How the records are encoded.
    #[must_use]
    pub fn dialect(&self) -> XRayDialect {
        self.spec.dialect()
    }

    /// Size in bytes of a buffer in the file, without padding.
    #[must_use]
    pub fn bytes_of(buffer: &BufferWriter) -> u64 {
        // Plus BufferExtents before it, or EndOfBuffer after it.
        buffer.bytes().len().saturating_add(METADATA_BYTES) as u64
    }

    /// Appends a buffer after its extents; in version 1 padded to the distance of buffers.
    ///
    /// # Errors
    /// When writing fails, or a buffer of version 1 is larger than `buffer_size`.
    pub fn write(&mut self, buffer: &mut BufferWriter) -> Result<(), WriteError> {
        buffer.seal();
        let (bytes, records) = (Self::bytes_of(buffer), buffer.bytes());
        let dialect = self.dialect();
        let mut marker = Vec::with_capacity(METADATA_BYTES);
        if dialect.version > 1 {
            // Every version from 2 on defines it.
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

    /// The output.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Writes buffered bytes.
    ///
    /// # Errors
    /// When writing fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }

    /// Writes buffered bytes, and returns the output.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.out)
    }
}

/// Largest size of a call with its counter, its argument and the record that may complete the buffer.
const CALL_BYTES: usize = FUNCTION_BYTES + 3 * METADATA_BYTES;

/// Largest size of an event without its bytes, with its counter and the record that may complete the buffer.
const EVENT_BYTES: usize = 3 * METADATA_BYTES;

/// A sink that writes buffers when they end.
#[derive(Debug)]
pub struct FdrSink<W: Write> {
    writer: FdrWriter<W>,
    /// How records are encoded.
    dialect: XRayDialect,
    /// The current buffer, and whether one was started.
    buffer: BufferWriter,
    is_open: bool,
    /// Buffers of threads with events outside of a buffer, in order of appearance.
    gathered: Vec<BufferWriter>,
    of_thread: FxHashMap<ThreadIds, usize>,
    /// Whether the last call was omitted, and with it its arguments.
    left_out: bool,
    /// Tick rate, where ticks count from the start of CLOCK_MONOTONIC.
    monotonic_hz: Option<u64>,
    largest_bytes: u64,
    bytes: u64,
    written: WriteSummary,
    failed: Option<WriteError>,
    /// Two hashes of each buffer with a wall time, with keys that nobody can know.
    seen: FxHashSet<[u64; 2]>,
    hashers: [RandomState; 2],
}

impl<W: Write> FdrSink<W> {
    /// A sink that writes the version of `spec`.
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
            seen: FxHashSet::default(),
            hashers: [RandomState::new(), RandomState::new()],
        }
    }

    /// The same for ticks at this rate since the start of CLOCK_MONOTONIC, so that buffers get wall times.
    #[must_use]
    pub fn with_monotonic_ticks(self, hz: u64) -> Self {
        Self { monotonic_hz: Some(hz).filter(|&hz| hz > 0), ..self }
    }

    /// The output of bytes.
    pub fn get_mut(&mut self) -> &mut W {
        self.writer.get_mut()
    }

    /// Size of the largest buffer, total size of all, and number of buffers.
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

    /// Writes a buffer, and counts it. Buffers of the source may become equal, when the items in which they differ cannot be
    /// represented: readers would take the second one for a copy, so it is written once.
    fn write(&mut self, buffer: &mut BufferWriter) -> Result<(), WriteError> {
        buffer.seal();
        if buffer.has_wall()
            && !self.seen.insert(self.hashers.each_ref().map(|it| it.hash_one(buffer.bytes())))
        {
            let unsupported = &mut self.written.unsupported;
            unsupported.copies = unsupported.copies.saturating_add(1);
            return Ok(());
        }
        let bytes = FdrWriter::<W>::bytes_of(buffer);
        self.largest_bytes = self.largest_bytes.max(bytes);
        self.bytes = self.bytes.saturating_add(bytes);
        self.written.num_buffers = self.written.num_buffers.saturating_add(1);
        let unsupported = &mut self.written.unsupported;
        unsupported.ambiguous = unsupported.ambiguous.saturating_add(buffer.is_ambiguous().into());
        self.writer.write(buffer)
    }

    /// Counts a process id that the version cannot represent, and a missing wall time.
    fn count_missing_ids(&mut self, (pid, _): ThreadIds, has_wall: bool) {
        let unsupported = &mut self.written.unsupported;
        let is_lost = self.dialect.version < 3 && pid != 0;
        unsupported.pids = unsupported.pids.saturating_add(is_lost.into());
        unsupported.unknown_wall_times = unsupported.unknown_wall_times.saturating_add((!has_wall).into());
    }

    /// Appends an event to the gathered buffer of its thread. A full buffer is written before a call, not between a
    /// call and its argument.
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

    /// Whether the event fits into a buffer of the usual size; a call together with its argument, both with a
    /// counter.
    fn has_room(&self, event: &ThreadEvent<'_>) -> bool {
        let more = match event {
            ThreadEvent::Call { .. } => CALL_BYTES,
            ThreadEvent::Argument(_) => 0,
            ThreadEvent::Event { payload, .. } => payload.len().saturating_add(EVENT_BYTES),
        };
        let bytes = FdrWriter::<W>::bytes_of(&self.buffer).saturating_add(more as u64);
        self.buffer.is_empty() || more == 0 || bytes <= BUFFER_BYTES
    }

    /// Seconds and microseconds of CLOCK_MONOTONIC; 0 where unknown.
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
