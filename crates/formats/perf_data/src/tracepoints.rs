//! Tracepoints of the scheduler: the raw data of samples of `perf record -e sched:sched_switch`.

use linux_perf_data::Feature;
use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, Endian};

use super::consts::RecordType;
use super::reader::RecordFile;
use super::tracing_data::{TraceField, read_formats};
use perfuse_recording::Position;

/// The tracepoint of context switches.
pub const SWITCH: &str = "sched_switch";
/// Name of its event.
pub const SWITCH_EVENT: &str = "sched:sched_switch";
/// Tracepoints of threads that are woken.
const WAKE_UPS: [&str; 3] = ["sched_waking", "sched_wakeup", "sched_wakeup_new"];
/// The system of the scheduler's tracepoints.
const SCHED: &str = "sched";
/// Records before which a pipe-mode stream has its formats.
const MOST_RECORDS_BEFORE: u64 = 4096;

/// A tracepoint of the scheduler that the recording has samples of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Index of the event.
    pub event: usize,
    /// Name without its system, such as `sched_switch`.
    pub name: String,
    fields: Vec<TraceField>,
}

impl Tracepoint {
    /// Whether it is one of threads that are woken.
    #[must_use]
    pub fn is_wake_up(&self) -> bool {
        WAKE_UPS.contains(&self.name.as_str())
    }

    /// The value of a field that is a number.
    #[must_use]
    pub fn number(&self, raw: &[u8], name: &str, endian: Endian) -> Option<u64> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        let mut cursor = Cursor::new(raw, 0, endian);
        cursor.bytes(field.offset, "offset").ok()?;
        match field.size {
            1 => cursor.u8("field").ok().map(u64::from),
            2 => cursor.u16("field").ok().map(u64::from),
            4 => cursor.u32("field").ok().map(u64::from),
            8 => cursor.u64("field").ok(),
            _ => None,
        }
    }

    /// A thread's id in a field.
    #[must_use]
    pub fn tid(&self, raw: &[u8], name: &str, endian: Endian) -> Option<i32> {
        i32::try_from(self.number(raw, name, endian)?).ok()
    }
}

/// The tracepoints of the scheduler that a file has samples of, with their formats.
#[must_use]
pub fn scheduler_tracepoints(file: &RecordFile) -> Vec<Tracepoint> {
    let is_tracepoint = |layout: &super::attribute::EventAttribute| {
        layout.fields.type_ == abi::PERF_TYPE_TRACEPOINT && layout.layout.has(abi::PERF_SAMPLE_RAW)
    };
    let wanted: Vec<(usize, u64)> = (0..)
        .zip(file.attributes.list())
        .filter(|(_, attribute)| is_tracepoint(attribute))
        .map(|(index, attribute)| (index, attribute.fields.config))
        .collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let section = file.features.cursor(Feature::TRACING_DATA, &file.source, file.endian);
    let formats = match section {
        Some(cursor) => read_formats(cursor.rest()),
        None => tracing_record(file).and_then(read_formats),
    };
    let mut found = Vec::new();
    for format in formats.unwrap_or_default().into_iter().filter(|format| format.system == SCHED) {
        for &(event, _) in wanted.iter().filter(|(_, id)| *id == format.id) {
            let (name, fields) = (format.name.clone(), format.fields.clone());
            found.push(Tracepoint { event, name, fields });
        }
    }
    found
}

/// The data of a pipe-mode stream.
fn tracing_record(file: &RecordFile) -> Option<&[u8]> {
    let mut at = Position::default();
    while at.index < MOST_RECORDS_BEFORE {
        let record = file.next(&mut at).ok()?;
        if record.record_type == RecordType::HEADER_TRACING_DATA {
            return Some(record.payload);
        }
    }
    None
}
