//! Into an FDR log: buffers as they were, or gathered for each thread where the log had none.

use std::io::Write;

use rustc_hash::FxHashMap;

use super::super::super::records::Dialect;
use super::super::super::writer::{Beginning, Buffer, FdrWriter, LogSpec, Moment, Owner, Told, WriteError};
use super::super::{BUFFER_BYTES, ConvertError, Converted};
use super::{Finish, Sink};

/// Writes buffers as they end.
#[derive(Debug)]
pub struct ToFdr<W: Write> {
    writer: FdrWriter<W>,
    /// How records are written.
    dialect: Dialect,
    /// The buffer that was begun, and whether it is.
    buffer: Buffer,
    is_open: bool,
    /// Buffers of threads that told something without one, in the order they came.
    gathered: Vec<Buffer>,
    of_thread: FxHashMap<Owner, usize>,
    /// Whether the last call was left out, and its argument is to be.
    left_out: bool,
    largest: u64,
    written: u64,
    converted: Converted,
    failed: Option<WriteError>,
}

impl<W: Write> ToFdr<W> {
    /// A sink whose records are of the version of `spec`.
    pub fn new(writer: FdrWriter<W>, spec: LogSpec) -> Self {
        let nothing = Beginning { owner: (0, 0), wall: (0, 0), at: Moment::default() };
        let dialect = spec.dialect();
        Self {
            writer,
            dialect,
            buffer: Buffer::new(dialect, &nothing),
            is_open: false,
            gathered: Vec::new(),
            of_thread: FxHashMap::default(),
            left_out: false,
            largest: 0,
            written: 0,
            converted: Converted::default(),
            failed: None,
        }
    }

    /// Bytes of the largest buffer, bytes of all, and how many there are.
    pub fn sizes(&self) -> (u64, u64, u64) {
        (self.largest, self.written, self.converted.num_buffers)
    }

    /// Writes the gathered buffers that are not empty.
    pub fn write_gathered(&mut self) -> Result<(), ConvertError> {
        for mut buffer in std::mem::take(&mut self.gathered) {
            if !buffer.is_empty() {
                self.write(&mut buffer)?;
            }
        }
        self.of_thread.clear();
        Ok(())
    }

    fn write(&mut self, buffer: &mut Buffer) -> Result<(), WriteError> {
        buffer.seal();
        let bytes = FdrWriter::<W>::bytes_of(buffer);
        self.largest = self.largest.max(bytes);
        self.written = self.written.saturating_add(bytes);
        self.converted.num_buffers = self.converted.num_buffers.saturating_add(1);
        let misfits = &mut self.converted.misfits;
        misfits.doubtful = misfits.doubtful.saturating_add(buffer.is_doubtful().into());
        self.writer.write(buffer)
    }

    fn count_owner(&mut self, (pid, _): Owner, has_wall: bool) {
        let misfits = &mut self.converted.misfits;
        let lost = self.dialect.version < 3 && pid != 0;
        misfits.pids = misfits.pids.saturating_add(lost.into());
        misfits.unknown_wall_times = misfits.unknown_wall_times.saturating_add((!has_wall).into());
    }

    /// The buffer a thread's records are gathered in; full ones are written before a call, not between it and its argument.
    fn gather(&mut self, owner: Owner, at: Moment, told: &Told<'_>) {
        let beginning = Beginning { owner, wall: (0, 0), at };
        let place = match self.of_thread.get(&owner) {
            Some(&place) => place,
            None => {
                self.count_owner(owner, false);
                self.gathered.push(Buffer::new(self.dialect, &beginning));
                let place = self.gathered.len().saturating_sub(1);
                self.of_thread.insert(owner, place);
                place
            }
        };
        let Some(slot) = self.gathered.get_mut(place) else { return };
        std::mem::swap(&mut self.buffer, slot);
        let is_full = self.buffer.bytes().len() as u64 >= BUFFER_BYTES;
        if is_full && !matches!(told, Told::Argument(_)) {
            let mut full = std::mem::replace(&mut self.buffer, Buffer::new(self.dialect, &beginning));
            if let Err(error) = self.write(&mut full) {
                let _ = self.failed.get_or_insert(error);
            }
            self.count_owner(owner, false);
        }
        self.put(at, told);
        if let Some(slot) = self.gathered.get_mut(place) {
            std::mem::swap(&mut self.buffer, slot);
        }
    }

    #[inline]
    fn put(&mut self, at: Moment, told: &Told<'_>) {
        let Converted { num_calls, num_events, misfits, .. } = &mut self.converted;
        match *told {
            Told::Call { action, function_id } => match self.buffer.call(at, action, function_id) {
                Ok(()) => {
                    *num_calls = num_calls.wrapping_add(1);
                    self.left_out = false;
                }
                Err(_) => {
                    misfits.function_ids = misfits.function_ids.saturating_add(1);
                    self.left_out = true;
                }
            },
            Told::Argument(value) => {
                if self.left_out || !self.buffer.argument(value) {
                    misfits.arguments = misfits.arguments.saturating_add(1);
                }
            }
            Told::Event { event_type, payload } => {
                match self.buffer.event(at, event_type, payload) {
                    Ok(()) => *num_events = num_events.saturating_add(1),
                    Err(_) => misfits.events = misfits.events.saturating_add(1),
                }
                self.left_out = false;
            }
        }
    }
}

impl<W: Write> Sink for ToFdr<W> {
    fn begin(&mut self, beginning: &Beginning) {
        self.buffer.restart(beginning);
        self.is_open = true;
        self.left_out = false;
        self.count_owner(beginning.owner, beginning.wall != (0, 0));
    }

    fn end(&mut self, even_empty: bool) -> Result<(), ConvertError> {
        self.is_open = false;
        if even_empty || !self.buffer.is_empty() {
            let nothing = Beginning { owner: (0, 0), wall: (0, 0), at: Moment::default() };
            let mut buffer = std::mem::replace(&mut self.buffer, Buffer::new(self.dialect, &nothing));
            let written = self.write(&mut buffer);
            self.buffer = buffer;
            written?;
        }
        self.check()
    }

    fn new_cpu(&mut self, at: Moment) {
        self.buffer.new_cpu(at);
    }

    fn wrap(&mut self, tsc: u64) {
        self.buffer.wrap(tsc);
    }

    #[inline]
    fn tell(&mut self, owner: Owner, at: Moment, told: Told<'_>) {
        if self.is_open {
            self.put(at, &told);
        } else {
            self.gather(owner, at, &told);
        }
    }

    fn check(&mut self) -> Result<(), ConvertError> {
        self.failed.take().map_or(Ok(()), |error| Err(error.into()))
    }
}

impl<W: Write> Finish for ToFdr<W> {
    fn finish(mut self) -> Result<Converted, ConvertError> {
        self.write_gathered()?;
        self.check()?;
        self.writer.finish()?;
        Ok(self.converted)
    }
}
