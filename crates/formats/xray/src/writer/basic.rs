//! Writes Basic mode logs: a record for every call, each with its whole time.

use std::io::Write;

use super::sink::{Beginning, Finish, LogSpec, Moment, Owner, Sink, Told, WriteError, Written};
use crate::basic::Entry;
use crate::consts::Action;
use crate::header::Mode;
use crate::layout::{BasicArgument, BasicRecord};

/// Bytes that are gathered before they are written.
const GATHERED: usize = 1 << 16;

/// Place of the kind in a record.
const KIND: usize = 3;

/// Writes the records of a Basic mode log to a sink.
#[derive(Debug)]
pub struct BasicWriter<W: Write> {
    out: W,
    spec: LogSpec,
    buffer: Vec<u8>,
    /// The entry that an argument would belong to: its place in the buffer, whose it is, its function.
    entry: Option<(usize, Owner, i32)>,
}

impl<W: Write> BasicWriter<W> {
    /// Begins a log with its header.
    ///
    /// # Errors
    /// When there is no such version, or the sink refuses.
    pub fn new(mut out: W, spec: LogSpec) -> Result<Self, WriteError> {
        if spec.mode != Mode::Basic || !spec.is_known() {
            return Err(WriteError::Version(spec.mode, spec.version));
        }
        out.write_all(&spec.header())?;
        Ok(Self { out, spec, buffer: Vec::new(), entry: None })
    }

    /// Appends that a function was entered or left. Of the processor 8 bits are written; version 1 knows no tail exits, and
    /// versions before 3 no process.
    ///
    /// # Errors
    /// When the sink refuses.
    pub fn call(
        &mut self,
        owner: Owner,
        at: Moment,
        action: Action,
        function_id: i32,
    ) -> Result<(), WriteError> {
        if self.buffer.len() >= GATHERED {
            self.drain()?;
        }
        let is_entry = matches!(action, Action::ENTRY | Action::ENTRY_ARGS);
        self.entry = is_entry.then_some((self.buffer.len(), owner, function_id));
        let Moment { tsc, cpu } = at;
        let record = BasicRecord {
            record_type: 0,
            cpu: (cpu & 0xff) as u8,
            kind: self.kind(action),
            function_id,
            tsc,
            tid: owner.1.cast_unsigned(),
            pid: self.pid(owner),
            reserved: 0,
        };
        Entry::Normal(record).encode(self.spec.endian, &mut self.buffer);
        Ok(())
    }

    /// Appends the argument of the function that was entered last; false, and nothing is, where that was another thread, or
    /// the version has none.
    pub fn argument(&mut self, owner: Owner, argument: u64) -> bool {
        let Some((place, entered, function_id)) = self.entry.take() else { return false };
        if entered != owner || self.spec.version < 2 {
            return false;
        }
        if let Some(kind) = self.buffer.get_mut(place.saturating_add(KIND)) {
            *kind = Action::ENTRY_ARGS.0;
        }
        let record = BasicArgument {
            record_type: 1,
            padding: 0,
            function_id,
            tid: owner.1.cast_unsigned(),
            pid: self.pid(owner),
            argument,
            reserved: 0,
        };
        Entry::Argument(record).encode(self.spec.endian, &mut self.buffer);
        true
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
        self.drain()?;
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

    fn kind(&self, action: Action) -> u8 {
        match (self.spec.version, action) {
            (1, Action::TAIL_EXIT) => Action::EXIT.0,
            (1, Action::ENTRY_ARGS) => Action::ENTRY.0,
            (_, action) => action.0,
        }
    }

    fn pid(&self, (pid, _): Owner) -> u32 {
        if self.spec.version < 3 { 0 } else { pid.cast_unsigned() }
    }

    fn drain(&mut self) -> Result<(), WriteError> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        self.entry = None;
        Ok(())
    }
}

/// Writes what it is told at once.
#[derive(Debug)]
pub struct ToBasic<W: Write> {
    writer: BasicWriter<W>,
    version: u16,
    written: Written,
    failed: Option<WriteError>,
}

impl<W: Write> ToBasic<W> {
    /// A sink that writes such a version.
    pub fn new(writer: BasicWriter<W>, version: u16) -> Self {
        Self { writer, version, written: Written::default(), failed: None }
    }

    /// The sink of its bytes.
    pub fn get_mut(&mut self) -> &mut W {
        self.writer.get_mut()
    }

    fn call(&mut self, owner: Owner, at: Moment, action: Action, function_id: u32) {
        let misfits = &mut self.written.misfits;
        let count = |so_far: &mut u64, when: bool| *so_far = so_far.saturating_add(u64::from(when));
        count(&mut misfits.cpus, at.cpu > 0xff);
        count(&mut misfits.pids, self.version < 3 && owner.0 != 0);
        count(&mut misfits.tail_exits, self.version < 2 && action == Action::TAIL_EXIT);
        count(&mut self.written.num_calls, true);
        if let Err(error) = self.writer.call(owner, at, action, function_id.cast_signed()) {
            let _ = self.failed.get_or_insert(error);
        }
    }
}

impl<W: Write> Sink for ToBasic<W> {
    fn begin(&mut self, beginning: &Beginning) {
        let lost = beginning.wall != (0, 0);
        let lost_before = self.written.misfits.wall_times;
        self.written.misfits.wall_times = lost_before.saturating_add(lost.into());
    }

    fn end(&mut self, _even_empty: bool) -> Result<(), WriteError> {
        self.check()
    }

    fn new_cpu(&mut self, _at: Moment) {}

    fn wrap(&mut self, _tsc: u64) {}

    fn tell(&mut self, owner: Owner, at: Moment, told: Told<'_>) {
        let misfits = &mut self.written.misfits;
        match told {
            Told::Call { action, function_id } => self.call(owner, at, action, function_id),
            Told::Argument(value) => {
                let lost = !self.writer.argument(owner, value);
                misfits.arguments = misfits.arguments.saturating_add(lost.into());
            }
            Told::Event { .. } => misfits.events = misfits.events.saturating_add(1),
        }
    }

    fn check(&mut self) -> Result<(), WriteError> {
        self.failed.take().map_or(Ok(()), Err)
    }
}

impl<W: Write> Finish for ToBasic<W> {
    fn finish(&mut self) -> Result<Written, WriteError> {
        self.check()?;
        self.writer.flush()?;
        Ok(self.written)
    }
}
