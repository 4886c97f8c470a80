//! The timeline: slices of threads and processes in rows that answer what a part of the time looks like at a resolution.
//!
//! A [`Timeline`] has a [`TimelineTrack`] for each kind of slices of a thread or process, and a [`SliceRow`] for each depth of
//! it. [`tile`] states what a tile contains. Nothing here depends on the number of slices that a picture covers: an index of
//! longest slices and of sums answers for any range.

mod calls;
mod columns;
mod heat;
mod index;
mod labels;
mod processors;
mod queries;
mod row;
mod runs;
mod spans;
#[cfg(test)]
mod tests;
pub mod tile;
mod track;

use arrow_array::RecordBatch;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

pub use calls::CallRowsOfThreads;
pub use columns::{MAX_BOXES, TileColumns};
pub use heat::{DURATION_ROWS, HeatColumns, HeatMap, HeatRequest, HeatRows};
pub use labels::{Labels, SliceLabel};
pub use processors::Stint;
pub use queries::{LabelTotal, SliceFilter, SlicePlace};
pub use row::{SliceRow, TimelineSlice};
pub use runs::TimedSample;
pub use tile::{TileBox, TileRange};
pub use track::{TimelineTrack, TrackKind, TrackOwner};

use crate::calls::Selection;
use crate::stacks::{CallSymbols, StackError, StackTables, SymbolStacks};
use spans::SpanTracks;

/// Which part of a profile a timeline shows, and how large it may become.
#[derive(Clone, Debug)]
pub struct TimelineOptions {
    /// Threads and time.
    pub selection: Selection,
    /// Event of the samples; `None` for no samples.
    pub event: Option<String>,
    /// First moment of the profile: tiles are counted from it.
    pub zero_ns: i64,
    /// Most slices.
    pub max_slices: u64,
}

/// The tables besides calls and those of stacks.
#[derive(Clone, Debug, Default)]
pub struct EventTables {
    /// Slices that recordings contain.
    pub slices: Vec<RecordBatch>,
    /// Table `instants`.
    pub instants: Vec<RecordBatch>,
    /// Table `exceptions`.
    pub exceptions: Vec<RecordBatch>,
    /// Table `sched_states`.
    pub sched_states: Vec<RecordBatch>,
}

/// The reason why a recording has no timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimelineError {
    /// A table is not as declared.
    Table(String),
    /// There are more slices than the limit.
    TooManySlices,
    /// The caller stopped it.
    Stopped,
}

impl From<perfuse_tables::access::ColumnError> for TimelineError {
    fn from(error: perfuse_tables::access::ColumnError) -> Self {
        Self::Table(error.to_string())
    }
}

impl From<StackError> for TimelineError {
    fn from(error: StackError) -> Self {
        Self::Table(error.to_string())
    }
}

/// Slices of a profile, ready for questions about any part of the time.
#[derive(Debug)]
pub struct Timeline {
    tracks: Vec<TimelineTrack>,
    symbols: CallSymbols,
    labels: Labels,
    /// Symbol of each function that was called, by its key; `u32::MAX` where it has none.
    symbol_of_function: Vec<u32>,
    samples: Vec<TimedSample>,
    zero_ns: i64,
}

impl Timeline {
    /// The timeline of calls, of the samples of `tables`, and of other events.
    ///
    /// # Errors
    /// [`TimelineError`]
    pub fn new(
        mut calls: CallRowsOfThreads,
        tables: &StackTables,
        events: &EventTables,
        options: &TimelineOptions,
    ) -> Result<Self, TimelineError> {
        if calls.is_full() {
            return Err(TimelineError::TooManySlices);
        }
        let (mut labels, mut spans) = (Labels::default(), SpanTracks::default());
        let process_of = processes_of_threads(tables)?;
        let process_of = |thread_id| process_of.get(&thread_id).copied();
        for batch in &events.slices {
            spans.add_slices(batch, &options.selection, process_of, &mut labels)?;
        }
        for batch in events.instants.iter().chain(&events.exceptions) {
            spans.add_instants(batch, &options.selection, &mut labels)?;
        }
        for batch in &tables.code_objects {
            spans.add_code(batch, &options.selection, &mut labels)?;
        }
        let symbols = CallSymbols::of(tables, false)?;
        let stacks = SymbolStacks::of(tables, &symbols)?;
        let mut samples = Vec::new();
        if let Some(event) = &options.event {
            samples = runs::timed_samples(&tables.samples, event, &options.selection, &stacks)?;
        }
        for batch in &events.sched_states {
            spans.add_states(batch, &options.selection, &mut labels)?;
        }
        if !spans.has_processors() {
            let sampled = processors::sampled_stints(&samples);
            let stints = if sampled.is_empty() { calls.take_stints() } else { sampled };
            stints.iter().for_each(|stint| spans.add_stint(stint, &options.selection, &mut labels));
        }
        let mut tracks: Vec<TimelineTrack> =
            spans.finish().map(|(kind, owner, rows)| TimelineTrack { kind, owner, rows }).collect();
        let of_thread = |kind, (id, rows)| TimelineTrack { kind, owner: TrackOwner::Thread(id), rows };
        tracks.extend(calls.finish().map(|rows| of_thread(TrackKind::Calls, rows)));
        if options.event.is_some() {
            let runs = runs::sample_runs(&samples, &stacks, options.max_slices);
            let runs = runs.ok_or(TimelineError::TooManySlices)?;
            tracks.extend(runs.into_iter().map(|rows| of_thread(TrackKind::Samples, rows)));
        }
        perfuse_workers::install(|| {
            tracks.par_iter_mut().flat_map(|track| &mut track.rows).for_each(SliceRow::finish);
        });
        let called = |track: &&TimelineTrack| track.kind.has_functions();
        let called = tracks.iter().filter(called).flat_map(|track| &track.rows).flat_map(SliceRow::labels);
        let symbol_of_function = symbols_of_functions(called, &symbols, &mut labels);
        Ok(Self { tracks, symbols, labels, symbol_of_function, samples, zero_ns: options.zero_ns })
    }

