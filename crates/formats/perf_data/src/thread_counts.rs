//! Table `thread_counts`: what events counted in threads that ended, from READ records (`perf record -s`).

use std::sync::PoisonError;

use arrow_array::RecordBatch;
use perfuse_recording::Placement;
use perfuse_tables::thread_counts;
use perfuse_wire::Cursor;

use super::consts::RecordType;
use super::counter_read::{ReadValue, ReadValues};
use super::layout::CounterRead;
use super::perf_file::PerfFile;
use super::rounds::TimedRecord;

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
        let (body, _) = record.without_sample_id(layout.sample_id_bytes);
        let mut cursor = Cursor::new(body, record.offset, file.endian);
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
