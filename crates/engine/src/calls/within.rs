//! Events of the calls of some functions, and of the calls within these.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_tables::CallEvent;
use perfuse_tables::access::ColumnError;
use rustc_hash::{FxHashMap, FxHashSet};

use super::events::{Event, EventColumns};
use crate::batch::{add_row, take_runs};

/// Keeps the rows of `call_events` that belong to calls of some functions, or to calls that were made within them.
#[derive(Clone, Debug)]
pub struct CallsWithin {
    functions: Arc<FxHashSet<u32>>,
    /// By thread, the open calls: the function, and whether it or one around it is one of the functions.
    open: FxHashMap<u32, Vec<(u32, bool)>>,
}

impl CallsWithin {
    /// Of functions, by their keys.
    #[must_use]
    pub fn new(functions: Arc<FxHashSet<u32>>) -> Self {
        Self { functions, open: FxHashMap::default() }
    }

    /// The rows of the next batch that are kept.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn rows(&mut self, batch: &RecordBatch) -> Result<RecordBatch, ColumnError> {
        let columns = EventColumns::new(batch)?;
        let mut runs: Vec<Range<usize>> = Vec::new();
        for row in 0..columns.len() {
            perfuse_stopping::checkpoint();
            if self.keeps(&columns.get(row)) {
                add_row(&mut runs, row);
            }
        }
        Ok(take_runs(batch, &runs).unwrap_or_else(|| batch.slice(0, 0)))
    }

    fn keeps(&mut self, event: &Event) -> bool {
        let is_named = self.functions.contains(&event.function_id);
        let open = self.open.entry(event.thread_id).or_default();
        let is_within = open.last().is_some_and(|(_, is_within)| *is_within);
        match event.kind {
            CallEvent::Enter => {
                open.push((event.function_id, is_within || is_named));
                is_within || is_named
            }
            CallEvent::Argument => is_within,
            CallEvent::Exit | CallEvent::TailExit | CallEvent::ExceptionExit => {
                // Calls above it were left without an event of their own.
                match open.iter().rposition(|(function, _)| *function == event.function_id) {
                    Some(at) => {
                        let is_kept = open.get(at).is_some_and(|(_, is_within)| *is_within);
                        open.truncate(at);
                        is_kept
                    }
                    None => is_named,
                }
            }
        }
    }
}
