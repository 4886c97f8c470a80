//! Events of the calls of some functions, and of the calls within these.

use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_tables::access::ColumnError;
use perfuse_tables::{CallEvent, EndReason, StartReason, call_events};
use rustc_hash::FxHashSet;

use super::borders::numbered;
use super::events::{Event, EventColumns};
use super::machine::{Calls, LostEntries};
use super::selection::Selection;
use super::visitor::{CallEntry, Leave, Level, OpenCall, Visitor};

/// Keeps the rows of `call_events` that belong to calls of some functions, or to calls that were made within them: these calls have
/// the same times and callers as with all rows.
#[derive(Debug)]
pub struct CallsWithin {
    /// The stacks, of events whose offsets and arguments are replaced by the number of their row.
    calls: Calls<Within>,
}

impl CallsWithin {
    /// Of functions, by their keys; `lost` are the calls of all rows whose entries were lost.
    #[must_use]
    pub fn new(functions: Arc<FxHashSet<u32>>, lost: LostEntries) -> Self {
        let visitor = Within { functions, ..Within::default() };
        Self { calls: Calls::new(visitor, Selection::default(), lost) }
    }

    /// The rows of the next batch that are kept. A call that ends with one around it that is not kept gets an end of its own.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ColumnError> {
        self.calls.push(&numbered(batch, 0)?)?;
        let columns = EventColumns::new(batch)?;
        let mut kept = call_events::Builder::new();
        for EventWithin { row, kind, function_id } in std::mem::take(&mut self.calls.visitor().kept) {
            let Some(row) = usize::try_from(row).ok().filter(|&row| row < columns.len()) else { continue };
            let Event { ts_ns, thread_id, source_id, record_offset, .. } = columns.get(row);
            let value = (kind == CallEvent::Argument).then(|| columns.value(row));
            let cpu = columns.cpu(row);
            kept.push(ts_ns, thread_id, cpu, kind, function_id, value, source_id, record_offset);
        }
        Ok(kept.finish())
    }
}

/// An event of a row.
#[derive(Clone, Copy, Debug)]
struct EventWithin {
    row: u64,
    kind: CallEvent,
    function_id: u32,
}

/// Finds the events; the data of a call is whether it is kept.
#[derive(Debug, Default)]
struct Within {
    functions: Arc<FxHashSet<u32>>,
    /// In the rows of the current batch.
    kept: Vec<EventWithin>,
}

impl Visitor for Within {
    type CallData = bool;

    #[inline]
    fn enter(&mut self, entry: &CallEntry, parent: Option<&OpenCall<bool>>) -> bool {
        let CallEntry { function_id, record_offset: row, start_reason, .. } = *entry;
        let is_kept = parent.is_some_and(|parent| parent.mark) || self.functions.contains(&function_id);
        if is_kept && start_reason == StartReason::Entry {
            self.kept.push(EventWithin { row, kind: CallEvent::Enter, function_id });
        }
        is_kept
    }

    #[inline]
    fn leave(
        &mut self,
        call: &OpenCall<bool>,
        _level: Level,
        leave: &Leave,
        _parent: Option<&OpenCall<bool>>,
    ) {
        let kind = match leave.reason {
            EndReason::Exit => CallEvent::Exit,
            EndReason::TailCall => CallEvent::TailExit,
            EndReason::Unwound => CallEvent::ExceptionExit,
            EndReason::Truncated => return,
        };
        if !call.mark {
            return;
        }
        let end = EventWithin { row: leave.record_offset, kind, function_id: call.function_id };
        match self.kept.last_mut() {
            // Of several calls that it ends, the outermost ends last.
            Some(inner) if inner.row == end.row => *inner = end,
            _ => self.kept.push(end),
        }
    }

    fn orphan(&mut self, event: &Event, _cpu: Option<u32>, _depth: u32, parent: Option<&OpenCall<bool>>) {
        let Event { record_offset: row, kind, function_id, .. } = *event;
        if parent.is_none_or(|parent| !parent.mark) {
            if !self.functions.contains(&function_id) {
                return;
            }
            // Without the call around it, it would be taken for the end of a call from before the recording.
            self.kept.push(EventWithin { row, kind: CallEvent::Enter, function_id });
        }
        self.kept.push(EventWithin { row, kind, function_id });
    }

    fn argument(&mut self, call: &OpenCall<bool>, _level: Level, row: u64) {
        if call.mark {
            self.kept.push(EventWithin { row, kind: CallEvent::Argument, function_id: call.function_id });
        }
    }
}
