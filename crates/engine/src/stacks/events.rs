//! The events of samples.

use arrow_array::{Int64Array, RecordBatch, UInt64Array};

use super::StackError;
use super::columns::{Texts, column, text};
use super::samples::COUNTED_UNIT;

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
        let mut end = 0_usize;
        // There are few events, and samples of one event follow each other.
        for run in names.chunk_by(|one, next| one == next) {
            let rows = end..end.saturating_add(run.len());
            end = rows.end;
            let (Some(&event_name), Some(&unit)) = (run.first(), units.get(rows.start)) else { break };
            let (Some(times), Some(weights)) = (times.values().get(rows.clone()), weights.values().get(rows))
            else {
                break;
            };
            let at = events.iter().position(|(of, _)| *of == event_name).unwrap_or_else(|| {
                let text = |id| texts.get(id).unwrap_or_default().to_owned();
                let (name, unit) = (text(event_name), text(unit));
                let (first_ns, last_ns) = (i64::MAX, i64::MIN);
                let event = SampledEvent { name, unit, samples: 0, weight: 0, first_ns, last_ns };
                events.push((event_name, event));
                events.len().saturating_sub(1)
            });
            let Some((_, event)) = events.get_mut(at) else { break };
            let weight = weights.iter().fold(0_u128, |sum, &weight| sum.saturating_add(weight.into()));
            let is_counted = event.unit == COUNTED_UNIT;
            let samples =
                if is_counted { u64::try_from(weight).unwrap_or(u64::MAX) } else { run.len() as u64 };
            event.samples = event.samples.saturating_add(samples);
            event.weight = event.weight.saturating_add(weight);
            event.first_ns = times.iter().copied().fold(event.first_ns, i64::min);
            event.last_ns = times.iter().copied().fold(event.last_ns, i64::max);
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
