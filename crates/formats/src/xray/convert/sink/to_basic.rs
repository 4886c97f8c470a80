//! Into a Basic mode log: a record for every call, the times of each whole.

use std::io::Write;

use super::super::super::consts::Action;
use super::super::super::writer::{BasicWriter, Beginning, Moment, Owner, Told, WriteError};
use super::super::{ConvertError, Converted};
use super::{Finish, Sink};

/// Writes what it is told at once.
#[derive(Debug)]
pub struct ToBasic<W: Write> {
    writer: BasicWriter<W>,
    version: u16,
    converted: Converted,
    failed: Option<WriteError>,
}

impl<W: Write> ToBasic<W> {
    /// A sink that writes such a version.
    pub fn new(writer: BasicWriter<W>, version: u16) -> Self {
        Self { writer, version, converted: Converted::default(), failed: None }
    }

    fn call(&mut self, owner: Owner, at: Moment, action: Action, function_id: u32) {
        let misfits = &mut self.converted.misfits;
        let count = |so_far: &mut u64, when: bool| *so_far = so_far.saturating_add(u64::from(when));
        count(&mut misfits.cpus, at.cpu > 0xff);
        count(&mut misfits.pids, self.version < 3 && owner.0 != 0);
        count(&mut misfits.tail_exits, self.version < 2 && action == Action::TAIL_EXIT);
        count(&mut self.converted.num_calls, true);
        if let Err(error) = self.writer.call(owner, at, action, function_id.cast_signed()) {
            let _ = self.failed.get_or_insert(error);
        }
    }
}

impl<W: Write> Sink for ToBasic<W> {
    fn begin(&mut self, beginning: &Beginning) {
        let lost = beginning.wall != (0, 0);
        let lost_before = self.converted.misfits.wall_times;
        self.converted.misfits.wall_times = lost_before.saturating_add(lost.into());
    }

    fn end(&mut self, _even_empty: bool) -> Result<(), ConvertError> {
        self.check()
    }

    fn new_cpu(&mut self, _at: Moment) {}

    fn wrap(&mut self, _tsc: u64) {}

    fn tell(&mut self, owner: Owner, at: Moment, told: Told<'_>) {
        let misfits = &mut self.converted.misfits;
        match told {
            Told::Call { action, function_id } => self.call(owner, at, action, function_id),
            Told::Argument(value) => {
                let lost = !self.writer.argument(owner, value);
                misfits.arguments = misfits.arguments.saturating_add(lost.into());
            }
            Told::Event { .. } => misfits.events = misfits.events.saturating_add(1),
        }
    }

    fn check(&mut self) -> Result<(), ConvertError> {
        self.failed.take().map_or(Ok(()), |error| Err(error.into()))
    }
}

impl<W: Write> Finish for ToBasic<W> {
    fn finish(mut self) -> Result<Converted, ConvertError> {
        self.check()?;
        self.writer.finish()?;
        Ok(self.converted)
    }
}
