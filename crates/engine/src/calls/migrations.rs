//! Activity of threads: time span, number of calls, and migrations between processors.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array};

use perfuse_tables::{call_migrations, call_threads};

use super::statistics::keys;
use super::tree::CallPathTree;

/// The activity of each thread.
#[derive(Debug, Default)]
pub struct ThreadActivities {
    time_ns: Option<Range<i64>>,
    threads: Vec<ThreadActivity>,
}

/// The activity of a thread.
#[derive(Clone, Debug, Default)]
struct ThreadActivity {
    num_events: u64,
    first_ns: i64,
    last_ns: i64,
    first_cpu: Option<u32>,
    cpu: Option<u32>,
    migrations: BTreeMap<(u32, u32), u64>,
}

impl ThreadActivities {
    /// No activity yet. Only events within `time_ns` are counted.
    #[must_use]
    pub fn new(time_ns: Option<Range<i64>>) -> Self {
        Self { time_ns, threads: Vec::new() }
    }

    /// Adds rows of one thread on one processor.
    pub fn rows(
        &mut self,
        thread_id: u32,
        cpu: Option<u32>,
        num_rows: usize,
        times: impl DoubleEndedIterator<Item = i64>,
    ) {
        let index = thread_id as usize;
        if index >= self.threads.len() {
            self.threads.resize(index.saturating_add(1), ThreadActivity::default());
        }
        let Some(seen) = self.threads.get_mut(index) else { return };
        match &self.time_ns {
            None => seen.rows(cpu, num_rows, times),
            Some(range) => {
                let within = times.filter(|time| range.contains(time));
                within.for_each(|time| seen.rows(cpu, 1, std::iter::once(time)));
            }
        }
    }

    /// Adds the activity of later events.
    pub(super) fn append(&mut self, later: Self) {
        if later.threads.len() > self.threads.len() {
            self.threads.resize(later.threads.len(), ThreadActivity::default());
        }
        self.threads.iter_mut().zip(later.threads).for_each(|(seen, later)| seen.append(later));
    }

    /// Number of events.
    #[must_use]
    pub fn num_events(&self) -> u64 {
        self.threads.iter().map(|seen| seen.num_events).sum()
    }

    /// First and last time stamp.
    #[must_use]
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        let seen = || self.threads.iter().filter(|seen| seen.num_events > 0);
        Some((seen().map(|seen| seen.first_ns).min()?, seen().map(|seen| seen.last_ns).max()?))
    }

    /// Table `call_migrations`.
    #[must_use]
    pub fn migrations(&self) -> RecordBatch {
        let rows = || {
            (0u32..).zip(&self.threads).flat_map(|(thread, seen)| {
                seen.migrations.iter().map(move |(&(from, to), &count)| (thread, from, to, count))
            })
        };
        let counts = UInt64Array::from_iter_values(rows().map(|(.., count)| count));
        call_migrations::batch(vec![
            keys(rows().map(|(thread, ..)| thread)),
            keys(rows().map(|(_, from, ..)| from)),
            keys(rows().map(|(_, _, to, _)| to)),
            Arc::new(counts),
        ])
    }

    /// Table `call_threads`.
    #[must_use]
    pub fn batch(&self, tree: &CallPathTree) -> RecordBatch {
        let mut done: BTreeMap<u32, ThreadCallSums> = BTreeMap::new();
        for (node, place) in tree.nodes.iter().zip(&tree.places).filter(|(node, _)| node.num_calls > 0) {
            let done = done.entry(place.thread_id).or_default();
            done.num_calls = done.num_calls.saturating_add(node.num_calls);
            done.max_depth = done.max_depth.max(place.depth.saturating_add(1));
            done.busy_ns = done.busy_ns.saturating_add(node.self_ns);
        }
        for (thread_id, _) in (0..).zip(&self.threads).filter(|(_, seen)| seen.num_events > 0) {
            done.entry(thread_id).or_default();
        }
        let none = ThreadActivity::default();
        let seen = || done.keys().map(|&thread| self.threads.get(thread as usize).unwrap_or(&none));
        let time = |value: fn(&ThreadActivity) -> i64| -> ArrayRef {
            Arc::new(seen().map(|seen| (seen.num_events > 0).then_some(value(seen))).collect::<Int64Array>())
        };
        let number = |value: fn(&ThreadCallSums) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(done.values().map(value)))
        };
        let depths = UInt32Array::from_iter_values(done.values().map(|done| done.max_depth));
        let events = UInt64Array::from_iter_values(seen().map(|seen| seen.num_events));
        let migrations = UInt64Array::from_iter_values(seen().map(|seen| seen.migrations.values().sum()));
        call_threads::batch(vec![
            keys(done.keys().copied()),
            time(|seen| seen.first_ns),
            time(|seen| seen.last_ns),
            Arc::new(events),
            number(|done| done.num_calls),
            Arc::new(depths),
            number(|done| done.busy_ns),
            Arc::new(migrations),
        ])
    }
}

/// Sums over the calls of a thread.
#[derive(Default)]
struct ThreadCallSums {
    num_calls: u64,
    max_depth: u32,
    busy_ns: u64,
}

impl ThreadActivity {
    fn rows(&mut self, cpu: Option<u32>, num_rows: usize, mut times: impl DoubleEndedIterator<Item = i64>) {
        let Some(first) = times.next() else { return };
        let last = times.next_back().unwrap_or(first);
        if self.num_events == 0 {
            (self.first_ns, self.last_ns) = (first, last);
        }
        self.first_ns = self.first_ns.min(first);
        self.last_ns = self.last_ns.max(last);
        self.num_events = self.num_events.saturating_add(num_rows as u64);
        if let Some(cpu) = cpu {
            self.first_cpu.get_or_insert(cpu);
            self.migrate_to(cpu);
        }
    }

    fn migrate_to(&mut self, cpu: u32) {
        match self.cpu.replace(cpu) {
            Some(before) if before != cpu => {
                let count = self.migrations.entry((before, cpu)).or_default();
                *count = count.saturating_add(1);
            }
            _ => {}
        }
    }

    /// Adds the activity of later events.
    fn append(&mut self, later: Self) {
        if self.num_events == 0 || later.num_events == 0 {
            if self.num_events == 0 {
                *self = later;
            }
            return;
        }
        self.num_events = self.num_events.saturating_add(later.num_events);
        self.first_ns = self.first_ns.min(later.first_ns);
        self.last_ns = self.last_ns.max(later.last_ns);
        if let (Some(first), Some(last)) = (later.first_cpu, later.cpu) {
            self.first_cpu.get_or_insert(first);
            self.migrate_to(first);
            self.cpu = Some(last);
        }
        for (pair, count) in later.migrations {
            let sum = self.migrations.entry(pair).or_default();
            *sum = sum.saturating_add(count);
        }
    }
}
