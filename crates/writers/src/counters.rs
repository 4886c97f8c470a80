//! Counters: rows of tables `counters` and `counter_samples`, and heap sizes from instants.

use std::collections::BTreeMap;

use arrow_array::types::{Float64Type, Int64Type, UInt32Type};
use arrow_array::{Array, PrimitiveArray, RecordBatch};
use perfuse_tables::access::{ColumnError, numbers, text};

use perfuse_engine::calls::Selection;

/// Counter name of the heap size.
pub const HEAP: &str = "GC heap size";

/// A row of table `counters`, as timelines draw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its key in the tables.
    pub counter_id: u32,
    /// Its process.
    pub pid: i32,
    /// Section and name.
    pub title: String,
    /// `raw`, `bytes`, `time`, `count` or `percentage`, where known.
    pub unit: Option<String>,
}

impl Counter {
    /// The counters of batches of table `counters`, by key, of the files whose process is in `pids`.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn all(
        batches: &[RecordBatch],
        pids: &BTreeMap<u32, i32>,
    ) -> Result<BTreeMap<u32, Self>, ColumnError> {
        let mut counters = BTreeMap::new();
        for batch in batches {
            let ids = numbers::<UInt32Type>(batch, "counter_id")?.values();
            let sources = numbers::<UInt32Type>(batch, "source_id")?.values();
            let (names, sections) = (text(batch, "name")?, text(batch, "section")?);
            let units = text(batch, "unit")?;
            for (row, &counter_id) in ids.iter().enumerate() {
                let Some(&pid) = pids.get(&sources[row]) else { continue };
                let name = names.get(row).unwrap_or_default();
                let section = sections.get(row).filter(|section| !section.is_empty());
                let counter = Self {
                    counter_id,
                    pid,
                    title: section.map_or_else(|| name.to_owned(), |section| format!("{section}: {name}")),
                    unit: units.get(row).map(str::to_owned),
                };
                counters.insert(counter_id, counter);
            }
        }
        Ok(counters)
    }
}

/// Numbers the counters of a process that share a title, which viewers would merge.
pub fn make_titles_unique(counters: &mut BTreeMap<u32, Counter>) {
    let mut met: BTreeMap<(i32, String), u32> = BTreeMap::new();
    for counter in counters.values_mut() {
        let number = met.entry((counter.pid, counter.title.clone())).or_default();
        *number += 1;
        if *number > 1 {
            counter.title = format!("{} ({number})", counter.title);
        }
    }
}

/// A value of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CounterValue {
    /// The counter.
    pub counter_id: u32,
    /// Time on the profile's clock.
    pub ts_ns: i64,
    /// The value; a number that viewers can draw.
    pub value: f64,
}

/// The columns of a batch of `counter_samples`.
#[derive(Debug)]
pub struct CounterValues<'a> {
    counters: &'a [u32],
    ts_ns: &'a [i64],
    values: &'a PrimitiveArray<Float64Type>,
}

impl<'a> CounterValues<'a> {
    /// The columns of a batch.
    ///
    /// # Errors
    /// [`ColumnError`]
    pub fn new(batch: &'a RecordBatch) -> Result<Self, ColumnError> {
        Ok(Self {
            counters: numbers::<UInt32Type>(batch, "counter_id")?.values(),
            ts_ns: numbers::<Int64Type>(batch, "ts_ns")?.values(),
            values: numbers(batch, "value")?,
        })
    }

    /// The values in the selected time. Counters belong to processes: see [`Counter::all`]. Text values are skipped.
    pub fn selected(&self, selection: &Selection) -> impl Iterator<Item = CounterValue> {
        (0..self.ts_ns.len()).filter_map(move |row| {
            let (counter_id, ts_ns) = (self.counters[row], self.ts_ns[row]);
            let is_drawn = self.values.is_valid(row)
                && self.values.value(row).is_finite()
                && selection.time_ns.as_ref().is_none_or(|range| range.contains(&ts_ns));
            is_drawn.then(|| CounterValue { counter_id, ts_ns, value: self.values.value(row) })
        })
    }
}
