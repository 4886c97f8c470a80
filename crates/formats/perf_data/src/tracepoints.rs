//! Formats of tracepoints: what `perf record -e sched:sched_switch` stores about the raw data of its samples
//! (HEADER_TRACING_DATA, in the layout of trace-cmd), as far as the tracepoints of the scheduler need it.

use std::borrow::Cow;

use linux_perf_data::Feature;
use linux_perf_event_reader::constants as abi;
use perfuse_wire::{Cursor, Endian, ParseError};

use super::consts::RecordType;
use super::features::text;
use super::reader::RecordFile;
use perfuse_recording::Position;

/// First bytes of the data.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";
/// The tracepoint of context switches.
pub const SWITCH: &str = "sched_switch";
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

/// A field of the raw data.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TraceField {
    name: String,
    offset: u64,
    size: u64,
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
    for format in formats.unwrap_or_default() {
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

/// A format of a tracepoint.
struct TraceFormat {
    id: u64,
    name: String,
    fields: Vec<TraceField>,
}

/// The formats of the scheduler's tracepoints; `None` for data of another layout.
fn read_formats(data: &[u8]) -> Option<Vec<TraceFormat>> {
    read_tracing_data(data).ok().flatten()
}

fn read_tracing_data(data: &[u8]) -> Result<Option<Vec<TraceFormat>>, ParseError> {
    let Some(rest) = data.strip_prefix(MAGIC) else { return Ok(None) };
    // The byte order of the numbers that follow is stated after the version.
    let mut cursor = Cursor::new(rest, 0, Endian::Little);
    name(&mut cursor)?;
    let endian = if cursor.u8("bigendian")? == 0 { Endian::Little } else { Endian::Big };
    let mut cursor = Cursor::new(cursor.rest(), 0, endian);
    cursor.u8("long_size")?;
    cursor.u32("page_size")?;
    for _ in 0..2 {
        // `header_page`, `header_event`.
        name(&mut cursor)?;
        sized(&mut cursor)?;
    }
    for _ in 0..cursor.u32("num_ftrace_events")? {
        sized(&mut cursor)?;
    }
    let mut formats = Vec::new();
    for _ in 0..cursor.u32("num_systems")? {
        let system = name(&mut cursor)?;
        for _ in 0..cursor.u32("num_events")? {
            let format = sized(&mut cursor)?;
            if system == SCHED {
                formats.extend(read_format(&text(format)));
            }
        }
    }
    Ok(Some(formats))
}

/// Bytes whose number precedes them.
fn sized<'a>(cursor: &mut Cursor<'a>) -> Result<&'a [u8], ParseError> {
    let size = cursor.u64("size")?;
    cursor.bytes(size, "format")
}

/// A text that ends with NUL.
fn name<'a>(cursor: &mut Cursor<'a>) -> Result<Cow<'a, str>, ParseError> {
    let rest = *cursor;
    let bytes = rest.rest();
    let len = memchr::memchr(0, bytes).unwrap_or(bytes.len()) as u64;
    let found = cursor.bytes(len, "name")?;
    cursor.u8("name")?;
    Ok(text(found))
}

/// Reads a format as the kernel prints it: `name: …`, `ID: …`, and lines such as
/// `field:pid_t pid;  offset:24;  size:4;  signed:1;`.
fn read_format(format: &str) -> Option<TraceFormat> {
    let value = |key: &str| format.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let mut fields = Vec::new();
    for line in format.lines() {
        let Some(rest) = line.trim_start().strip_prefix("field:") else { continue };
        let mut parts = rest.split(';').map(str::trim);
        let declaration = parts.next()?;
        let number = |prefix: &str| {
            let part = rest.split(';').map(str::trim).find_map(|part| part.strip_prefix(prefix))?;
            part.parse().ok()
        };
        let (Some(offset), Some(size)) = (number("offset:"), number("size:")) else { continue };
        // The name is the last word; an array has its length after it.
        let bare = declaration.split('[').next().unwrap_or(declaration);
        let name = bare.rsplit([' ', '*']).next().unwrap_or(bare).to_owned();
        fields.push(TraceField { name, offset, size });
    }
    Some(TraceFormat { id: value("ID:")?.parse().ok()?, name: value("name:")?.to_owned(), fields })
}

#[cfg(test)]
mod tests {
    use super::{read_format, read_formats};

    const FORMAT: &str = "name: sched_waking\nID: 312\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\nprint fmt: \"\"\n";

    fn tracing_data() -> Vec<u8> {
        let mut data = b"\x17\x08\x44tracing0.6\0\0\x08\x00\x10\0\0".to_vec();
        for header in ["header_page", "header_event"] {
            data.extend(header.as_bytes());
            data.push(0);
            data.extend(3u64.to_le_bytes());
            data.extend(b"abc");
        }
        data.extend(0u32.to_le_bytes());
        data.extend(1u32.to_le_bytes());
        data.extend(b"sched\0");
        data.extend(1u32.to_le_bytes());
        data.extend((FORMAT.len() as u64).to_le_bytes());
        data.extend(FORMAT.as_bytes());
        data
    }

    #[test]
    fn fields_of_a_format_have_their_names_offsets_and_sizes() {
        let format = read_format(FORMAT).expect("a format");
        assert_eq!((format.id, &*format.name), (312, "sched_waking"));
        let fields: Vec<_> =
            format.fields.iter().map(|field| (&*field.name, field.offset, field.size)).collect();
        let expected = [("common_type", 0, 2), ("comm", 8, 16), ("pid", 24, 4), ("target_cpu", 32, 4)];
        assert_eq!(fields, expected);
    }

    #[test]
    fn cut_data_has_no_formats() {
        let data = tracing_data();
        assert_eq!(read_formats(&data).expect("formats").len(), 1);
        for len in 0..data.len() {
            assert!(read_formats(&data[..len]).is_none(), "{len}");
        }
    }
}
