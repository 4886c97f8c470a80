//! The events of samples.

use arrow_array::{Int64Array, RecordBatch, UInt64Array};

use super::StackError;
use super::columns::{Texts, column, text};
use super::samples::COUNTED_UNIT;
use crate::NONE;

/// The samples of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledEvent {
    /// Name; empty where the recording has none.
    pub name: String,
    /// Unit of its weights.
    pub unit: String,
    /// Number of samples.
    pub samples: u64,
    /// Sum of their weights.
    pub weight: u128,
    /// Time of the first one.
    pub first_ns: i64,
    /// Time of the last one.
    pub last_ns: i64,
}

/// The events of `samples`, in the order they first occur.
///
/// # Errors
/// When the table lacks a column.
pub fn sampled_events(samples: &[RecordBatch]) -> Result<Vec<SampledEvent>, StackError> {
    let mut texts = Texts::default();
    let mut events: Vec<(u32, SampledEvent)> = Vec::new();
    for batch in samples {
        let one = std::slice::from_ref(batch);
        let names = text(one, "samples", "event", &mut texts)?;
        let units = text(one, "samples", "weight_unit", &mut texts)?;
        let times: &Int64Array = column(batch, "samples", "ts_ns")?;
        let weights: &UInt64Array = column(batch, "samples", "weight")?;
        let mut at = 0;
        for (row, &event_name) in names.iter().enumerate() {
            // There are few events, and samples of one event follow each other.
            if events.get(at).is_none_or(|(of, _)| *of != event_name) {
                at = events.iter().position(|(of, _)| *of == event_name).unwrap_or(events.len());
            }
            let time = times.value(row);
            if at == events.len() {
                let text = |id| texts.get(id).unwrap_or_default().to_owned();
                let (name, unit) = (text(event_name), text(units.get(row).copied().unwrap_or(NONE)));
                let event = SampledEvent { name, unit, samples: 0, weight: 0, first_ns: time, last_ns: time };
                events.push((event_name, event));
            }
            let Some((_, event)) = events.get_mut(at) else { continue };
            let weight = weights.value(row);
            event.samples = event.samples.saturating_add(if event.unit == COUNTED_UNIT { weight } else { 1 });
            event.weight = event.weight.saturating_add(weight.into());
            event.first_ns = event.first_ns.min(time);
            event.last_ns = event.last_ns.max(time);
        }
    }
    Ok(events.into_iter().map(|(_, event)| event).collect())
}

/// Event and unit of the rows that count calls.
const CALLS: &str = "calls";

/// Which rows of a batch of `samples` count calls; empty where none does.
///
/// # Errors
/// When the table lacks a column.
pub fn rows_of_calls(batch: &RecordBatch) -> Result<Vec<bool>, StackError> {
    let mut texts = Texts::default();
    let calls = texts.id(CALLS);
    let one = std::slice::from_ref(batch);
    let events = text(one, "samples", "event", &mut texts)?;
    if !events.contains(&calls) {
        return Ok(Vec::new());
    }
    let units = text(one, "samples", "weight_unit", &mut texts)?;
    Ok(events.into_iter().zip(units).map(|(event, unit)| event == calls && unit == calls).collect())
}
