//! Tracepoints: the raw data of samples of `perf record -e sched:sched_switch`.

use std::borrow::Cow;

use linux_perf_data::Feature;
use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, Endian};

use super::consts::RecordType;
use super::features::text;
use super::reader::RecordFile;
use super::tracing_data::{TraceField, TraceFieldContent, read_formats};
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

/// Start of the names of fields that all tracepoints have, which samples state in fields of their own.
const COMMON: &str = "common_";

/// A tracepoint that the recording has samples of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracepoint {
    /// Index of the event.
    pub event: usize,
    /// Name without its system, such as `sched_switch`.
    pub name: String,
    /// Whether it is one of the scheduler.
    pub is_of_scheduler: bool,
    fields: Vec<TraceField>,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceFieldValue<'a> {
    /// A number.
    Number(i64),
    /// Text.
    Text(Cow<'a, str>),
}

impl Tracepoint {
    /// Whether it is one of threads that are woken.
    #[must_use]
    pub fn is_wake_up(&self) -> bool {
        self.is_of_scheduler && WAKE_UPS.contains(&self.name.as_str())
    }

    /// The value of a field that is a number.
    #[must_use]
    pub fn number(&self, raw: &[u8], name: &str, endian: Endian) -> Option<u64> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        unsigned(raw, field.offset, field.size, endian)
    }

    /// Names and values of its own fields; bytes that are not text and addresses of the kernel are in hexadecimal.
    pub fn values<'a>(
        &'a self,
        raw: &'a [u8],
        endian: Endian,
    ) -> impl Iterator<Item = (&'a str, TraceFieldValue<'a>)> {
        let own = self.fields.iter().filter(|field| !field.name.starts_with(COMMON));
        own.filter_map(move |field| Some((field.name.as_str(), Self::value(field, raw, endian)?)))
    }

    fn value<'a>(field: &TraceField, raw: &'a [u8], endian: Endian) -> Option<TraceFieldValue<'a>> {
        let part = |offset: u64, size: u64| {
            let mut cursor = Cursor::new(raw, 0, endian);
            cursor.bytes(offset, "offset").and_then(|_| cursor.bytes(size, "field")).ok()
        };
        Some(match field.content {
            TraceFieldContent::Number(is_signed) => {
                let Some(number) = unsigned(raw, field.offset, field.size, endian) else {
                    return Some(TraceFieldValue::Text(hexadecimal(part(field.offset, field.size)?)));
                };
                match (is_signed, i64::try_from(number)) {
                    (true, _) => {
                        let unused = 64u32.saturating_sub(u32::try_from(field.size).ok()?.saturating_mul(8));
                        TraceFieldValue::Number(
                            number.cast_signed().wrapping_shl(unused).wrapping_shr(unused),
                        )
                    }
                    (false, Ok(number)) => TraceFieldValue::Number(number),
                    (false, Err(_)) => TraceFieldValue::Text(format!("{number:#x}").into()),
                }
            }
            TraceFieldContent::Text => TraceFieldValue::Text(text(part(field.offset, field.size)?)),
            TraceFieldContent::Array(1) => {
                TraceFieldValue::Text(hexadecimal(part(field.offset, field.size)?))
            }
            TraceFieldContent::Array(element) => {
                let offsets = (0..field.size).step_by(usize::try_from(element).ok()?);
                let words = offsets.map(|offset| {
                    let at = field.offset.saturating_add(offset);
                    Some(format!("{:#x}", unsigned(raw, at, element, endian)?))
                });
                let words: Option<Vec<_>> = words.collect();
                TraceFieldValue::Text(words?.join(" ").into())
            }
            TraceFieldContent::Elsewhere { is_text, is_relative } => {
                let number = unsigned(raw, field.offset, field.size, endian)?;
                let base = if is_relative { field.offset.saturating_add(field.size) } else { 0 };
                let bytes = part(base.saturating_add(number & 0xffff), number >> 16)?;
                TraceFieldValue::Text(if is_text { text(bytes) } else { hexadecimal(bytes) })
            }
        })
    }

    /// A thread's id in a field.
    #[must_use]
    pub fn tid(&self, raw: &[u8], name: &str, endian: Endian) -> Option<i32> {
        i32::try_from(self.number(raw, name, endian)?).ok()
    }
}

/// The tracepoints that a file has samples of, with their formats.
#[must_use]
pub fn tracepoints(file: &RecordFile) -> Vec<Tracepoint> {
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
    for format in formats.unwrap_or_default() {
        for &(event, _) in wanted.iter().filter(|(_, id)| *id == format.id) {
            let (name, fields) = (format.name.clone(), format.fields.clone());
            found.push(Tracepoint { event, name, is_of_scheduler: format.system == SCHED, fields });
        }
    }
    found
}

/// The number of a size in bytes at an offset.
fn unsigned(raw: &[u8], offset: u64, size: u64, endian: Endian) -> Option<u64> {
    let mut cursor = Cursor::new(raw, 0, endian);
    cursor.bytes(offset, "offset").ok()?;
    match size {
        1 => cursor.u8("field").ok().map(u64::from),
        2 => cursor.u16("field").ok().map(u64::from),
        4 => cursor.u32("field").ok().map(u64::from),
        8 => cursor.u64("field").ok(),
        _ => None,
    }
}

fn hexadecimal(bytes: &[u8]) -> Cow<'static, str> {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")).into()
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
