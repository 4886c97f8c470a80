//! Slices that are not calls, and events without a duration: tables `slices`, `instants`, `exceptions`, `code_objects`,
//! `sched_states`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use arrow_array::RecordBatch;
use arrow_array::types::{Int64Type, UInt32Type};
use perfuse_tables::access::{ColumnError, choices, nullable, numbers, text};
use perfuse_tables::{Choices, SchedState, SliceKind};

use super::labels::Labels;
use super::processors::Stint;
use super::row::{SliceRow, TimelineSlice};
use super::track::{TrackKind, TrackOwner};
use crate::calls::Selection;

/// Slices by kind and owner, in any order.
#[derive(Debug, Default)]
pub struct SpanTracks {
    tracks: BTreeMap<(TrackKind, TrackOwner), Vec<TimelineSlice>>,
}

impl SpanTracks {
    /// Adds a batch of `slices`: all but calls. A collection belongs to the process of its thread.
    pub fn add_slices(
        &mut self,
        batch: &RecordBatch,
        selection: &Selection,
        process_of: impl Fn(u32) -> Option<u32>,
        labels: &mut Labels,
    ) -> Result<(), ColumnError> {
        let kinds = choices::<SliceKind>(batch, "kind")?;
        let threads = numbers::<UInt32Type>(batch, "thread_id")?;
        let starts = numbers::<Int64Type>(batch, "start_ns")?;
        let durations = numbers::<Int64Type>(batch, "duration_ns")?;
        let names = text(batch, "name")?;
        for row in 0..batch.num_rows() {
            let thread_id = threads.value(row);
            let kind = match kinds.get(row) {
                SliceKind::Call => continue,
                SliceKind::Gc => TrackKind::Gc,
                SliceKind::Jit => TrackKind::Jit,
                SliceKind::Lock => TrackKind::Lock,
                SliceKind::Custom => TrackKind::Custom,
            };
            let name = names.get(row).unwrap_or_else(|| kinds.get(row).name());
            let of_process = kind == TrackKind::Gc && !name.starts_with("finalizer");
            let owner = match process_of(thread_id) {
                Some(process_id) if of_process => TrackOwner::Process(process_id),
                _ => TrackOwner::Thread(thread_id),
            };
            let duration_ns = durations.value(row).max(0).unsigned_abs();
            let slice = TimelineSlice { start_ns: starts.value(row), duration_ns, label: 0 };
            let Some(slice) = selected(slice, selection, (!of_process).then_some(thread_id)) else {
                continue;
            };
            // Labels are those of selected slices: which others there are is not known of a part of the rows.
            self.push(kind, owner, TimelineSlice { label: labels.id(name, None), ..slice });
        }
        Ok(())
    }

    /// Adds a batch of `instants`, or of `exceptions`, of which only those thrown are events of the program.
    pub fn add_instants(
        &mut self,
        batch: &RecordBatch,
        selection: &Selection,
        labels: &mut Labels,
    ) -> Result<(), ColumnError> {
        let kinds = text(batch, "kind")?;
        let threads = numbers::<UInt32Type>(batch, "thread_id")?;
        let times = numbers::<Int64Type>(batch, "ts_ns")?;
        let handlers = numbers::<UInt32Type>(batch, "function_id").ok();
        for row in 0..batch.num_rows() {
            if handlers.is_some_and(|functions| nullable(functions, row).is_some()) {
                continue;
            }
            let slice = TimelineSlice { start_ns: times.value(row), duration_ns: 0, label: 0 };
            let thread_id = threads.value(row);
            let Some(slice) = selected(slice, selection, Some(thread_id)) else { continue };
            let label = labels.id(kinds.get(row).unwrap_or_default(), None);
            self.push(TrackKind::Instants, TrackOwner::Thread(thread_id), TimelineSlice { label, ..slice });
        }
        Ok(())
    }

    /// Adds a batch of `code_objects`: each is an event at the time from which its code can run.
    pub fn add_code(
        &mut self,
        batch: &RecordBatch,
        selection: &Selection,
        labels: &mut Labels,
    ) -> Result<(), ColumnError> {
        let functions = numbers::<UInt32Type>(batch, "function_id")?;
        let processes = numbers::<UInt32Type>(batch, "process_id")?;
        let threads = numbers::<UInt32Type>(batch, "thread_id")?;
        let times = numbers::<Int64Type>(batch, "create_ns")?;
        let (kinds, tiers) = (text(batch, "kind")?, text(batch, "tier")?);
        for row in 0..batch.num_rows() {
            let tier = tiers.get(row).or(kinds.get(row));
            let label = labels.code(functions.value(row), tier);
            let slice = TimelineSlice { start_ns: times.value(row), duration_ns: 0, label };
            let owner = TrackOwner::Process(processes.value(row));
            self.add(TrackKind::Compilations, owner, slice, selection, nullable(threads, row));
        }
        Ok(())
    }

