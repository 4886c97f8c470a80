//! Heat maps: weight of samples, or busy time of calls, in a grid of cells.

use std::ops::Range;

use super::Timeline;
use super::row::SliceRow;
use super::runs::TimedSample;
use super::track::{TimelineTrack, TrackKind, TrackOwner};
use crate::stacks::CodeOrigin;

/// The columns of a heat map, or buckets of an activity.
#[derive(Clone, Debug)]
pub struct HeatColumns {
    /// First and last time, on the profile's clock; the end is not included.
    pub time_ns: Range<i64>,
    /// Time of a column.
    pub column_ns: u64,
    /// Number of columns.
    pub num_columns: usize,
    /// Number of rows into which a column is divided, for a heat map of offsets; else 1.
    pub rows_of_column: usize,
}

impl HeatColumns {
    /// Width of a cell in time.
    #[must_use]
    pub fn cell_ns(&self) -> u64 {
        self.column_ns.div_ceil(self.rows_of_column.max(1) as u64).max(1)
    }

    /// Column and offset in it of a time; none outside of the range.
    fn place(&self, ts_ns: i64) -> Option<(usize, usize)> {
        if !self.time_ns.contains(&ts_ns) {
            return None;
        }
        let after = u64::try_from(ts_ns.saturating_sub(self.time_ns.start)).ok()?;
        let column = after.checked_div(self.column_ns)?;
        let offset = after.checked_rem(self.column_ns)?.checked_div(self.cell_ns())?;
        let column = usize::try_from(column).ok().filter(|&column| column < self.num_columns)?;
        Some((column, (offset as usize).min(self.rows_of_column.saturating_sub(1))))
    }

    /// Start of the cell after the one that contains a time.
    fn next_cell(&self, ts_ns: i64) -> i64 {
        let after = u64::try_from(ts_ns.saturating_sub(self.time_ns.start)).unwrap_or_default();
        let column = after.checked_div(self.column_ns).unwrap_or_default();
        let offset = after.checked_rem(self.column_ns).unwrap_or_default();
        let cell = offset.checked_div(self.cell_ns()).unwrap_or_default().saturating_add(1);
        let in_column = cell.saturating_mul(self.cell_ns()).min(self.column_ns);
        let next = column.saturating_mul(self.column_ns).saturating_add(in_column);
        self.time_ns.start.saturating_add_unsigned(next)
    }
}

/// A grid of numbers, row by row.
#[derive(Clone, Debug)]
pub struct HeatMap {
    /// Number of columns.
    pub num_columns: usize,
    /// Number of rows.
    pub num_rows: usize,
    /// The cells.
    pub cells: Vec<f64>,
}

/// Largest number of cells.
pub const MAX_CELLS: usize = 4_000_000;

impl HeatMap {
    fn new(num_columns: usize, num_rows: usize) -> Option<Self> {
        let num = num_columns.checked_mul(num_rows).filter(|&num| num <= MAX_CELLS)?;
        Some(Self { num_columns, num_rows, cells: vec![0.0; num] })
    }

    fn add(&mut self, column: usize, row: usize, weight: f64) {
        let at = row.saturating_mul(self.num_columns).saturating_add(column);
        if let Some(cell) = self.cells.get_mut(at)
            && column < self.num_columns
        {
            *cell += weight;
        }
    }
}

/// The weight of samples; `row_of` is the row of a sample, none where it is not counted, in a map of `num_rows` where a column
/// is not divided.
fn heat_of_samples(
    samples: &[TimedSample],
    columns: &HeatColumns,
    num_rows: usize,
    row_of: impl Fn(&TimedSample) -> Option<usize>,
) -> Option<HeatMap> {
    let is_divided = columns.rows_of_column > 1;
    let mut map =
        HeatMap::new(columns.num_columns, if is_divided { columns.rows_of_column } else { num_rows })?;
    for sample in samples {
        if let (Some(row), Some((column, offset))) = (row_of(sample), columns.place(sample.ts_ns)) {
            map.add(column, if is_divided { offset } else { row }, sample.weight as f64);
        }
    }
    Some(map)
}