    /// The tracks.
    #[must_use]
    pub fn tracks(&self) -> &[TimelineTrack] {
        &self.tracks
    }

    /// Symbols of functions. Symbols of other labels follow them, in the order of [`Timeline::labels`].
    #[must_use]
    pub fn symbols(&self) -> &CallSymbols {
        &self.symbols
    }

    /// Labels that are not functions of calls or samples.
    #[must_use]
    pub fn labels(&self) -> &[SliceLabel] {
        self.labels.all()
    }

    /// The samples of the event, by thread and time.
    #[must_use]
    pub fn samples(&self) -> &[TimedSample] {
        &self.samples
    }

    /// First moment of the profile.
    #[must_use]
    pub fn zero_ns(&self) -> i64 {
        self.zero_ns
    }

    /// Memory of the slices and their index, in bytes.
    #[must_use]
    pub fn num_bytes(&self) -> usize {
        let rows = self.tracks.iter().flat_map(|track| &track.rows).map(SliceRow::num_bytes);
        rows.sum::<usize>().saturating_add(self.samples.len().saturating_mul(size_of::<TimedSample>()))
    }

    /// Symbol of a label of a track.
    #[must_use]
    #[inline]
    pub fn symbol(&self, kind: TrackKind, label: u32) -> u32 {
        match kind {
            TrackKind::Calls => self.symbol_of_function.get(label as usize).copied().unwrap_or(u32::MAX),
            TrackKind::Samples => label,
            _ => (self.symbols.all().len() as u32).saturating_add(label),
        }
    }

    /// The boxes of some rows in some tiles, by row. `rows` are numbers of tracks and depths.
    #[must_use]
    pub fn tiles(&self, rows: &[(u32, u32)], range: &TileRange) -> Vec<Vec<TileBox>> {
        let row = |&(track, depth): &(u32, u32)| self.tracks.get(track as usize)?.rows.get(depth as usize);
        let boxes = |place| row(place).map(|row| tile::tile_boxes(row, range)).unwrap_or_default();
        perfuse_workers::install(|| rows.par_iter().map(boxes).collect())
    }
}

/// Process of each thread.
fn processes_of_threads(tables: &StackTables) -> Result<FxHashMap<u32, u32>, StackError> {
    let threads = crate::stacks::columns::numbers(&tables.threads, "threads", "thread_id")?;
    let processes = crate::stacks::columns::numbers(&tables.threads, "threads", "process_id")?;
    Ok(threads.into_iter().zip(processes).collect())
}

/// Symbol of each function that was called; those without a frame get a label.
fn symbols_of_functions<'a>(
    called: impl Iterator<Item = &'a u32>,
    symbols: &CallSymbols,
    labels: &mut Labels,
) -> Vec<u32> {
    let mut is_called: Vec<bool> = Vec::new();
    for &function_id in called {
        let index = function_id as usize;
        if index >= is_called.len() {
            is_called.resize(index.saturating_add(1).next_power_of_two(), false);
        }
        if let Some(is_called) = is_called.get_mut(index) {
            *is_called = true;
        }
    }
    let mut of = vec![u32::MAX; is_called.len()];
    for &(function_id, symbol) in symbols.traced() {
        if let Some(of) = of.get_mut(function_id as usize) {
            *of = symbol;
        }
    }
    let num_symbols = symbols.all().len() as u32;
    for (function_id, (of, is_called)) in (0u32..).zip(of.iter_mut().zip(is_called)) {
        if is_called && *of == u32::MAX {
            *of = num_symbols.saturating_add(labels.code(function_id, None));
        }
    }
    of
}
