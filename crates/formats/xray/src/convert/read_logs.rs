//! Tells what is in a buffer of an FDR log.

use super::super::block::Clock;
use super::super::consts::Action;
use super::super::records::{Dialect, Event, Record};
use super::super::survey::owner;
use super::super::walk::{Step, Walk};
use super::super::writer::{Beginning, Misfits, Moment, Owner, Sink, Told, WriteError};
use super::Selection;
use super::order::Place;
use perfuse_recording::Recording;

/// Stands for the bytes of an event that were overwritten: no reader takes it for a record, as it might zeros.
const FILLER: u8 = 0xff;

/// Tells a buffer's beginning, its records and its end.
pub fn block<S: Sink>(
    place: &Place<'_>,
    selection: &Selection,
    sink: &mut S,
    misfits: &mut Misfits,
) -> Result<(), WriteError> {
    let owner = owner(place.block);
    if !selection.has_thread(owner) {
        return Ok(());
    }
    let source = place.log.source();
    let dialect = Dialect { payloads: place.block.payloads, ..place.log.header().dialect() };
    let records = place.block.records.clone();
    let clock = place.survey.carried.get(&place.index).copied().unwrap_or_default();
    let filling = records.len();
    let wall = place.block.wall;
    let mut teller = Teller { sink, misfits, owner, wall, clock, began: false, entered: false, filling };
    teller.tell(Walk::new(source, records.clone(), dialect), dialect);
    teller.begin(teller.clock);
    teller.sink.end(true)?;
    source.release(records);
    Ok(())
}

struct Teller<'a, S> {
    sink: &'a mut S,
    misfits: &'a mut Misfits,
    owner: Owner,
    wall: Option<(i64, i32)>,
    clock: Clock,
    /// Whether the sink knows that the buffer began: from its first NewCPUId on, or else its first record with a time.
    began: bool,
    /// Whether an argument would be of an entry.
    entered: bool,
    /// Bytes that may still be written for overwritten events: not more than the buffer has, whatever sizes it states.
    filling: usize,
}

fn moment(clock: Clock) -> Moment {
    Moment { tsc: clock.tsc, cpu: clock.cpu.unwrap_or(0) }
}

impl<S: Sink> Teller<'_, S> {
    fn tell(&mut self, mut walk: Walk<'_>, dialect: Dialect) {
        loop {
            let run = walk.functions(usize::MAX);
            run.for_each(|action, function_id, delta| self.call(action, function_id, delta));
            let Some(step) = walk.next() else { return };
            let record = match step {
                Step::Metadata { record, .. } => record,
                Step::Function { action, function_id, tsc_delta, .. } => {
                    self.call(action, function_id, tsc_delta);
                    continue;
                }
                Step::Broken(_) => return,
            };
            match record {
                Record::CallArgument(value) => self.argument(value),
                Record::Custom(event) | Record::Typed(event) => {
                    self.event(&record, &event, dialect);
                }
                Record::NewCpuId { .. } | Record::TscWrap { .. } => self.counter(&record),
                Record::Unknown(_) => self.misfits.unknown = self.misfits.unknown.saturating_add(1),
                _ => {}
            }
        }
    }

    #[inline]
    fn call(&mut self, action: Action, function_id: u32, delta: u32) {
        self.clock.step(delta);
        if action.name().is_none() {
            self.misfits.unknown = self.misfits.unknown.saturating_add(1);
            self.entered = false;
            return;
        }
        self.begin(self.clock);
        self.entered = matches!(action, Action::ENTRY | Action::ENTRY_ARGS);
        self.sink.tell(self.owner, moment(self.clock), Told::Call { action, function_id });
    }

    fn argument(&mut self, value: u64) {
        if self.entered {
            self.sink.tell(self.owner, moment(self.clock), Told::Argument(value));
        } else {
            self.misfits.orphans = self.misfits.orphans.saturating_add(1);
        }
    }

    fn counter(&mut self, record: &Record<'_>) {
        self.clock.metadata(record);
        match record {
            Record::NewCpuId { .. } if self.began => self.sink.new_cpu(moment(self.clock)),
            Record::NewCpuId { .. } => self.begin(self.clock),
            _ => {
                self.begin(self.clock);
                self.sink.wrap(self.clock.tsc);
            }
        }
    }

    fn event(&mut self, record: &Record<'_>, event: &Event<'_>, dialect: Dialect) {
        let Some(tsc) = self.clock.metadata(record) else { return };
        self.begin(Clock { tsc, ..self.clock });
        self.entered = false;
        let at = Moment { tsc, cpu: event.cpu.or(self.clock.cpu).unwrap_or(0) };
        let filler;
        let payload = if dialect.payloads || event.size == 0 {
            event.payload
        } else {
            let size = usize::try_from(event.size).unwrap_or(0);
            let size = if size <= self.filling { size } else { 0 };
            self.filling = self.filling.saturating_sub(size);
            self.misfits.payloads = self.misfits.payloads.saturating_add(1);
            filler = vec![FILLER; size];
            &filler
        };
        self.sink.tell(self.owner, at, Told::Event { event_type: event.event_type, payload });
    }

    /// The buffer begins, unless it did: with the counter of its first record where it says none itself.
    #[inline]
    fn begin(&mut self, clock: Clock) {
        if !self.began {
            self.began = true;
            let is_unknown = !clock.is_whole && clock != Clock::default();
            let so_far = self.misfits.unknown_counters;
            self.misfits.unknown_counters = so_far.saturating_add(is_unknown.into());
            let wall = self.wall.unwrap_or_default();
            self.sink.begin(&Beginning { owner: self.owner, wall, at: moment(clock) });
        }
    }
}
