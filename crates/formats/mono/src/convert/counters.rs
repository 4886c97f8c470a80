//! Values of counters over cuts and between logs: they are differences, so what is left out has to be made up for.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::MonoLog;
use crate::consts::PERFCOUNTERS;
use crate::records::{CounterValue, Event, Value};

/// What the counters of the logs, and of the log to be written, add up to.
#[derive(Debug, Default)]
pub struct CounterSums<'a> {
    read: Vec<FxHashMap<u64, u64>>,
    written: FxHashMap<u64, u64>,
    /// Values that were left out since the last ones that were written.
    late: Vec<FxHashMap<u64, CounterValue<'a>>>,
    /// Counters whose values are no differences.
    absolute: Vec<FxHashSet<u64>>,
}

impl<'a> CounterSums<'a> {
    pub fn new(logs: &[&MonoLog]) -> Self {
        let absolute = logs.iter().map(|log| {
            let all = log.survey().facts.counters.iter();
            all.filter(|counter| counter.section == PERFCOUNTERS).map(|counter| counter.index).collect()
        });
        Self {
            read: logs.iter().map(|_| FxHashMap::default()).collect(),
            written: FxHashMap::default(),
            late: logs.iter().map(|_| FxHashMap::default()).collect(),
            absolute: absolute.collect(),
        }
    }

    /// Takes in the values of an event, and if it is to be written, makes them differences to what was written last.
    pub fn event(&mut self, log: usize, event: &mut Event<'a>, is_written: bool) {
        let (Some(read), Some(late), Some(absolute)) =
            (self.read.get_mut(log), self.late.get_mut(log), self.absolute.get(log))
        else {
            return;
        };
        for it in event.values.iter_mut().filter(|it| !absolute.contains(&it.index)) {
            let sum = read.entry(it.index).or_default();
            match &mut it.value {
                Value::Signed(value) => {
                    *sum = sum.wrapping_add_signed(*value);
                    *value = *sum as i64;
                }
                Value::Unsigned(value) => {
                    *sum = sum.wrapping_add(*value);
                    *value = *sum;
                }
                Value::Null | Value::Double(_) | Value::Text(_) => {}
            }
        }
        if !is_written {
            late.extend(event.values.iter().map(|it| (it.index, *it)));
            return;
        }
        for it in &event.values {
            late.remove(&it.index);
        }
        let mut missed: Vec<_> = late.drain().map(|(_, it)| it).collect();
        missed.sort_by_key(|it| it.index);
        event.values.extend(missed);
        for it in event.values.iter_mut().filter(|it| !absolute.contains(&it.index)) {
            let before = self.written.entry(it.index).or_default();
            match &mut it.value {
                Value::Signed(value) => {
                    let sum = *value as u64;
                    *value = sum.wrapping_sub(*before) as i64;
                    *before = sum;
                }
                Value::Unsigned(value) => {
                    let sum = *value;
                    *value = sum.wrapping_sub(*before);
                    *before = sum;
                }
                Value::Null | Value::Double(_) | Value::Text(_) => {}
            }
        }
    }
}
