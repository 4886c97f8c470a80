//! Tells what is in a Basic mode log.

use super::super::basic::{Entry, Survey, entry_at, offset_of};
use super::super::consts::Action;
use super::super::log::XRay;
use super::super::writer::{Misfits, Moment, Sink, Told, WriteError};
use super::Selection;
use perfuse_recording::Recording;

/// The sink is asked for what it failed at every so many records.
const RECORDS_A_TURN: usize = 1 << 16;

/// Tells every record, in the order of time for each thread.
pub fn records<S: Sink>(
    log: &XRay,
    survey: &Survey,
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
                log.source().release(offset_of(place.saturating_sub(RECORDS_A_TURN))..offset_of(place));
            }
        }
        let index = match &survey.order {
            Some(order) => order.get(place).map_or(usize::MAX, |&index| index as usize),
            None => place,
        };
        let Some(entry) = entry_at(log.source(), index, header.endian) else { continue };
        let owner = entry.owner(version).unwrap_or_default();
        match entry {
            Entry::Normal(record) if record.kind <= Action::ENTRY_ARGS.0 => {
                let action = Action(record.kind);
                entered = matches!(action, Action::ENTRY | Action::ENTRY_ARGS)
                    .then_some((record.function_id, record.tid));
                at = Moment { tsc: record.tsc, cpu: record.cpu.into() };
                let function_id = record.function_id.cast_unsigned();
                if selection.has_thread(owner) {
                    sink.tell(owner, at, Told::Call { action, function_id });
                }
            }
            Entry::Argument(argument) if entered == Some((argument.function_id, argument.tid)) => {
                if selection.has_thread(owner) {
                    sink.tell(owner, at, Told::Argument(argument.argument));
                }
            }
            Entry::Argument(_) => misfits.orphans = misfits.orphans.saturating_add(1),
            Entry::Normal(_) | Entry::Unknown(_) => {
                entered = None;
                misfits.unknown = misfits.unknown.saturating_add(1);
            }
        }
    }
    sink.check()
}
