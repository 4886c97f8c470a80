//! Formats of tracepoints: what perf stores about the raw data of samples (HEADER_TRACING_DATA, in the layout of trace-cmd).

use std::borrow::Cow;

use perfuse_wire::{Cursor, Endian, ParseError};

use super::features::text;

/// First bytes of the data.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// A format of a tracepoint.
pub struct TraceFormat {
    /// Id, which is the `config` of the event's attribute.
    pub id: u64,
    /// System, such as `sched`.
    pub system: String,
    /// Name in the system.
    pub name: String,
    /// Fields of its raw data.
    pub fields: Vec<TraceField>,
}

/// A field of the raw data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceField {
    /// Name.
    pub name: String,
    /// Offset in the data.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// What it contains.
    pub content: TraceFieldContent,
}

/// What a field of the raw data contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFieldContent {
    /// A number; whether it has a sign.
    Number(bool),
    /// Text up to a NUL.
    Text,
    /// Numbers of a size in bytes; a structure is one of single bytes.
    Array(u64),
    /// Offset and size of text or bytes in the data, as two halves of a number.
    Elsewhere {
        /// Whether it is text.
        is_text: bool,
        /// Whether the offset counts from the end of the field.
        is_relative: bool,
    },
}

impl TraceFieldContent {
    /// By the declaration of a field, such as `char comm[16]` or `__data_loc char[] name`.
    fn of(declaration: &str, size: u64, is_signed: bool) -> Self {
        let is_text =
            declaration.contains("char") && declaration.contains('[') && !declaration.contains("unsigned");
        let is_relative = declaration.starts_with("__rel_loc ");
        if is_relative || declaration.starts_with("__data_loc ") {
            Self::Elsewhere { is_text, is_relative }
        } else if is_text {
            Self::Text
        } else if let Some((_, len)) = declaration.split_once('[') {
            let len = len.split(']').next().and_then(|len| len.parse::<u64>().ok());
            let element =
                len.filter(|&len| size.checked_rem(len) == Some(0)).and_then(|len| size.checked_div(len));
            let element = element.unwrap_or(1);
            Self::Array(if matches!(element, 2 | 4 | 8) { element } else { 1 })
        } else {
            Self::Number(is_signed)
        }
    }
}

/// The formats in data of tracepoints; `None` for data of another layout.
pub fn read_formats(data: &[u8]) -> Option<Vec<TraceFormat>> {
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
            formats.extend(read_format(&system, &text(format)));
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
fn read_format(system: &str, format: &str) -> Option<TraceFormat> {
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
        let last = declaration.rsplit([' ', '*']).find(|word| !word.starts_with('[')).unwrap_or(declaration);
        let name = last.split('[').next().unwrap_or(last).to_owned();
        let content = TraceFieldContent::of(declaration, size, number("signed:") == Some(1));
        fields.push(TraceField { name, offset, size, content });
    }
    let (id, name) = (value("ID:")?.parse().ok()?, value("name:")?.to_owned());
    Some(TraceFormat { id, system: system.to_owned(), name, fields })
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
        let format = read_format("sched", FORMAT).expect("a format");
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
