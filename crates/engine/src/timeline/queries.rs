//! Questions about single slices: the longest, the next of a function, sums by function.

use std::collections::BinaryHeap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Timeline;
use super::row::{SliceRow, TimelineSlice};
use super::track::{TimelineTrack, TrackOwner};

/// Where a slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlicePlace {
    /// Number of its track.
    pub track: u32,
    /// Its depth.
    pub depth: u32,
    /// Its position in the row.
    pub position: u32,
}

/// The slices of one symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelTotal {
    /// Symbol.
    pub symbol: u32,
    /// Number of slices.
    pub count: u64,
    /// Sum of their durations.
    pub total_ns: u64,
    /// The longest of them.
    pub longest: SlicePlace,
    /// Its duration.
    pub longest_ns: u64,
}

/// Which slices a question is about: those of some tracks that start in a time range.
#[derive(Clone, Debug)]
pub struct SliceFilter {
    /// Threads; `None` is all tracks, also those of processes. Threads of processors and states of threads are in none.
    pub threads: Option<Vec<u32>>,
    /// Time in which they start.
    pub time_ns: Range<i64>,
}

impl Timeline {
    /// A slice by its place.
    #[must_use]
    pub fn slice(&self, place: SlicePlace) -> Option<TimelineSlice> {
        self.row(place)?.get(place.position as usize)
    }

    fn row(&self, place: SlicePlace) -> Option<&SliceRow> {
        self.tracks().get(place.track as usize)?.rows.get(place.depth as usize)
    }

    /// The slices around a slice in its track, outermost first.
    #[must_use]
    pub fn parents(&self, place: SlicePlace) -> Vec<SlicePlace> {
        let (Some(slice), Some(track)) = (self.slice(place), self.tracks().get(place.track as usize)) else {
            return Vec::new();
        };
        let at = |depth: u32| {
            let position = track.around(depth as usize, slice.start_ns)?;
            Some(SlicePlace { depth, position: position as u32, ..place })
        };
        (0..place.depth).filter_map(at).collect()
    }

    /// The slices one level below a slice, added up by symbol, and the time in them.
    #[must_use]
    pub fn children(&self, place: SlicePlace) -> (Vec<LabelTotal>, u64) {
        let (Some(slice), Some(track)) = (self.slice(place), self.tracks().get(place.track as usize)) else {
            return (Vec::new(), 0);
        };
        let depth = place.depth.saturating_add(1);
        let Some(row) = track.rows.get(depth as usize) else { return (Vec::new(), 0) };
        let positions = row.starting_before(slice.start_ns)..row.starting_before(slice.end_ns());
        let time_ns = row.sum(positions.start, positions.end);
        let mut sums = FxHashMap::default();
        self.add_row(track, (place.track, depth), positions, &mut sums);
        (by_total(sums), time_ns)
    }

    /// The time of a slice outside of the slices one level below it.
    #[must_use]
    pub fn self_ns(&self, place: SlicePlace) -> Option<u64> {
        let slice = self.slice(place)?;
        let below = SlicePlace { depth: place.depth.saturating_add(1), ..place };
        let inner = self.row(below).map_or(0, |row| {
            row.sum(row.starting_before(slice.start_ns), row.starting_before(slice.end_ns()))
        });
        Some(slice.duration_ns.saturating_sub(inner))
    }

