//! Into a Basic mode log: a record for every call, the times of each whole.

use std::io::Write;

use super::super::consts::Action;
use super::{BasicWriter, Beginning, Finish, Moment, Owner, Sink, Told, WriteError, Written};

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
