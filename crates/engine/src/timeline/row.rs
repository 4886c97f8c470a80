//! The slices of one row of a track: those at one depth, in order of their starts.

use rustc_hash::FxHashMap;

use super::index::SliceIndex;

/// Stands for a duration that does not fit in 32 bits.
const LONG: u32 = u32::MAX;

/// A slice: a named time range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineSlice {
    /// Start on the profile's clock.
    pub start_ns: i64,
    /// Duration.
    pub duration_ns: u64,
    /// Number of its label.
    pub label: u32,
}

impl TimelineSlice {
    /// Its end.
    #[must_use]
    pub fn end_ns(&self) -> i64 {
        self.start_ns.saturating_add_unsigned(self.duration_ns)
    }
}

/// Slices of one depth, 16 bytes each.
#[derive(Clone, Debug, Default)]
pub struct SliceRow {
    starts: Vec<i64>,
    durations: Vec<u32>,
    labels: Vec<u32>,
    /// Durations that do not fit in 32 bits, by position.
    long: FxHashMap<u32, u64>,
    is_sorted: bool,
    /// The latest end so far, by position; only where slices overlap. Else ends are in order, as starts are.
    latest_ends: Option<Vec<i64>>,
    index: SliceIndex,
}

impl SliceRow {
    /// Appends a slice; those after the first 2^32 - 1 are refused.
    #[inline]
    pub fn push(&mut self, slice: TimelineSlice) -> bool {
        let position = self.starts.len();
        if position >= u32::MAX as usize {
            return false;
        }
        let last = self.starts.last().copied().unwrap_or(slice.start_ns);
        self.is_sorted = (position == 0 || self.is_sorted) && last <= slice.start_ns;
        self.starts.push(slice.start_ns);
        self.labels.push(slice.label);
        match u32::try_from(slice.duration_ns) {
            Ok(duration) if duration != LONG => self.durations.push(duration),
            _ => {
                self.durations.push(LONG);
                self.long.insert(position as u32, slice.duration_ns);
            }
        }
        true
    }

    /// Sorts the slices and builds the index.
    pub fn finish(&mut self) {
        if !self.is_sorted {
            self.sort();
        }
        self.starts.shrink_to_fit();
        self.durations.shrink_to_fit();
        self.labels.shrink_to_fit();
        let mut latest = i64::MIN;
        let overlaps = (0..self.len()).filter_map(|position| self.get(position)).any(|slice| {
            let overlaps = slice.start_ns < latest;
            latest = latest.max(slice.end_ns());
            overlaps
        });
        let mut latest = i64::MIN;
        self.latest_ends = overlaps.then(|| {
            let ends = (0..self.len()).filter_map(|position| self.get(position)).map(|slice| {
                latest = latest.max(slice.end_ns());
                latest
            });
            ends.collect()
        });
        self.index = SliceIndex::of(self.len(), |position| self.duration(position));
    }

    fn sort(&mut self) {
        let mut slices: Vec<_> = (0..self.len()).filter_map(|position| self.get(position)).collect();
        slices.sort_by_key(|slice| (slice.start_ns, std::cmp::Reverse(slice.duration_ns)));
        *self = Self::default();
        for slice in slices {
            self.push(slice);
        }
    }

    /// Number of slices.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Memory in bytes.
    #[must_use]
    pub fn num_bytes(&self) -> usize {
        let own = self.starts.capacity().saturating_mul(8).saturating_add(self.len().saturating_mul(8));
        let ends = self.latest_ends.as_ref().map_or(0, |ends| ends.len().saturating_mul(8));
        own.saturating_add(ends).saturating_add(self.index.num_bytes())
    }

    /// A slice by its position.
    #[must_use]
    #[inline]
    pub fn get(&self, position: usize) -> Option<TimelineSlice> {
        Some(TimelineSlice {
            start_ns: *self.starts.get(position)?,
            duration_ns: self.duration(position),
            label: *self.labels.get(position)?,
        })
    }

    /// The labels, by position.
    #[must_use]
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    #[inline]
    pub(super) fn duration(&self, position: usize) -> u64 {
        match self.durations.get(position).copied() {
            Some(LONG) => self.long.get(&(position as u32)).copied().unwrap_or_default(),
            duration => duration.map_or(0, u64::from),
        }
    }

    /// Start and end of the whole row.
    #[must_use]
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        let first = *self.starts.first()?;
        let last = match &self.latest_ends {
            Some(ends) => *ends.last()?,
            None => self.get(self.len().saturating_sub(1))?.end_ns(),
        };
        Some((first, last))
    }

    /// Sum of all durations.
    #[must_use]
    pub fn busy_ns(&self) -> u64 {
        self.sum(0, self.len())
    }

    /// Number of slices that start before a time.
    #[must_use]
    pub fn starting_before(&self, ts_ns: i64) -> usize {
        self.starts.partition_point(|&start| start < ts_ns)
    }

    /// The same for a time after the start of the slice at `from`, which is usually near.
    #[inline]
    pub(super) fn starting_before_from(&self, ts_ns: i64, from: usize) -> usize {
        let mut step = 1usize;
        let mut low = from;
        // The bound doubles until it is passed: most buckets contain few slices.
        loop {
            let high = from.saturating_add(step);
            match self.starts.get(high) {
                Some(&start) if start < ts_ns => low = high,
                _ => {
                    let rest = self.starts.get(low..high.min(self.len())).unwrap_or_default();
                    return low.saturating_add(rest.partition_point(|&start| start < ts_ns));
                }
            }
            step = step.saturating_mul(2);
        }
    }

    /// The first slice that may end after a time: all before it end at or before the time.
    #[must_use]
    pub fn reaching(&self, ts_ns: i64) -> usize {
        match &self.latest_ends {
            Some(ends) => ends.partition_point(|&end| end <= ts_ns),
            None => {
                // Only the last slice that starts before the time can reach beyond it.
                let after = self.starting_before(ts_ns);
                let last = after.saturating_sub(1);
                match self.get(last) {
                    Some(slice) if after > 0 && slice.end_ns() > ts_ns => last,
                    _ => after,
                }
            }
        }
    }

    /// Position of the longest slice of a range; of several, the first.
    #[must_use]
    pub fn longest(&self, from: usize, to: usize) -> Option<usize> {
        self.index.longest(from, to.min(self.len()), |position| self.duration(position))
    }

    /// Sum of the durations of a range.
    #[must_use]
    pub fn sum(&self, from: usize, to: usize) -> u64 {
        self.index.sum(from, to.min(self.len()), |position| self.duration(position))
    }
}
