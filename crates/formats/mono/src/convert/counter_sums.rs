//! Adjusts counter values, which are differences, where values are left out or several logs are merged.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::consts::PERFCOUNTERS;
use crate::recording::MonoLog;
use crate::records::{CounterEntry, CounterPayload, Event};

/// Current values of the counters in the logs that are read and in the log that is written.
#[derive(Debug, Default)]
pub struct CounterSums<'a> {
    /// Current values in each input log.
    inputs: Vec<FxHashMap<u64, u64>>,
    /// Current values in the output.
    output: FxHashMap<u64, u64>,
    /// Values left out since the last write, of each input log.
    omitted: Vec<FxHashMap<u64, CounterEntry<'a>>>,
    /// Counters of each input log whose values are absolute.
    absolute: Vec<FxHashSet<u64>>,
}

impl<'a> CounterSums<'a> {
    /// Starts with the counters of the logs.
    pub fn new(logs: &[&MonoLog]) -> Self {
        let absolute = logs.iter().map(|log| {
            let all = log.survey().events.definitions.counters.iter();
            all.filter(|counter| counter.section == PERFCOUNTERS).map(|counter| counter.index).collect()
        });
        Self {
            inputs: logs.iter().map(|_| FxHashMap::default()).collect(),
            output: FxHashMap::default(),
            omitted: logs.iter().map(|_| FxHashMap::default()).collect(),
            absolute: absolute.collect(),
        }
    }

    /// Processes the values of a COUNTERS event. If it is to be written, its values become differences to the last
    /// written ones.
    pub fn convert_values(&mut self, log: usize, event: &mut Event<'a>, is_written: bool) {
        let (Some(inputs), Some(omitted), Some(absolute)) =
            (self.inputs.get_mut(log), self.omitted.get_mut(log), self.absolute.get(log))
        else {
            return;
        };
        for it in event.values.iter_mut().filter(|it| !absolute.contains(&it.index)) {
            let sum = inputs.entry(it.index).or_default();
            match &mut it.value {
                CounterPayload::Signed(value) => {
                    *sum = sum.wrapping_add_signed(*value);
                    *value = *sum as i64;
                }
                CounterPayload::Unsigned(value) => {
                    *sum = sum.wrapping_add(*value);
                    *value = *sum;
                }
                CounterPayload::Null | CounterPayload::Double(_) | CounterPayload::Text(_) => {}
            }
        }
        if !is_written {
            omitted.extend(event.values.iter().map(|it| (it.index, *it)));
            return;
        }
        for it in &event.values {
            omitted.remove(&it.index);
        }
        let mut restored: Vec<_> = omitted.drain().map(|(_, it)| it).collect();
        restored.sort_by_key(|it| it.index);
        event.values.extend(restored);
        for it in event.values.iter_mut().filter(|it| !absolute.contains(&it.index)) {
            let before = self.output.entry(it.index).or_default();
            match &mut it.value {
                CounterPayload::Signed(value) => {
                    let sum = *value as u64;
                    *value = sum.wrapping_sub(*before) as i64;
                    *before = sum;
                }
                CounterPayload::Unsigned(value) => {
                    let sum = *value;
                    *value = sum.wrapping_sub(*before);
                    *before = sum;
                }
                CounterPayload::Null | CounterPayload::Double(_) | CounterPayload::Text(_) => {}
            }
        }
    }
}
