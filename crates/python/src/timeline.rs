//! Timelines: tracks, tiles, heat maps and single slices.

use std::sync::Arc;

use perfuse_engine::stacks::CodeOrigin;
use perfuse_engine::timeline::{
    DURATION_ROWS, HeatColumns, HeatMap, HeatRequest, HeatRows, LabelTotal, SliceFilter, SliceLabel,
    SlicePlace, TileRange, Timeline, TimelineError, TimelineOptions, TimelineTrack,
};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::arrow::ArrowStream;
use crate::calls::selection;
use crate::choice::choice;
use crate::errors::table_error;
use crate::inputs::ReadInputs;
use crate::output::{Progress, WaitingPython};
use crate::profile::PyProfile;

/// Slices of a profile, ready for questions about any part of the time.
#[pyclass(frozen, name = "Timeline", module = "perfuse._core")]
pub struct PyTimeline(Arc<Timeline>);

/// `(kind, "thread", "process" or "processor", its key or number, number of slices of each depth, span, busy time)`.
type TrackRow = (&'static str, &'static str, u32, Vec<usize>, Option<(i64, i64)>, u64);

/// `(track, depth, position)` of a slice.
type Place = (u32, u32, u32);

/// `(track, depth, position, start, duration, symbol)`.
type SliceRow = (u32, u32, u32, i64, u64, u32);