    /// Adds a batch of `sched_states`: the states of threads, and the threads of processors. A state without an end is left out.
    pub fn add_states(
        &mut self,
        batch: &RecordBatch,
        selection: &Selection,
        labels: &mut Labels,
    ) -> Result<(), ColumnError> {
        let states = choices::<SchedState>(batch, "state")?;
        let threads = numbers::<UInt32Type>(batch, "thread_id")?;
        let starts = numbers::<Int64Type>(batch, "start_ns")?;
        let ends = numbers::<Int64Type>(batch, "end_ns")?;
        let cpus = numbers::<UInt32Type>(batch, "cpu")?;
        for row in 0..batch.num_rows() {
            let Some(end_ns) = nullable(ends, row) else { continue };
            let (state, thread_id, start_ns) = (states.get(row), threads.value(row), starts.value(row));
            let duration_ns = end_ns.saturating_sub(start_ns).max(0).unsigned_abs();
            let slice = TimelineSlice { start_ns, duration_ns, label: labels.id(state.name(), None) };
            self.add(TrackKind::State, TrackOwner::Thread(thread_id), slice, selection, Some(thread_id));
            if let (SchedState::Running, Some(cpu)) = (state, nullable(cpus, row)) {
                self.add_stint(&Stint { cpu, thread_id, start_ns, end_ns }, selection, labels);
            }
        }
        Ok(())
    }

    /// Adds a time of a thread on a processor.
    pub fn add_stint(&mut self, stint: &Stint, selection: &Selection, labels: &mut Labels) {
        let Stint { cpu, thread_id, start_ns, end_ns } = *stint;
        let duration_ns = end_ns.saturating_sub(start_ns).max(0).unsigned_abs();
        let slice = TimelineSlice { start_ns, duration_ns, label: labels.thread(thread_id) };
        self.add(TrackKind::Processor, TrackOwner::Processor(cpu), slice, selection, Some(thread_id));
    }

    /// Whether there are threads of processors.
    pub fn has_processors(&self) -> bool {
        self.tracks.keys().any(|(kind, _)| *kind == TrackKind::Processor)
    }

    fn add(
        &mut self,
        kind: TrackKind,
        owner: TrackOwner,
        slice: TimelineSlice,
        selection: &Selection,
        thread_id: Option<u32>,
    ) {
        if let Some(slice) = selected(slice, selection, thread_id) {
            self.push(kind, owner, slice);
        }
    }

    fn push(&mut self, kind: TrackKind, owner: TrackOwner, slice: TimelineSlice) {
        self.tracks.entry((kind, owner)).or_default().push(slice);
    }

    /// The rows of each track. A slice is in the first row in which no earlier one has not ended.
    pub fn finish(self) -> impl Iterator<Item = (TrackKind, TrackOwner, Vec<SliceRow>)> {
        self.tracks.into_iter().map(|((kind, owner), mut slices)| {
            slices.sort_by_key(|slice| (slice.start_ns, Reverse(slice.duration_ns)));
            let mut rows: Vec<(i64, SliceRow)> = Vec::new();
            for slice in slices {
                let has_room = |(end_ns, _): &(i64, SliceRow)| *end_ns <= slice.start_ns;
                let depth = rows.iter().position(has_room).unwrap_or(rows.len());
                if depth == rows.len() {
                    rows.push((i64::MIN, SliceRow::default()));
                }
                if let Some((end_ns, row)) = rows.get_mut(depth) {
                    *end_ns = (*end_ns).max(slice.end_ns());
                    row.push(slice);
                }
            }
            (kind, owner, rows.into_iter().map(|(_, row)| row).collect())
        })
    }
}

/// The selected part of a slice; `None` where there is none.
fn selected(
    mut slice: TimelineSlice,
    selection: &Selection,
    thread_id: Option<u32>,
) -> Option<TimelineSlice> {
    if selection.threads.is_some() && !thread_id.is_some_and(|thread_id| selection.has(thread_id)) {
        return None;
    }
    if let Some(range) = &selection.time_ns {
        let end_ns = slice.end_ns();
        if slice.start_ns >= range.end || end_ns < range.start {
            return None;
        }
        let start_ns = slice.start_ns.max(range.start);
        slice.duration_ns = end_ns.min(range.end).saturating_sub(start_ns).max(0).unsigned_abs();
        slice.start_ns = start_ns;
    }
    Some(slice)
}
