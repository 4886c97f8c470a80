//! Samples added up by stack.

use arrow_array::{Array, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use rustc_hash::{FxHashMap, FxHashSet};

use super::columns::{Keys, Texts, column, numbers, text};
use super::{CallTreeOptions, StackError, StackTables};
use crate::NONE;

/// The samples of one thread in one stack.
#[derive(Clone, Copy, Debug)]
pub struct StackSum {
    /// Thread; [`NONE`] where threads are merged.
    pub thread: u32,
    /// Row of `stacks`; [`NONE`] for samples without a stack.
    pub stack: u32,
    /// Sum of weights; saturates.
    pub weight: u64,
    /// Number of samples.
    pub samples: u64,
}

/// Sums by thread and stack, ordered by them.
pub fn add_up(
    tables: &StackTables,
    options: &CallTreeOptions,
    stacks: &Keys,
) -> Result<Vec<StackSum>, StackError> {
    let selected_threads = selected_threads(tables, options)?;
    let mut sums = StackSums::new(tables.stacks.iter().map(RecordBatch::num_rows).sum());
    for batch in &tables.samples {
        let stack_ids: &UInt32Array = column(batch, "samples", "stack_id")?;
        let weights: &UInt64Array = column(batch, "samples", "weight")?;
        let threads: &UInt32Array = column(batch, "samples", "thread_id")?;
        let filter = SampleFilter::new(batch, options, selected_threads.as_ref(), threads)?;
        let counts_samples = counts_samples(batch)?;
        for row in 0..batch.num_rows() {
            perfuse_stopping::checkpoint();
            let Some(measures) = filter.measures(row) else { continue };
            let thread = if options.split_threads { threads.value(row) } else { NONE };
            let stack = if stack_ids.is_null(row) {
                NONE
            } else {
                let key = stack_ids.value(row);
                match stacks.row(key) {
                    NONE => return Err(StackError::Reference { table: "samples", column: "stack_id", key }),
                    stack => stack,
                }
            };
            let weight = weights.value(row);
            let (weight, samples) = match measures {
                Measure::Count => (0, weight),
                // The other event counts them.
                Measure::Weight if options.counted_event.is_some() => (weight, 0),
                Measure::Weight => (weight, if counts_samples { weight } else { 1 }),
            };
            sums.add(thread, stack, weight, samples);
        }
    }
    Ok(sums.ordered())
}

/// Unit of weights that are numbers of samples: such a row represents as many samples as its weight.
pub const COUNTED_UNIT: &str = "samples";

/// Whether the rows of a batch have [`COUNTED_UNIT`]. A recording has it in all rows or in none.
fn counts_samples(batch: &RecordBatch) -> Result<bool, StackError> {
    if batch.num_rows() == 0 {
        return Ok(false);
    }
    let mut texts = Texts::default();
    let first = text(&[batch.slice(0, 1)], "samples", "weight_unit", &mut texts)?;
    Ok(first.first().and_then(|&unit| texts.get(unit)) == Some(COUNTED_UNIT))
}

/// Threads that pass the filters of threads and processes; none where all do.
fn selected_threads(
    tables: &StackTables,
    options: &CallTreeOptions,
) -> Result<Option<FxHashSet<u32>>, StackError> {
    let mut selected: Option<FxHashSet<u32>> =
        options.threads.as_ref().map(|threads| threads.iter().copied().collect());
    if let Some(processes) = &options.processes {
        let threads = numbers(&tables.threads, "threads", "thread_id")?;
        let owners = numbers(&tables.threads, "threads", "process_id")?;
        let theirs = threads
            .into_iter()
            .zip(owners)
            .filter(|(_, owner)| processes.contains(owner))
            .map(|(thread, _)| thread);
        selected = Some(match selected {
            Some(selected) => theirs.filter(|thread| selected.contains(thread)).collect(),
            None => theirs.collect(),
        });
    }
    Ok(selected)
}

/// What the weight of a row is.
#[derive(Clone, Copy)]
enum Measure {
    /// The weight of samples.
    Weight,
    /// A number of samples, that of [`CallTreeOptions::counted_event`].
    Count,
}

/// The filters of a batch.
struct SampleFilter<'a> {
    threads: Option<(&'a FxHashSet<u32>, &'a UInt32Array)>,
    /// Events of the rows, that of the weights, that of the numbers.
    events: Option<(Vec<u32>, u32, u32)>,
    times: Option<(&'a Int64Array, std::ops::Range<i64>)>,
}

impl<'a> SampleFilter<'a> {
    fn new(
        batch: &'a RecordBatch,
        options: &CallTreeOptions,
        threads: Option<&'a FxHashSet<u32>>,
        thread_ids: &'a UInt32Array,
    ) -> Result<Self, StackError> {
        let events = match &options.event {
            None => None,
            Some(name) => {
                let mut texts = Texts::default();
                let selected = texts.id(name);
                let counted = options.counted_event.as_ref().map_or(NONE, |name| texts.id(name));
                Some((text(std::slice::from_ref(batch), "samples", "event", &mut texts)?, selected, counted))
            }
        };
        let times = match &options.time_ns {
            None => None,
            Some(range) => Some((column(batch, "samples", "ts_ns")?, range.clone())),
        };
        Ok(Self { threads: threads.map(|threads| (threads, thread_ids)), events, times })
    }

    /// What the weight of a row is; none where the row is not selected.
    #[inline]
    fn measures(&self, row: usize) -> Option<Measure> {
        let measure = match &self.events {
            None => Measure::Weight,
            Some((events, selected, counted)) => match *events.get(row)? {
                event if event == *selected => Measure::Weight,
                event if event == *counted && event != NONE => Measure::Count,
                _ => return None,
            },
        };
        let is_selected = self.threads.is_none_or(|(selected, ids)| selected.contains(&ids.value(row)))
            && self.times.as_ref().is_none_or(|(times, range)| range.contains(&times.value(row)));
        is_selected.then_some(measure)
    }
}

/// Sums during the pass. Nearly every stack is of one thread, so the first thread seen in a stack has its sum in an array;
/// only further threads go through the hash table.
struct StackSums {
    no_stack: FxHashMap<u32, (u64, u64)>,
    first: Vec<StackSum>,
    others: FxHashMap<(u32, u32), (u64, u64)>,
}

impl StackSums {
    fn new(num_stacks: usize) -> Self {
        let first = Vec::with_capacity(num_stacks);
        Self { no_stack: FxHashMap::default(), first, others: FxHashMap::default() }
    }

    #[inline]
    fn add(&mut self, thread: u32, stack: u32, weight: u64, samples: u64) {
        if stack == NONE {
            return grow(self.no_stack.entry(thread).or_default(), weight, samples);
        }
        let row = stack as usize;
        if row >= self.first.len() {
            let empty = StackSum { thread: NONE, stack: NONE, weight: 0, samples: 0 };
            self.first.resize(row.saturating_add(1), empty);
        }
        let Some(first) = self.first.get_mut(row) else { return };
        if first.stack == NONE {
            *first = StackSum { thread, stack, weight, samples };
        } else if first.thread == thread {
            first.weight = first.weight.saturating_add(weight);
            first.samples = first.samples.saturating_add(samples);
        } else {
            grow(self.others.entry((thread, stack)).or_default(), weight, samples);
        }
    }

    fn ordered(self) -> Vec<StackSum> {
        let mut sums: Vec<_> = self.first.into_iter().filter(|sum| sum.stack != NONE).collect();
        let rest = self
            .others
            .into_iter()
            .chain(self.no_stack.into_iter().map(|(thread, sum)| ((thread, NONE), sum)));
        sums.extend(rest.map(|((thread, stack), (weight, samples))| StackSum {
            thread,
            stack,
            weight,
            samples,
        }));
        sums.sort_unstable_by_key(|sum| (sum.thread, sum.stack));
        sums
    }
}

#[inline]
fn grow(sum: &mut (u64, u64), weight: u64, samples: u64) {
    sum.0 = sum.0.saturating_add(weight);
    sum.1 = sum.1.saturating_add(samples);
}
