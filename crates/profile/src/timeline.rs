//! The timeline of a profile.

use arrow_array::RecordBatch;
use perfuse_engine::calls::{Calls, LostEntries};
use perfuse_engine::stacks::StackTables;
use perfuse_engine::timeline::{CallRowsOfThreads, EventTables, Timeline, TimelineError, TimelineOptions};
use perfuse_formats::TableRequest;

use crate::prefetch::Prefetch;
use crate::profile::Profile;

impl Profile {
    /// The timeline of a part of the profile. `go_on` receives the number of rows read so far, and returns false to stop.
    ///
    /// # Errors
    /// [`TimelineError`]
    pub fn timeline(
        &self,
        options: &TimelineOptions,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<Timeline, TimelineError> {
        let (mut calls, lost) = self.call_rows(options, LostEntries::default(), go_on)?;
        if !lost.is_empty() {
            drop(calls);
            calls = self.call_rows(options, lost, go_on)?.0;
        }
        let tables = StackTables {
            samples: self.table_batches("samples")?,
            stacks: self.table_batches("stacks")?,
            frames: self.table_batches("frames")?,
            functions: self.table_batches("functions")?,
            code_objects: self.table_batches("code_objects")?,
            modules: self.table_batches("modules")?,
            mappings: self.table_batches("mappings")?,
            threads: self.table_batches("threads")?,
        };
        let own = |name| self.collect(name, &TableRequest::default());
        let events = EventTables {
            slices: own("slices"),
            instants: own("instants"),
            exceptions: own("exceptions"),
            sched_states: self.table_batches("sched_states")?,
        };
        if !go_on(u64::MAX) {
            return Err(TimelineError::Stopped);
        }
        Timeline::new(calls, &tables, &events, options)
    }

    /// The calls by thread and depth, and calls whose entries were lost.
    fn call_rows(
        &self,
        options: &TimelineOptions,
        lost: LostEntries,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(CallRowsOfThreads, LostEntries), TimelineError> {
        let rows = CallRowsOfThreads::new(options.max_slices, options.selection.time_ns.clone());
        let mut calls = Calls::new(rows, options.selection.clone(), lost);
        let mut num_rows = 0u64;
        for batch in Prefetch::new(self.stream("call_events", false)) {
            num_rows = num_rows.saturating_add(batch.num_rows() as u64);
            if !go_on(num_rows) {
                return Err(TimelineError::Stopped);
            }
            calls.push(&batch)?;
            if calls.visitor().is_full() {
                return Err(TimelineError::TooManySlices);
            }
        }
        Ok(calls.finish())
    }

    fn table_batches(&self, name: &str) -> Result<Vec<RecordBatch>, TimelineError> {
        let table = self.table(name, false)?;
        let batches = table.into_iter().flatten().collect::<Result<Vec<_>, _>>();
        batches.map_err(|error| TimelineError::Table(error.to_string()))
    }
}