    fn selected<'a>(&'a self, filter: &'a SliceFilter) -> impl Iterator<Item = (u32, &'a TimelineTrack)> {
        let is_selected = |track: &TimelineTrack| match (&filter.threads, track.owner) {
            (None, _) => true,
            (Some(threads), TrackOwner::Thread(thread_id)) => threads.contains(&thread_id),
            (Some(_), TrackOwner::Process(_) | TrackOwner::Processor(_)) => false,
        };
        (0u32..).zip(self.tracks()).filter(move |(_, track)| track.kind.is_work() && is_selected(track))
    }

    /// Numbers and durations of slices by symbol, the longest in sum first.
    #[must_use]
    pub fn totals(&self, filter: &SliceFilter) -> Vec<LabelTotal> {
        let mut sums = FxHashMap::default();
        for (number, track) in self.selected(filter) {
            for (depth, row) in (0u32..).zip(&track.rows) {
                let Range { start, end } = filter.time_ns;
                let positions = row.starting_before(start)..row.starting_before(end);
                self.add_row(track, (number, depth), positions, &mut sums);
            }
        }
        by_total(sums)
    }

    fn add_row(
        &self,
        track: &TimelineTrack,
        (number, depth): (u32, u32),
        positions: Range<usize>,
        sums: &mut FxHashMap<u32, LabelTotal>,
    ) {
        let Some(row) = track.rows.get(depth as usize) else { return };
        for position in positions {
            let Some(slice) = row.get(position) else { continue };
            let symbol = self.symbol(track.kind, slice.label);
            let longest = SlicePlace { track: number, depth, position: position as u32 };
            let sum = sums.entry(symbol).or_insert(LabelTotal {
                symbol,
                count: 0,
                total_ns: 0,
                longest,
                longest_ns: 0,
            });
            sum.count = sum.count.saturating_add(1);
            sum.total_ns = sum.total_ns.saturating_add(slice.duration_ns);
            if slice.duration_ns > sum.longest_ns {
                (sum.longest, sum.longest_ns) = (longest, slice.duration_ns);
            }
        }
    }

    /// The longest slices, of one symbol or of all.
    #[must_use]
    pub fn longest(&self, filter: &SliceFilter, symbol: Option<u32>, limit: usize) -> Vec<SlicePlace> {
        match symbol {
            None => self.longest_of_all(filter, limit),
            Some(symbol) => self.longest_of(filter, symbol, limit),
        }
    }

    fn longest_of_all(&self, filter: &SliceFilter, limit: usize) -> Vec<SlicePlace> {
        // Ranges of rows by their longest slice: the longest of all is that of the first range, which it divides.
        let mut ranges = BinaryHeap::new();
        let part = |track: u32, depth: u32, row: &SliceRow, positions: Range<usize>| {
            let longest = row.longest(positions.start, positions.end)?;
            let place = SlicePlace { track, depth, position: longest as u32 };
            Some((row.duration(longest), std::cmp::Reverse(place), positions.start, positions.end))
        };
        for (number, track) in self.selected(filter) {
            for (depth, row) in (0u32..).zip(&track.rows) {
                let positions =
                    row.starting_before(filter.time_ns.start)..row.starting_before(filter.time_ns.end);
                ranges.extend(part(number, depth, row, positions));
            }
        }
        let mut found = Vec::new();
        while found.len() < limit
            && let Some((_, std::cmp::Reverse(place), start, end)) = ranges.pop()
        {
            found.push(place);
            if let Some(row) = self.row(place) {
                let position = place.position as usize;
                ranges.extend(part(place.track, place.depth, row, start..position));
                ranges.extend(part(place.track, place.depth, row, position.saturating_add(1)..end));
            }
        }
        found
    }

    fn longest_of(&self, filter: &SliceFilter, symbol: u32, limit: usize) -> Vec<SlicePlace> {
        // The shortest of the longest so far is first.
        let mut longest = BinaryHeap::new();
        for (number, track) in self.selected(filter) {
            for (depth, row) in (0u32..).zip(&track.rows) {
                let positions =
                    row.starting_before(filter.time_ns.start)..row.starting_before(filter.time_ns.end);
                let labels = row.labels().get(positions.clone()).unwrap_or_default();
                for (position, &label) in positions.zip(labels) {
                    if self.symbol(track.kind, label) != symbol {
                        continue;
                    }
                    let place = SlicePlace { track: number, depth, position: position as u32 };
                    longest.push((std::cmp::Reverse(row.duration(position)), place));
                    if longest.len() > limit {
                        longest.pop();
                    }
                }
            }
        }
        longest.into_sorted_vec().into_iter().map(|(_, place)| place).collect()
    }

    /// The slice after or before another: in its row, or, with `same_symbol`, the nearest by start with its symbol in the
    /// track.
    #[must_use]
    pub fn neighbour(&self, place: SlicePlace, is_next: bool, same_symbol: bool) -> Option<SlicePlace> {
        let slice = self.slice(place)?;
        let track = self.tracks().get(place.track as usize)?;
        if !same_symbol {
            let position =
                if is_next { place.position.checked_add(1) } else { place.position.checked_sub(1) }?;
            let found = SlicePlace { position, ..place };
            return self.slice(found).map(|_| found);
        }
        let symbol = self.symbol(track.kind, slice.label);
        let has_symbol = |label: &u32| self.symbol(track.kind, *label) == symbol;
        let key = |start_ns: i64, depth: u32| (start_ns, depth);
        let here = key(slice.start_ns, place.depth);
        let candidates = (0u32..).zip(&track.rows).filter_map(|(depth, row)| {
            // Of the slices that start at the same time, those at greater depths come later.
            let labels = row.labels();
            let found = if is_next {
                let from = if depth == place.depth {
                    (place.position as usize).saturating_add(1)
                } else if depth > place.depth {
                    row.starting_before(slice.start_ns)
                } else {
                    row.starting_before(slice.start_ns.saturating_add(1))
                };
                from.saturating_add(labels.get(from..)?.iter().position(has_symbol)?)
            } else {
                let to = if depth == place.depth {
                    place.position as usize
                } else if depth < place.depth {
                    row.starting_before(slice.start_ns.saturating_add(1))
                } else {
                    row.starting_before(slice.start_ns)
                };
                labels.get(..to)?.iter().rposition(has_symbol)?
            };
            let start_ns = row.get(found)?.start_ns;
            Some((key(start_ns, depth), SlicePlace { depth, position: found as u32, ..place }))
        });
        let candidates = candidates.filter(|(at, found)| *at != here || found.position != place.position);
        if is_next { candidates.min() } else { candidates.max() }.map(|(_, found)| found)
    }
}

fn by_total(sums: FxHashMap<u32, LabelTotal>) -> Vec<LabelTotal> {
    let mut totals: Vec<_> = sums.into_values().collect();
    totals.sort_unstable_by_key(|total| (std::cmp::Reverse(total.total_ns), total.symbol));
    totals
}