/// `(name, function_id, thread_id, tier, origin)`.
type LabelRow = (String, Option<u32>, Option<u32>, Option<String>, &'static str);

/// `(symbol, count, total, longest slice)`.
type TotalRow = (u32, u64, u64, Place);

#[pymethods]
impl PyTimeline {
    #[new]
    #[pyo3(signature = (profile, *, event, zero_ns, max_slices, threads=None, time_ns=None, num_events=None, progress=None))]
    #[allow(clippy::too_many_arguments, reason = "one argument per option")]
    fn new(
        py: Python<'_>,
        profile: &PyProfile,
        event: Option<String>,
        zero_ns: i64,
        max_slices: u64,
        threads: Option<Vec<u32>>,
        time_ns: Option<(i64, i64)>,
        num_events: Option<u64>,
        progress: Progress,
    ) -> PyResult<Self> {
        let options = TimelineOptions { selection: selection(threads, time_ns), event, zero_ns, max_slices };
        let mut waiting = WaitingPython::new(progress, num_events);
        let made =
            profile.inputs.read(py, || profile.inner.timeline(&options, &mut |done| waiting.go_on(done)))?;
        match made {
            Ok(timeline) => Ok(Self(Arc::new(timeline))),
            Err(TimelineError::TooManySlices) => Err(PyMemoryError::new_err("there are too many slices")),
            Err(TimelineError::Table(error)) => Err(table_error(error)),
            Err(TimelineError::Stopped) => waiting.settle(Err(perfuse_writers::Error::Stopped)),
        }
    }

    /// Memory of the slices and their index, in bytes.
    #[getter]
    fn num_bytes(&self) -> usize {
        self.0.num_bytes()
    }

    /// A row per track.
    fn tracks(&self) -> Vec<TrackRow> {
        let row = |track: &TimelineTrack| {
            let (owner, key) = track.owner.parts();
            let depths = track.rows.iter().map(|row| row.len()).collect();
            (track.kind.name(), owner, key, depths, track.span_ns(), track.busy_ns())
        };
        self.0.tracks().iter().map(row).collect()
    }

    /// Symbols of functions: as those of a call tree.
    fn symbols(&self, py: Python<'_>) -> ArrowStream {
        ArrowStream::of(py.detach(|| self.0.symbols().batch()))
    }

    /// Symbols that follow those of functions: `(name, function_id, thread_id, tier, origin)`.
    fn labels(&self) -> Vec<LabelRow> {
        let row = |label: &SliceLabel| {
            let (tier, is_code) = (label.tier.as_deref(), label.function_id.is_some());
            let origin = CodeOrigin::of(if is_code { "jit" } else { "" }, "", tier, false, true);
            let (name, tier) = (label.name.to_string(), tier.map(str::to_owned));
            (name, label.function_id, label.thread_id, tier, origin.name())
        };
        self.0.labels().iter().map(row).collect()
    }

    /// Boxes of rows `(track, depth)` in tiles, as columns; None where there are too many.
    fn tiles<'py>(
        &self,
        py: Python<'py>,
        rows: Vec<(u32, u32)>,
        k: u32,
        first: i32,
        last: i32,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let range = TileRange { k, tiles: first..last.saturating_add(1), zero_ns: self.0.zero_ns() };
        let Some(columns) = py.detach(|| self.0.tile_columns(&rows, &range)) else { return Ok(None) };
        let bytes = |column: &[u8]| PyBytes::new(py, column);
        let dict = dict!(py,
            tile: bytes(&columns.tile), track: bytes(&columns.track), depth: bytes(&columns.depth),
            start: bytes(&columns.start), duration: bytes(&columns.duration), symbol: bytes(&columns.symbol),
            count: bytes(&columns.count), busy: bytes(&columns.busy), index: bytes(&columns.index),
        )?;
        Ok(Some(dict))
    }

    /// A slice; None where there is none.
    fn slice(&self, place: Place) -> Option<SliceRow> {
        slice_row(&self.0, place_of(place))
    }

    /// The time of a slice outside of those one level below it; None where there is no slice.
    fn self_ns(&self, place: Place) -> Option<u64> {
        self.0.self_ns(place_of(place))
    }

    /// The slices around a slice, outermost first.
    fn parents(&self, place: Place) -> Vec<SliceRow> {
        self.0.parents(place_of(place)).into_iter().filter_map(|place| slice_row(&self.0, place)).collect()
    }

    /// The slices one level below a slice, by symbol, and the time in them.
    fn children(&self, py: Python<'_>, place: Place) -> (Vec<TotalRow>, u64) {
        let (children, time_ns) = py.detach(|| self.0.children(place_of(place)));
        (children.iter().map(total_row).collect(), time_ns)
    }

    /// The slice before or after a slice.
    fn neighbour(&self, py: Python<'_>, place: Place, is_next: bool, same_symbol: bool) -> Option<SliceRow> {
        let found = py.detach(|| self.0.neighbour(place_of(place), is_next, same_symbol));
        found.and_then(|place| slice_row(&self.0, place))
    }

    /// The longest slices that start in a time range.
    #[pyo3(signature = (*, time_ns, threads=None, symbol=None, limit=20))]
    fn longest(
        &self,
        py: Python<'_>,
        time_ns: (i64, i64),
        threads: Option<Vec<u32>>,
        symbol: Option<u32>,
        limit: usize,
    ) -> Vec<SliceRow> {
        let filter = SliceFilter { threads, time_ns: time_ns.0..time_ns.1 };
        let found = py.detach(|| self.0.longest(&filter, symbol, limit));
        found.into_iter().filter_map(|place| slice_row(&self.0, place)).collect()
    }

    /// Number and sum of the slices that start in a time range, by symbol.
    #[pyo3(signature = (*, time_ns, threads=None))]
    fn totals(&self, py: Python<'_>, time_ns: (i64, i64), threads: Option<Vec<u32>>) -> Vec<TotalRow> {
        let filter = SliceFilter { threads, time_ns: time_ns.0..time_ns.1 };
        py.detach(|| self.0.totals(&filter)).iter().map(total_row).collect()
    }

    /// A heat map: weight of samples, or time in calls, by time and by `rows`: `offsets` in a column, `threads`, `processors`,
    /// `origins`, `tiers`.
    /// Returns names or keys of the rows, and the cells, row by row, as 64-bit floats; None where there are too many cells.
    #[pyo3(signature = (*, rows, of_calls, time_ns, column_ns, num_columns, num_rows, threads, tiers=None))]
    #[allow(clippy::too_many_arguments, reason = "one argument per option")]
    fn heat<'py>(
        &self,
        py: Python<'py>,
        rows: &str,
        of_calls: bool,
        time_ns: (i64, i64),
        column_ns: u64,
        num_columns: usize,
        num_rows: usize,
        threads: Vec<u32>,
        tiers: Option<Vec<String>>,
    ) -> PyResult<Option<(Vec<String>, Bound<'py, PyBytes>)>> {
        let rows = choice("rows", rows, &HeatRows::ALL)?;
        let columns = columns(time_ns, column_ns, num_columns)?;
        let request = HeatRequest { rows, of_calls, columns, num_rows, threads, tiers };
        let map = py.detach(|| self.0.heat(&request));
        Ok(map.map(|(names, map)| (names, cells(py, &map))))
    }

    /// The number of calls of some symbols by time and by the power of two of their duration; None where there are too many cells.
    #[pyo3(signature = (*, symbols, time_ns, column_ns, num_columns, threads=None))]
    fn heat_of_durations<'py>(
        &self,
        py: Python<'py>,
        symbols: Option<Vec<u32>>,
        time_ns: (i64, i64),
        column_ns: u64,
        num_columns: usize,
        threads: Option<Vec<u32>>,
    ) -> PyResult<Option<(usize, Bound<'py, PyBytes>)>> {
        let columns = columns(time_ns, column_ns, num_columns)?;
        let map = py.detach(|| self.0.heat_of_durations(&columns, threads.as_deref(), symbols.as_deref()));
        Ok(map.map(|map| (DURATION_ROWS, cells(py, &map))))
    }
}

fn columns(time_ns: (i64, i64), column_ns: u64, num_columns: usize) -> PyResult<HeatColumns> {
    let time_ns = time_ns.0..time_ns.1;
    if column_ns == 0 || time_ns.is_empty() {
        return Err(PyValueError::new_err("there is no time in a column"));
    }
    Ok(HeatColumns { time_ns, column_ns, num_columns, rows_of_column: 1 })
}

fn cells<'py>(py: Python<'py>, map: &HeatMap) -> Bound<'py, PyBytes> {
    let bytes: Vec<u8> = map.cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
    PyBytes::new(py, &bytes)
}

fn place_of((track, depth, position): Place) -> SlicePlace {
    SlicePlace { track, depth, position }
}

fn slice_row(timeline: &Timeline, place: SlicePlace) -> Option<SliceRow> {
    let slice = timeline.slice(place)?;
    let kind = timeline.tracks().get(place.track as usize)?.kind;
    let symbol = timeline.symbol(kind, slice.label);
    Some((place.track, place.depth, place.position, slice.start_ns, slice.duration_ns, symbol))
}

fn total_row(total: &LabelTotal) -> TotalRow {
    let SlicePlace { track, depth, position } = total.longest;
    (total.symbol, total.count, total.total_ns, (track, depth, position))
}