/// The time in the outermost calls of threads; `row_of` is the row of a thread, none where it is not counted.
fn heat_of_calls(
    tracks: &[TimelineTrack],
    columns: &HeatColumns,
    num_rows: usize,
    row_of: impl Fn(u32) -> Option<usize>,
) -> Option<HeatMap> {
    let is_divided = columns.rows_of_column > 1;
    let mut map =
        HeatMap::new(columns.num_columns, if is_divided { columns.rows_of_column } else { num_rows })?;
    for track in tracks.iter().filter(|track| track.kind == TrackKind::Calls) {
        let TrackOwner::Thread(thread_id) = track.owner else { continue };
        let (Some(map_row), Some(row)) = (row_of(thread_id), track.rows.first()) else { continue };
        for position in row.reaching(columns.time_ns.start)..row.starting_before(columns.time_ns.end) {
            let Some(slice) = row.get(position) else { continue };
            let mut at = slice.start_ns.max(columns.time_ns.start);
            let end = slice.end_ns().min(columns.time_ns.end);
            while at < end {
                let next = columns.next_cell(at).min(end).max(at.saturating_add(1));
                if let Some((column, offset)) = columns.place(at) {
                    let cell = if is_divided { offset } else { map_row };
                    map.add(column, cell, next.abs_diff(at) as f64);
                }
                at = next;
            }
        }
    }
    Some(map)
}

/// Number of rows of a map of durations: one for each power of two of nanoseconds.
pub const DURATION_ROWS: usize = 48;

/// Adds the slices of a row by start and by the power of two of their duration.
fn add_durations(map: &mut HeatMap, row: &SliceRow, columns: &HeatColumns, is_counted: impl Fn(u32) -> bool) {
    let positions = row.starting_before(columns.time_ns.start)..row.starting_before(columns.time_ns.end);
    let labels = row.labels().get(positions.clone()).unwrap_or_default();
    for (position, _) in positions.zip(labels).filter(|(_, label)| is_counted(**label)) {
        if let Some(slice) = row.get(position)
            && let Some((column, _)) = columns.place(slice.start_ns)
        {
            let power = slice.duration_ns.max(1).ilog2() as usize;
            map.add(column, power.min(DURATION_ROWS.saturating_sub(1)), 1.0);
        }
    }
}

/// What the rows of a heat map are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeatRows {
    /// Parts of a column.
    Offsets,
    /// Threads.
    Threads,
    /// Processors.
    Processors,
    /// Origins of the code that ran.
    Origins,
    /// Tiers of the code that ran; kinds of code without one.
    Tiers,
}

impl HeatRows {
    /// All, with their names.
    pub const ALL: [(&'static str, Self); 5] = [
        ("offsets", Self::Offsets),
        ("threads", Self::Threads),
        ("processors", Self::Processors),
        ("origins", Self::Origins),
        ("tiers", Self::Tiers),
    ];
}

/// A heat map that is asked for.
#[derive(Clone, Debug)]
pub struct HeatRequest {
    /// What its rows are.
    pub rows: HeatRows,
    /// Whether it shows the time in calls instead of the weight of samples.
    pub of_calls: bool,
    /// Its columns.
    pub columns: HeatColumns,
    /// Number of parts of a column, for [`HeatRows::Offsets`].
    pub num_rows: usize,
    /// Keys of the threads that count, in the order of their rows.
    pub threads: Vec<u32>,
    /// Tiers of the samples that count; `None` is all.
    pub tiers: Option<Vec<String>>,
}

impl Timeline {
    /// A heat map with the names of its rows, for threads their keys; `None` where it has too many cells.
    #[must_use]
    pub fn heat(&self, request: &HeatRequest) -> Option<(Vec<String>, HeatMap)> {
        let mut columns = request.columns.clone();
        columns.rows_of_column = if request.rows == HeatRows::Offsets { request.num_rows.max(2) } else { 1 };
        let names = self.row_names(request);
        let row_of_thread = |thread_id: u32| request.threads.iter().position(|&thread| thread == thread_id);
        let map = if request.of_calls {
            heat_of_calls(self.tracks(), &columns, names.len(), row_of_thread)?
        } else {
            let rows = self.rows_of_symbols(request, &names);
            let processors: Vec<u32> = self.processors().collect();
            heat_of_samples(self.samples(), &columns, names.len(), |sample| {
                let thread = row_of_thread(sample.thread_id)?;
                let row = rows.get(sample.symbol as usize).copied().flatten()?;
                match request.rows {
                    HeatRows::Threads => Some(thread),
                    HeatRows::Processors => processors.iter().position(|&cpu| Some(cpu) == sample.cpu),
                    _ => Some(row),
                }
            })?
        };
        Some((names, map))
    }

