//! Whether the bytes of events are there, or were overwritten.
//!
//! LLVM 5 to 7 do not step over the bytes of an event, so that the next record is written over them; from version 2 on
//! the extents count them all the same. Later writers of version 3 have them. Both readings may hold together, by chance
//! where sizes are multiples of 8: then that is right in which fewer calls are left by another function's exit.

use super::consts::Action;
use super::reader::Extent;
use super::records::{Dialect, Event, Record};
use super::walk::{Step, Walk};

/// Deepest stack that is followed.
const DEEPEST: usize = 1 << 12;

/// How well a reading holds together; less is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Oddities {
    /// Records of no known kind, and an end inside a record.
    unreadable: u64,
    /// Exits of another function than was entered last.
    crossed: u64,
}

/// Whether bytes follow the events of a buffer, of version 1 to 3.
#[must_use]
pub fn payloads_follow(data: &[u8], extent: &Extent, dialect: Dialect) -> bool {
    let present = Dialect { payloads: true, ..dialect };
    let Some(with) = oddities(data, extent, present) else { return true };
    let absent = Dialect { payloads: false, ..dialect };
    match oddities(data, extent, absent) {
        // Versions 1 and 2 were only written by runtimes that overwrite them.
        Some(without) if dialect.version < 3 => with < without,
        Some(without) => with <= without,
        None => true,
    }
}

/// Reads a buffer that way; `None` where it has no events.
fn oddities(data: &[u8], extent: &Extent, dialect: Dialect) -> Option<Oddities> {
    let mut walk = Walk::new(data, extent.records.clone(), dialect);
    let mut found = Oddities::default();
    let mut has_events = false;
    let mut stack: Vec<u32> = Vec::new();
    loop {
        walk.functions(usize::MAX).for_each(|action, id, _| match action {
            Action::ENTRY | Action::ENTRY_ARGS => {
                if stack.len() < DEEPEST {
                    stack.push(id);
                }
            }
            Action::EXIT | Action::TAIL_EXIT => {
                let crossed = stack.pop().is_some_and(|entered| entered != id);
                found.crossed = found.crossed.saturating_add(crossed.into());
            }
            _ => found.unreadable = found.unreadable.saturating_add(1),
        });
        match walk.next() {
            Some(Step::Metadata { record: Record::Custom(event) | Record::Typed(event), .. }) => {
                has_events = true;
                stop_before_stale(&mut walk, &event, dialect);
            }
            Some(Step::Metadata { record: Record::EndOfBuffer, .. }) if dialect.version == 1 => break,
            Some(Step::Metadata { record: Record::Unknown(_), .. }) => {
                found.unreadable = found.unreadable.saturating_add(1);
            }
            Some(Step::Metadata { .. } | Step::Function { .. }) => {}
            Some(Step::Broken(_)) => {
                found.unreadable = found.unreadable.saturating_add(1);
                break;
            }
            None => break,
        }
    }
    has_events.then_some(found)
}

/// The extents count bytes that were overwritten: as many at the end of the buffer are stale.
pub fn stop_before_stale(walk: &mut Walk<'_>, event: &Event<'_>, dialect: Dialect) {
    if !dialect.payloads && dialect.version > 1 {
        walk.shorten(usize::try_from(event.size).unwrap_or(0));
    }
}
