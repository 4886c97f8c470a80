//! Writes Basic mode logs: a record for every call, with its absolute counter.

use std::io::Write;

use super::sink::{
    BufferStart, FinishLog, LogSink, LogSpec, ThreadEvent, ThreadIds, TscStamp, WriteError, WriteSummary,
};
use crate::basic::BasicItem;
use crate::consts::Action;
use crate::header::Mode;
use crate::layout::{BasicArgument, BasicRecord};

/// Number of buffered bytes above which they are written.
const FLUSH_BYTES: usize = 1 << 16;

/// Offset of the kind in a record.
const KIND_OFFSET: usize = 3;

/// Encodes the records of a Basic mode log.
#[derive(Debug)]
pub struct BasicWriter<W: Write> {
    out: W,
    spec: LogSpec,
    buffer: Vec<u8>,
    /// The entry that an argument would belong to: its offset in the buffer, its thread, its function.
    entry: Option<(usize, ThreadIds, i32)>,
}

impl<W: Write> BasicWriter<W> {
    /// Starts a log with its header.
    ///
    /// # Errors
    /// When the version does not exist, or writing fails.
    pub fn new(mut out: W, spec: LogSpec) -> Result<Self, WriteError> {
        if spec.mode != Mode::Basic || !spec.is_known() {
            return Err(WriteError::Version(spec.mode, spec.version));
        }
        out.write_all(&spec.header())?;
        Ok(Self { out, spec, buffer: Vec::new(), entry: None })
    }

    /// Appends a function entry or exit. Processor numbers are truncated to 8 bits; version 1 has no tail exits, and
    /// versions before 3 no process.
    ///
    /// # Errors
    /// When writing fails.
    pub fn call(
        &mut self,
        thread_ids: ThreadIds,
        at: TscStamp,
        action: Action,
        function_id: i32,
    ) -> Result<(), WriteError> {
        if self.buffer.len() >= FLUSH_BYTES {
            self.drain()?;
        }
        let is_entry = matches!(action, Action::ENTRY | Action::ENTRY_ARGS);
        self.entry = is_entry.then_some((self.buffer.len(), thread_ids, function_id));
        let TscStamp { tsc, cpu } = at;
        let record = BasicRecord {
            record_type: 0,
            cpu: (cpu & 0xff) as u8,
            kind: self.kind(action),
            function_id,
            tsc,
            tid: thread_ids.1.cast_unsigned(),
            pid: self.pid(thread_ids),
            reserved: 0,
        };
        BasicItem::Function(record).encode(self.spec.endian, &mut self.buffer);
        Ok(())
    }

    /// Appends an argument of the function entered last. Returns false, and appends nothing, where that was in
    /// another thread or the version has no arguments.
    pub fn argument(&mut self, thread_ids: ThreadIds, argument: u64) -> bool {
        let Some((offset, entered, function_id)) = self.entry.take() else { return false };
        if entered != thread_ids || self.spec.version < 2 {
            return false;
        }
        if let Some(kind) = self.buffer.get_mut(offset.saturating_add(KIND_OFFSET)) {
            *kind = Action::ENTRY_ARGS.0;
        }
        let record = BasicArgument {
            record_type: 1,
            padding: 0,
            function_id,
            tid: thread_ids.1.cast_unsigned(),
            pid: self.pid(thread_ids),
            argument,
            reserved: 0,
        };
        BasicItem::Argument(record).encode(self.spec.endian, &mut self.buffer);
        true
    }

    /// The output.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Writes buffered records.
    ///
    /// # Errors
    /// When writing fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.drain()?;
        Ok(self.out.flush()?)
    }

    /// Writes buffered records, and returns the output.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.out)
    }

    /// The action in the form its version has.
    fn kind(&self, action: Action) -> u8 {
        match (self.spec.version, action) {
            (1, Action::TAIL_EXIT) => Action::EXIT.0,
            (1, Action::ENTRY_ARGS) => Action::ENTRY.0,
            (_, action) => action.0,
        }
    }

    /// The process id; 0 before version 3.
    fn pid(&self, (pid, _): ThreadIds) -> u32 {
        if self.spec.version < 3 { 0 } else { pid.cast_unsigned() }
    }

    /// Writes the buffered records.
    fn drain(&mut self) -> Result<(), WriteError> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        self.entry = None;
        Ok(())
    }
}

/// A sink that writes events at once.
#[derive(Debug)]
pub struct BasicSink<W: Write> {
    writer: BasicWriter<W>,
    version: u16,
    written: WriteSummary,
    failed: Option<WriteError>,
}

impl<W: Write> BasicSink<W> {
    /// A sink for a version.
    pub fn new(writer: BasicWriter<W>, version: u16) -> Self {
        Self { writer, version, written: WriteSummary::default(), failed: None }
    }

    /// The output of bytes.
    pub fn get_mut(&mut self) -> &mut W {
        self.writer.get_mut()
    }

    /// Writes a function record, and counts what it cannot represent.
    fn call(&mut self, thread_ids: ThreadIds, at: TscStamp, action: Action, function_id: u32) {
        let unsupported = &mut self.written.unsupported;
        let count = |so_far: &mut u64, when: bool| *so_far = so_far.saturating_add(u64::from(when));
        count(&mut unsupported.cpus, at.cpu > 0xff);
        count(&mut unsupported.pids, self.version < 3 && thread_ids.0 != 0);
        count(&mut unsupported.tail_exits, self.version < 2 && action == Action::TAIL_EXIT);
        count(&mut self.written.num_calls, true);
        if let Err(error) = self.writer.call(thread_ids, at, action, function_id.cast_signed()) {
            let _ = self.failed.get_or_insert(error);
        }
    }
}

impl<W: Write> LogSink for BasicSink<W> {
    fn begin(&mut self, start: &BufferStart) {
        let is_lost = start.wall != (0, 0);
        let so_far = self.written.unsupported.wall_times;
        self.written.unsupported.wall_times = so_far.saturating_add(is_lost.into());
    }

    fn end(&mut self, _even_empty: bool) -> Result<(), WriteError> {
        self.check()
    }

    fn new_cpu(&mut self, _at: TscStamp) {}

    fn wrap(&mut self, _tsc: u64) {}

    fn write_event(&mut self, thread_ids: ThreadIds, at: TscStamp, event: ThreadEvent<'_>) {
        let unsupported = &mut self.written.unsupported;
        match event {
            ThreadEvent::Call { action, function_id } => self.call(thread_ids, at, action, function_id),
            ThreadEvent::Argument(value) => {
                let is_lost = !self.writer.argument(thread_ids, value);
                unsupported.arguments = unsupported.arguments.saturating_add(is_lost.into());
            }
            ThreadEvent::Event { .. } => unsupported.events = unsupported.events.saturating_add(1),
        }
    }

    fn check(&mut self) -> Result<(), WriteError> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl<W: Write> FinishLog for BasicSink<W> {
    fn finish(&mut self) -> Result<WriteSummary, WriteError> {
        self.check()?;
        self.writer.flush()?;
        Ok(self.written)
    }
}
