//! Samples in time: runs of equal frames, and the weight of samples in parts of the time.

use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use perfuse_tables::access::{ColumnError, nullable, numbers, text};
use rustc_hash::FxHashMap;

use super::row::{SliceRow, TimelineSlice};
use crate::calls::Selection;
use crate::stacks::SymbolStacks;

/// Frames deeper than this are not drawn.
const MAX_DEPTH: usize = 512;

/// A sample of the event that the timeline shows.
#[derive(Clone, Copy, Debug)]
pub struct TimedSample {
    /// Time on the profile's clock.
    pub ts_ns: i64,
    /// Thread.
    pub thread_id: u32,
    /// Symbol of the function that ran.
    pub symbol: u32,
    /// Number of events that it represents.
    pub weight: u64,
    /// Processor.
    pub cpu: Option<u32>,
    /// Row of `stacks`; `u32::MAX` where it has none.
    stack: u32,
}

#[cfg(test)]
impl TimedSample {
    /// A sample for tests of times.
    pub(super) fn without_stack(ts_ns: i64, thread_id: u32, cpu: Option<u32>) -> Self {
        Self { ts_ns, thread_id, symbol: 0, weight: 1, cpu, stack: u32::MAX }
    }
}

/// The selected samples of an event, by thread and time.
pub(super) fn timed_samples(
    batches: &[RecordBatch],
    event: &str,
    selection: &Selection,
    stacks: &SymbolStacks,
) -> Result<Vec<TimedSample>, ColumnError> {
    let mut samples = Vec::new();
    for batch in batches {
        let times = numbers::<Int64Type>(batch, "ts_ns")?;
        let threads = numbers::<UInt32Type>(batch, "thread_id")?;
        let stack_ids = numbers::<UInt32Type>(batch, "stack_id")?;
        let weights = numbers::<UInt64Type>(batch, "weight")?;
        let cpus = numbers::<UInt32Type>(batch, "cpu")?;
        let events = text(batch, "event")?;
        for row in 0..batch.num_rows() {
            let (ts_ns, thread_id) = (times.value(row), threads.value(row));
            if events.get(row) == Some(event) && selection.takes(thread_id, ts_ns) {
                let stack =
                    if stack_ids.is_null(row) { u32::MAX } else { stacks.keys.row(stack_ids.value(row)) };
                let symbol = stacks.symbol(stack);
                let (weight, cpu) = (weights.value(row), nullable(cpus, row));
                samples.push(TimedSample { ts_ns, thread_id, symbol, weight, cpu, stack });
            }
        }
    }
    samples.sort_by_key(|sample| (sample.thread_id, sample.ts_ns));
    Ok(samples)
}

/// The runs of each thread, by its key: consecutive samples with the same frame on the same callers. A sample lasts until
/// the next one of its thread, at most twice the usual distance of samples.
pub(super) fn sample_runs(
    samples: &[TimedSample],
    stacks: &SymbolStacks,
    max_slices: u64,
) -> Option<Vec<(u32, Vec<SliceRow>)>> {
    let mut tracks = Vec::new();
    let mut num_slices = 0u64;
    let mut paths = SymbolPaths { stacks, known: FxHashMap::default() };
    for thread in samples.chunk_by(|a, b| a.thread_id == b.thread_id) {
        let Some(first) = thread.first() else { continue };
        let gap_ns = usual_gap_ns(thread).saturating_mul(2);
        let mut rows: Vec<SliceRow> = Vec::new();
        let mut open: Vec<(u32, i64)> = Vec::new();
        let mut last_end = i64::MIN;
        let mut close = |open: &mut Vec<(u32, i64)>, rows: &mut Vec<SliceRow>, depth: usize, end_ns: i64| {
            while open.len() > depth
                && let Some((label, start_ns)) = open.pop()
            {
                if rows.len() <= open.len() {
                    rows.resize_with(open.len().saturating_add(1), SliceRow::default);
                }
                let duration_ns = end_ns.saturating_sub(start_ns).max(0).unsigned_abs();
                if let Some(row) = rows.get_mut(open.len()) {
                    row.push(TimelineSlice { start_ns, duration_ns, label });
                }
                num_slices = num_slices.saturating_add(1);
            }
        };
        for (sample, next) in thread.iter().zip(thread.iter().skip(1).map(Some).chain([None])) {
            if last_end < sample.ts_ns {
                close(&mut open, &mut rows, 0, last_end);
            }
            let path = paths.of(sample.stack);
            let same = path.iter().zip(&open).take_while(|(symbol, (label, _))| *symbol == label).count();
            close(&mut open, &mut rows, same, sample.ts_ns);
            open.extend(path.iter().skip(same).map(|&symbol| (symbol, sample.ts_ns)));
            let longest = sample.ts_ns.saturating_add(gap_ns);
            last_end = match next {
                Some(next) => next.ts_ns.min(longest),
                None => sample.ts_ns.saturating_add(gap_ns / 2),
            };
        }
        close(&mut open, &mut rows, 0, last_end);
        tracks.push((first.thread_id, rows));
        if num_slices > max_slices {
            return None;
        }
    }
    Some(tracks)
}

/// The median distance of consecutive samples.
pub(super) fn usual_gap_ns(samples: &[TimedSample]) -> i64 {
    let pairs = samples.iter().zip(samples.iter().skip(1));
    let mut gaps: Vec<i64> = pairs.map(|(a, b)| b.ts_ns.saturating_sub(a.ts_ns)).collect();
    let middle = gaps.len() / 2;
    if gaps.is_empty() { 1_000_000 } else { *gaps.select_nth_unstable(middle).1 }
}

/// Symbols of stacks, outermost first.
struct SymbolPaths<'a> {
    stacks: &'a SymbolStacks,
    known: FxHashMap<u32, Vec<u32>>,
}

/// Number of stacks whose symbols are cached.
const MAX_KNOWN: usize = 100_000;

impl SymbolPaths<'_> {
    fn of(&mut self, stack: u32) -> &[u32] {
        if self.known.len() > MAX_KNOWN {
            self.known.clear();
        }
        let stacks = self.stacks;
        self.known.entry(stack).or_insert_with(|| {
            let mut path = Vec::new();
            let mut at = Some(stack);
            while let Some(stack) = at {
                path.push(stacks.symbol(stack));
                at = stacks.parent(stack);
            }
            path.reverse();
            path.truncate(MAX_DEPTH);
            path
        })
    }
}
