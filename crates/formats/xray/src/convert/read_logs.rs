//! Reads logs for a conversion: the buffers of FDR logs in order of time, and the records of Basic mode logs.

use rustc_hash::FxHashMap;

use super::selection::Selection;
use crate::basic;
use crate::block::{Block, Clock};
use crate::consts::Action;
use crate::fdr::{Survey, owner};
use crate::log::{Content, XRay};
use crate::record_iter::{Step, Walk};
use crate::records::{Dialect, Event, Record};
use crate::writer::{Beginning, Misfits, Moment, Owner, Sink, Told, WriteError};
use perfuse_recording::Recording;

/// A buffer of a log.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// The log.
    pub log: &'a XRay,
    /// What one pass found in it.
    pub survey: &'a Survey,
    /// The buffer.
    pub block: &'a Block,
    /// Its index in the log.
    pub index: usize,
}

/// When a buffer was begun, as far as it says.
type Begun = (Option<(i64, i32)>, Option<u64>);

/// The buffers: each thread's in order of time, in the places that the thread's buffers have in the files. So a log that is in
/// order keeps the order it is in. Copies are left out; they are counted.
pub fn ordered_buffers<'a>(logs: &[&'a XRay]) -> (Vec<Place<'a>>, u64) {
    let mut all: Vec<Place<'a>> = Vec::new();
    let mut copies = 0u64;
    let mut of_thread: FxHashMap<Owner, Vec<(Begun, usize)>> = FxHashMap::default();
    let mut seen: FxHashMap<(Owner, Begun, usize), Vec<Place<'a>>> = FxHashMap::default();
    for &log in logs {
        let Content::Fdr(survey) = log.content() else { continue };
        let mut last: FxHashMap<Owner, (i64, i32)> = FxHashMap::default();
        for (index, block) in survey.blocks.iter().enumerate() {
            let owner = owner(block);
            // A buffer without a wall time stands with the one before it of its thread.
            let wall = block.wall.or_else(|| last.get(&owner).copied());
            wall.and_then(|wall| last.insert(owner, wall));
            let begun = (wall, block.first_cpu.map(|(_, tsc)| tsc));
            let place = Place { log, survey, block, index };
            let same = seen.entry((owner, begun, block.records.len())).or_default();
            if survey.copies.contains_key(&index) || same.iter().any(|other| is_copy(other, &place)) {
                copies = copies.saturating_add(1);
                continue;
            }
            if logs.len() > 1 && same.len() < MOST_COMPARED {
                same.push(place);
            }
            of_thread.entry(owner).or_default().push((begun, all.len()));
            all.push(place);
        }
    }
    let mut ordered: Vec<Option<Place<'a>>> = vec![None; all.len()];
    for blocks in of_thread.values() {
        let mut in_time = blocks.clone();
        in_time.sort_by_key(|&(begun, place)| (begun, place));
        for (&(_, to), &(_, from)) in blocks.iter().zip(&in_time) {
            if let Some(slot) = ordered.get_mut(to) {
                *slot = all.get(from).copied();
            }
        }
    }
    (ordered.into_iter().flatten().collect(), copies)
}

/// Buffers that share thread, time and size, and differ, are no more than a few, or hostile: then only those are compared.
const MOST_COMPARED: usize = 8;

/// Whether two logs have the same buffer; within one log its survey tells.
fn is_copy<'a>(one: &Place<'a>, other: &Place<'a>) -> bool {
    let of = |place: &Place<'a>| place.log.source().get(place.block.records.clone());
    !std::ptr::eq(one.survey, other.survey) && of(one) == of(other)
}

/// Stands for the bytes of an event that were overwritten: no reader takes it for a record, as it might zeros.
const FILLER: u8 = 0xff;

/// Tells a buffer's beginning, its records and its end.
pub fn read_buffer<S: Sink>(
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

/// The sink is asked for what it failed at every so many records.
const RECORDS_A_TURN: usize = 1 << 16;

/// Tells every record, in the order of time for each thread.
pub fn read_basic_log<S: Sink>(
    log: &XRay,
    survey: &basic::Survey,
    selection: &Selection,
    sink: &mut S,
    misfits: &mut Misfits,
) -> Result<(), WriteError> {
    let header = log.header();
    let version = header.dialect().version;
    let num = survey.order.as_ref().map_or(survey.num_records, Vec::len);
    misfits.copies = misfits.copies.saturating_add(survey.copies.0);
    let mut at = Moment::default();
    // The entry that an argument would be of: its function and thread.
    let mut entered = None;
    for place in 0..num {
        if place & RECORDS_A_TURN.saturating_sub(1) == 0 {
            sink.check()?;
            if survey.order.is_none() {
                log.source()
                    .release(basic::offset_of(place.saturating_sub(RECORDS_A_TURN))..basic::offset_of(place));
            }
        }
        let index = match &survey.order {
            Some(order) => order.get(place).map_or(usize::MAX, |&index| index as usize),
            None => place,
        };
        let Some(entry) = basic::entry_at(log.source(), index, header.endian) else { continue };
        let owner = entry.owner(version).unwrap_or_default();
        match entry {
            basic::Entry::Normal(record) if record.kind <= Action::ENTRY_ARGS.0 => {
                let action = Action(record.kind);
                entered = matches!(action, Action::ENTRY | Action::ENTRY_ARGS)
                    .then_some((record.function_id, record.tid));
                at = Moment { tsc: record.tsc, cpu: record.cpu.into() };
                let function_id = record.function_id.cast_unsigned();
                if selection.has_thread(owner) {
                    sink.tell(owner, at, Told::Call { action, function_id });
                }
            }
            basic::Entry::Argument(argument) if entered == Some((argument.function_id, argument.tid)) => {
                if selection.has_thread(owner) {
                    sink.tell(owner, at, Told::Argument(argument.argument));
                }
            }
            basic::Entry::Argument(_) => misfits.orphans = misfits.orphans.saturating_add(1),
            basic::Entry::Normal(_) | basic::Entry::Unknown(_) => {
                entered = None;
                misfits.unknown = misfits.unknown.saturating_add(1);
            }
        }
    }
    sink.check()
}
