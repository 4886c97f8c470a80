//! Table `thread_counts`: what events counted in threads that ended, from READ records (`perf record -s`).

use std::sync::PoisonError;

use arrow_array::RecordBatch;
use linux_perf_event_reader::constants as abi;
use perfuse_recording::Placement;
use perfuse_tables::thread_counts;
use perfuse_wire::{Cursor, ParseError};

use super::attribute::{EventRecordLayout, FORMAT_LOST};
use super::consts::RecordType;
use super::layout::CounterRead;
use super::perf_file::PerfFile;
use super::rounds::TimedRecord;

/// A value in a READ record.
struct ReadValue {
    value: u64,
    id: Option<u64>,
    lost: Option<u64>,
}

/// The values of a READ record, with the times that its events were enabled and counted.
struct ReadValues {
    values: Vec<ReadValue>,
    enabled: Option<u64>,
    running: Option<u64>,
}

impl ReadValues {
    fn read(cursor: &mut Cursor<'_>, layout: &EventRecordLayout) -> Result<Self, ParseError> {
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

/// The table.
#[must_use]
pub fn rows(file: &PerfFile, placement: &Placement) -> RecordBatch {
    let mut identities = placement.identities.lock().unwrap_or_else(PoisonError::into_inner);
    let mut table = thread_counts::Builder::new();
    for &TimedRecord { time, location } in &file.survey().task_records {
        let Some(record) = file.at(location).filter(|record| record.record_type == RecordType::READ) else {
            continue;
        };
        let found = file.attributes.find(record.record_type, record.body, file.endian);
        let Some((own, _)) = found else { continue };
        let Some(layout) = file.event_layout(&record) else { continue };
        let mut cursor = record.cursor(file.endian);
        let Ok(CounterRead { pid, tid }) = CounterRead::read(&mut cursor) else { continue };
        let Ok(ReadValues { values, enabled, running }) = ReadValues::read(&mut cursor, layout) else {
            continue;
        };
        let thread_id =
            identities.thread(file.guests.identity(placement, file.process_number(&record, pid)), tid);
        for (number, ReadValue { value, id, lost }) in values.into_iter().enumerate() {
            // Without ids, the first value is that of the event itself.
            let event = match id {
                Some(id) => file.attributes.index_of(id),
                None => (number == 0).then_some(own),
            };
            let event = event.and_then(|index| file.attributes.list().get(index));
            table.push(
                (time != 0).then(|| placement.clock.ns(time)),
                thread_id,
                event.map(|event| event.name.as_str()),
                value,
                enabled,
                running,
                lost,
                placement.source_id,
                record.offset,
            );
        }
    }
    table.finish()
}