    /// Numbers of the processors that have tracks.
    fn processors(&self) -> impl Iterator<Item = u32> {
        self.tracks().iter().filter_map(|track| match track.owner {
            TrackOwner::Processor(cpu) => Some(cpu),
            _ => None,
        })
    }

    fn row_names(&self, request: &HeatRequest) -> Vec<String> {
        match request.rows {
            HeatRows::Offsets => vec![String::new()],
            HeatRows::Threads => request.threads.iter().map(ToString::to_string).collect(),
            HeatRows::Processors => self.processors().map(|cpu| cpu.to_string()).collect(),
            HeatRows::Origins => CodeOrigin::ALL.iter().map(|origin| origin.name().to_owned()).collect(),
            HeatRows::Tiers => {
                let symbols = 0..self.symbols().all().len() as u32;
                let names: std::collections::BTreeSet<_> =
                    symbols.map(|symbol| self.symbols().tier_or_kind(symbol).to_owned()).collect();
                names.into_iter().collect()
            }
        }
    }

    /// Row of the samples of each symbol; `None` for tiers that are not counted.
    fn rows_of_symbols(&self, request: &HeatRequest, names: &[String]) -> Vec<Option<usize>> {
        let row = |symbol| {
            let tier = self.symbols().tier_or_kind(symbol);
            if request.tiers.as_ref().is_some_and(|tiers| !tiers.iter().any(|counted| counted == tier)) {
                return None;
            }
            match request.rows {
                HeatRows::Offsets | HeatRows::Threads | HeatRows::Processors => Some(0),
                HeatRows::Origins => {
                    names.iter().position(|name| name == self.symbols().origin(symbol).name())
                }
                HeatRows::Tiers => names.iter().position(|name| name == tier),
            }
        };
        (0..self.symbols().all().len() as u32).map(row).collect()
    }

    /// The number of slices, of some symbols or of all, by start and by the power of two of their duration; `None` where it has
    /// too many cells.
    #[must_use]
    pub fn heat_of_durations(
        &self,
        columns: &HeatColumns,
        threads: Option<&[u32]>,
        symbols: Option<&[u32]>,
    ) -> Option<HeatMap> {
        let is_selected = |track: &&TimelineTrack| match (threads, track.owner) {
            (None, _) => true,
            (Some(threads), TrackOwner::Thread(thread_id)) => threads.contains(&thread_id),
            (Some(_), TrackOwner::Process(_) | TrackOwner::Processor(_)) => false,
        };
        let mut map = HeatMap::new(columns.num_columns, DURATION_ROWS)?;
        for track in self.tracks().iter().filter(|track| track.kind.is_work()).filter(is_selected) {
            let counts =
                |label| symbols.is_none_or(|symbols| symbols.contains(&self.symbol(track.kind, label)));
            track.rows.iter().for_each(|row| add_durations(&mut map, row, columns, counts));
        }
        Some(map)
    }
}
