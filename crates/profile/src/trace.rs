//! Tables of call traces for the writers of timelines.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::types::{Int32Type, Int64Type, UInt32Type, UInt64Type};
use perfuse_engine::calls::{CallsWithin, LostEntries, Selection};
use perfuse_formats::{Placement, TableRequest};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use perfuse_tables::{Choices, ExceptionEvent, instants};
use perfuse_writers::{Batches, Error, Tables, Tracks, shown_processes};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::prefetch::Prefetch;
use crate::profile::Profile;

/// Tables with rows of a process, which belong to no thread of it.
const OF_PROCESSES: [&str; 4] = ["counters", "heap_snapshots", "gc_handles", "object_moves"];

/// A table that can be read several times, each time from its first row, decoded in another thread.
fn repeatable(profile: &Profile, name: &'static str) -> impl Fn() -> Batches {
    move || Box::new(Prefetch::new(profile.stream(name, true)))
}

/// The thrown exceptions of a batch of `exceptions`, as rows of `instants`.
fn throws(exceptions: &RecordBatch) -> Result<RecordBatch, ColumnError> {
    let kinds = text(exceptions, "kind")?;
    let (times, threads) =
        (numbers::<Int64Type>(exceptions, "ts_ns")?, numbers::<UInt32Type>(exceptions, "thread_id")?);
    let objects = numbers::<UInt64Type>(exceptions, "object_address")?;
    let (sources, offsets) = (
        numbers::<UInt32Type>(exceptions, "source_id")?,
        numbers::<UInt64Type>(exceptions, "record_offset")?,
    );
    let throw = ExceptionEvent::Throw.name();
    let mut table = instants::Builder::new();
    for row in (0..exceptions.num_rows()).filter(|&row| kinds.get(row) == Some(throw)) {
        table.push(
            times.value(row),
            threads.value(row),
            None,
            throw,
            None,
            None,
            nullable(objects, row),
            None,
            sources.value(row),
            offsets.value(row),
        );
    }
    Ok(table.finish())
}

/// Keys of the processes of some threads of a batch of `threads`.
fn processes_of(threads: &RecordBatch, keys: &[u32]) -> Result<FxHashSet<u32>, ColumnError> {
    let keys: FxHashSet<_> = keys.iter().copied().collect();
    let ids = numbers::<UInt32Type>(threads, "thread_id")?.values().iter();
    let processes = numbers::<UInt32Type>(threads, "process_id")?.values().iter();
    Ok(ids.zip(processes).filter(|(id, _)| keys.contains(id)).map(|(_, process)| *process).collect())
}

impl Profile {
    /// Calls `consume` with the tables that timelines are written from. Thrown exceptions are instants. With `within`, calls
    /// are those of these functions, by their keys, and those that were made within them. Counters are those of the processes
    /// of selected threads.
    ///
    /// # Errors
    /// Those of `consume`, and when a recording's table is not as declared.
    pub fn with_trace_tables<T>(
        &self,
        functions: &[RecordBatch],
        within: Option<&Arc<FxHashSet<u32>>>,
        selection: &Selection,
        consume: impl FnOnce(Tables<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (all_events, recorded) = (repeatable(self, "call_events"), repeatable(self, "instants"));
        let lost = within.map_or_else(|| Ok(LostEntries::default()), |_| LostEntries::of(all_events()))?;
        let call_events = || -> Batches {
            let Some(functions) = within else { return all_events() };
            let mut calls = CallsWithin::new(Arc::clone(functions), lost.clone());
            Box::new(all_events().map(move |batch| calls.rows(&batch).unwrap_or_else(|_| batch.slice(0, 0))))
        };
        let exceptions = self.collect("exceptions", &TableRequest::default());
        let throws: Vec<_> = exceptions.iter().map(throws).collect::<Result<_, _>>()?;
        let instants = || -> Batches { Box::new(recorded().chain(throws.clone())) };
        let (slices, counter_samples) = (repeatable(self, "slices"), repeatable(self, "counter_samples"));
        let counters = self.collect("counters", &TableRequest::default());
        let pids = self.pids_of_recordings(selection.threads.as_deref())?;
        consume(Tables {
            call_events: &call_events,
            instants: &instants,
            slices: &slices,
            counter_samples: &counter_samples,
            counters: &counters,
            pids: &pids,
            functions,
        })
    }

    /// Table `functions`, of recordings and instrumentation maps.
    ///
    /// # Errors
    /// When a recording's table is not as declared.
    pub fn recorded_functions(&self) -> Result<Vec<RecordBatch>, ColumnError> {
        self.with_names("functions", &TableRequest::default())
    }

    /// Pid that viewers show for each recording with rows that are of its process alone, by its `source_id`: of the first process of
    /// the recording. With `threads`, only where one of these threads, by their keys, is of that process.
    ///
    /// # Errors
    /// When tables of processes are not as declared.
    pub fn pids_of_recordings(&self, threads: Option<&[u32]>) -> Result<BTreeMap<u32, i32>, Error> {
        let mut processes = Vec::new();
        for placed in &self.placed {
            if !OF_PROCESSES.iter().any(|table| placed.recording.fills(table)) {
                continue;
            }
            let alone = Placement { identities: Arc::default(), ..placed.placement.clone() };
            let batches = placed.recording.table("processes", &alone, &TableRequest::default());
            for batch in batches.into_iter().flatten() {
                if let Some(&pid) = numbers::<Int32Type>(&batch, "pid")?.values().first() {
                    processes.push((placed.placement.source_id, placed.placement.process(pid)));
                }
            }
        }
        let mut identities = self.identities();
        let keys: Vec<_> =
            processes.into_iter().map(|(source, process)| (source, identities.process(process))).collect();
        let selected = threads.map(|keys| processes_of(&identities.threads(), keys)).transpose()?;
        let shown = shown_processes(slice::from_ref(&identities.processes()))?;
        let shown: FxHashMap<_, _> = shown.iter().map(|process| (process.process_id, process.pid)).collect();
        let is_selected = |key: &u32| selected.as_ref().is_none_or(|selected| selected.contains(key));
        let keys = keys.into_iter().filter(|(_, key)| is_selected(key));
        Ok(keys.filter_map(|(source, key)| Some((source, *shown.get(&key)?))).collect())
    }

    /// Tracks of the threads seen so far and of those with samples, so that names and numbers do not depend on what was
    /// read before.
    ///
    /// # Errors
    /// When tables `processes` and `threads` are not as declared.
    pub fn tracks(&self) -> Result<Tracks, Error> {
        if self.fills("callchains") {
            self.meet_sampled_threads()?;
        }
        let (processes, threads) = {
            let identities = self.identities();
            (identities.processes(), identities.threads())
        };
        Tracks::of(&processes, &threads)
    }
}
