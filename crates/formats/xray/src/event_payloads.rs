//! Determines whether the bytes of events follow their markers or were overwritten.
//!
//! LLVM 5 to 7 do not advance past the bytes of an event, so that the next record overwrites them; from version 2 on
//! BufferExtents counts them all the same. Later writers of version 3 keep them. Both readings may be consistent, by
//! chance where sizes are multiples of 8. Then the right one is that in which fewer calls are left by another
//! function's exit, or else fewer stay open. The bytes of an event that ends its buffer are never overwritten.

use super::consts::Action;
use super::reader::{BufferEnd, BufferExtent};
use super::record_iter::{RecordItem, RecordIter, UNWRITTEN_BYTES};
use super::records::{Event, Record, XRayDialect};

/// Largest depth of the stack that is tracked.
const MAX_STACK_DEPTH: usize = 1 << 12;

/// Faults of a reading; the reading with fewer is right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct ReadingFaults {
    /// Number of events without bytes that are followed by eight bytes 0, which a repair writes for bytes that are not known:
    /// they are not a record, since function ids start at 1.
    zeros_after_event: u64,
    /// Number of unknown records, and of an end inside a record.
    unreadable: u64,
    /// Number of exits of a function other than the one entered last.
    crossed: u64,
    /// Number of calls without exit.
    open: usize,
}

/// Whether bytes follow the event markers of a buffer of version 1 to 3.
#[must_use]
pub fn payloads_follow(data: &[u8], extent: &BufferExtent, dialect: XRayDialect) -> bool {
    let present = XRayDialect { payloads: true, ..dialect };
    let Some((with, _)) = count_faults(data, extent, present) else { return true };
    let absent = XRayDialect { payloads: false, ..dialect };
    match count_faults(data, extent, absent) {
        // Versions 1 and 2 were only written by runtimes that overwrite the bytes.
        Some((without, ends_with_event)) if dialect.version < 3 && !ends_with_event => with < without,
        Some((without, _)) => with <= without,
        None => true,
    }
}

/// Whether a reader may take bytes of the events of a written buffer for records. `records` are all but BufferExtents, and end with
/// EndOfBuffer in version 1. Versions 1 to 3 do not state that the bytes are there.
///
/// In version 1 zeros follow up to the size of all buffers, of which another reading may make records.
#[must_use]
pub fn is_ambiguous(records: &[u8], dialect: XRayDialect) -> bool {
    let is_taken = |data: &[u8]| {
        let extent = BufferExtent { extents: None, records: 0..data.len(), bound: BufferEnd::Stated };
        !payloads_follow(data, &extent, dialect)
    };
    match dialect.version {
        ..=1 => {
            let mut padded = records.to_vec();
            let unwritten = UNWRITTEN_BYTES.saturating_add(LONGEST_RECORD);
            (0..LONGEST_RECORD).chain([unwritten]).any(|zeros| {
                padded.resize(records.len().saturating_add(zeros), 0);
                is_taken(&padded)
            })
        }
        2 | 3 => is_taken(records),
        _ => false,
    }
}

/// Bytes of the longest records. More zeros after a buffer are faults of every reading that does not end at EndOfBuffer, up to those that
/// count as never written.
const LONGEST_RECORD: usize = 16;

/// Reads a buffer in one way: its faults, and whether its only event is its last record. `None` without events.
fn count_faults(data: &[u8], extent: &BufferExtent, dialect: XRayDialect) -> Option<(ReadingFaults, bool)> {
    let mut records = RecordIter::new(data, extent.records.clone(), dialect);
    let mut found = ReadingFaults::default();
    let (mut events, mut ends_with_event, mut after_event) = (0u64, false, false);
    let mut stack: Vec<u32> = Vec::new();
    loop {
        let run = records.functions(usize::MAX);
        ends_with_event &= run.is_empty();
        run.for_each(|action, id, delta| {
            let follows_event = std::mem::take(&mut after_event);
            match action {
                // Function ids start at 1, so these are zeros read as a record.
                Action::ENTRY if id == 0 => {
                    let zeros = u64::from(follows_event && delta == 0);
                    found.zeros_after_event = found.zeros_after_event.saturating_add(zeros);
                    found.unreadable = found.unreadable.saturating_add(1);
                }
                Action::ENTRY | Action::ENTRY_ARGS => {
                    if stack.len() < MAX_STACK_DEPTH {
                        stack.push(id);
                    }
                }
                Action::EXIT | Action::TAIL_EXIT => {
                    let crossed = stack.pop().is_some_and(|entered| entered != id);
                    found.crossed = found.crossed.saturating_add(crossed.into());
                }
                _ => found.unreadable = found.unreadable.saturating_add(1),
            }
        });
        let step = records.next();
        ends_with_event &= step.is_none();
        after_event = false;
        match step {
            Some(RecordItem::Metadata { record: Record::Custom(event) | Record::Typed(event), .. }) => {
                events = events.saturating_add(1);
                ends_with_event = events == 1;
                after_event = !dialect.payloads;
                shorten_by_overwritten(&mut records, &event, dialect);
            }
            Some(RecordItem::Metadata { record: Record::EndOfBuffer, .. }) if dialect.version == 1 => break,
            Some(RecordItem::Metadata { record: Record::Unknown(_), .. }) => {
                found.unreadable = found.unreadable.saturating_add(1);
            }
            Some(RecordItem::Metadata { .. } | RecordItem::Function { .. }) => {}
            Some(RecordItem::Broken(_)) => {
                found.unreadable = found.unreadable.saturating_add(1);
                break;
            }
            None => break,
        }
    }
    found.open = stack.len();
    (events > 0).then_some((found, ends_with_event))
}

/// BufferExtents counts overwritten bytes: the same number of bytes at the end of the buffer is stale.
pub fn shorten_by_overwritten(records: &mut RecordIter<'_>, event: &Event<'_>, dialect: XRayDialect) {
    if !dialect.payloads && dialect.version > 1 {
        records.shorten(usize::try_from(event.size).unwrap_or(0));
    }
}
