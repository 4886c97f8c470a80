//! Values in READ records, in the layout of `read_format`.

use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, ParseError};

use super::attribute::{EventRecordLayout, FORMAT_LOST};

/// A value in a READ record.
pub struct ReadValue {
    /// What the event counted.
    pub value: u64,
    /// Id of the event.
    pub id: Option<u64>,
    /// Samples of the event that were lost.
    pub lost: Option<u64>,
}

/// The values of a READ record, with the times that its events were enabled and counted.
pub struct ReadValues {
    /// The value of each event.
    pub values: Vec<ReadValue>,
    /// Time for which the events were enabled.
    pub enabled: Option<u64>,
    /// Time for which they counted.
    pub running: Option<u64>,
}

impl ReadValues {
    /// Reads the values that a `read_format` selects; an error where the record ends before their end.
    pub fn read(cursor: &mut Cursor<'_>, layout: &EventRecordLayout) -> Result<Self, ParseError> {
        let optional = |cursor: &mut Cursor<'_>, bit: u64, name: &'static str| match layout.read_format & bit
        {
            0 => Ok(None),
            _ => cursor.u64(name).map(Some),
        };
        let nr = optional(cursor, abi::PERF_FORMAT_GROUP, "nr")?;
        // The times precede the values of a group, and follow that of a single event.
        let single = if nr.is_none() { Some(cursor.u64("value")?) } else { None };
        let enabled = optional(cursor, abi::PERF_FORMAT_TOTAL_TIME_ENABLED, "time_enabled")?;
        let running = optional(cursor, abi::PERF_FORMAT_TOTAL_TIME_RUNNING, "time_running")?;
        let mut values = Vec::new();
        for _ in 0..nr.unwrap_or(1) {
            let value = single.map_or_else(|| cursor.u64("value"), Ok)?;
            let id = optional(cursor, abi::PERF_FORMAT_ID, "id")?;
            let lost = optional(cursor, FORMAT_LOST, "lost")?;
            values.push(ReadValue { value, id, lost });
        }
        Ok(Self { values, enabled, running })
    }
}
