//! A record as lines of text: index, offset, name and size, then its fields.

use perfuse_wire::{RecordView, Value};

use super::characters::{
    Digits, append_count, append_hexadecimal, append_number, cell_width, cut, cut_middle, hex_digits,
    is_plain, push_printable,
};

/// Entries of a list that are shown.
const ENTRIES_SHOWN: usize = 8;

/// Bytes of a field that are shown.
const BYTES_SHOWN: usize = 24;

/// Bytes in a line of hexadecimal digits.
const HEX_COLUMNS: usize = 16;

const INDENT: &str = "    ";

/// Width of lines where the output has none.
const DEFAULT_WIDTH: usize = 100;

/// Select Graphic Rendition parameters of what is not plain text.
const TITLE: &str = "1";
const FAINT: &str = "2";
const NAME: &str = "36";

/// Width and colour of the lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordStyle {
    /// Whether escape sequences set colours.
    pub colour: bool,
    /// Columns of the terminal; `None` where there are none.
    pub width: Option<usize>,
}

impl RecordStyle {
    fn width(&self) -> usize {
        self.width.unwrap_or(DEFAULT_WIDTH)
    }

    /// Appends what `write` appends, in a colour.
    fn paint(&self, out: &mut Vec<u8>, colour: &str, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.colour {
            return write(out);
        }
        out.extend_from_slice(b"\x1b[");
        out.extend_from_slice(colour.as_bytes());
        out.push(b'm');
        write(out);
        out.extend_from_slice(b"\x1b[0m");
    }
}

/// Appends a record: a line with index, offset, name and size, then the fields, wrapped to the width.
pub fn append_text(out: &mut Vec<u8>, record: &RecordView<'_>, style: RecordStyle) {
    style.paint(out, FAINT, |out| {
        out.push(b'#');
        append_number(out, record.index);
        out.extend_from_slice(b"  ");
        append_hexadecimal(out, record.offset);
    });
    out.extend_from_slice(b"  ");
    style.paint(out, TITLE, |out| {
        let mut name = String::new();
        out.extend_from_slice(printable(&record.name, &mut name).as_bytes());
    });
    out.extend_from_slice(b"  ");
    style.paint(out, FAINT, |out| {
        append_count(out, record.size);
        out.extend_from_slice(b" bytes");
        if let Some(timestamp) = record.timestamp {
            out.extend_from_slice(b"  time ");
            append_number(out, timestamp);
        }
    });
    out.push(b'\n');
    append_fields(out, &record.fields, style);
}

/// The text itself where all of it can be shown, else its copy in `escaped`.
fn printable<'a>(text: &'a str, escaped: &'a mut String) -> &'a str {
    if is_plain(text) {
        return text;
    }
    push_printable(escaped, text);
    escaped
}

/// Appends lines of names and values, as many as fit in each; lists follow, an entry per line.
fn append_fields(out: &mut Vec<u8>, fields: &[(&'static str, Value<'_>)], style: RecordStyle) {
    let width = style.width();
    let mut text = String::new();
    let mut used = 0usize;
    for (name, value) in fields {
        if matches!(value, Value::Entries(_)) {
            continue;
        }
        let available =
            width.saturating_sub(INDENT.len().saturating_add(name.len()).saturating_add(1)).max(16);
        let digits = number_digits(value);
        let number = digits.as_ref().map(Digits::text).filter(|number| number.len() <= available);
        let len = match number {
            Some(number) => number.len(),
            None => {
                text.clear();
                push_value(&mut text, value);
                cut(&mut text, 0, available);
                cell_width(&text)
            }
        };
        let len = name.len().saturating_add(1).saturating_add(len);
        if used > 0 && used.saturating_add(2).saturating_add(len) > width {
            out.push(b'\n');
            used = 0;
        }
        let gap: &[u8] = if used > 0 { b"  " } else { INDENT.as_bytes() };
        out.extend_from_slice(gap);
        style.paint(out, NAME, |out| out.extend_from_slice(name.as_bytes()));
        out.push(b' ');
        out.extend_from_slice(number.unwrap_or(text.as_bytes()));
        used = used.saturating_add(gap.len()).saturating_add(len);
    }
    if used > 0 {
        out.push(b'\n');
    }
    for (name, value) in fields {
        if let Value::Entries(entries) = value {
            append_entries(out, name, entries, style);
        }
    }
}

type Entry<'a> = Vec<(&'static str, Value<'a>)>;

/// Appends the first entries of a list, and the number of all.
fn append_entries(out: &mut Vec<u8>, name: &str, entries: &[Entry<'_>], style: RecordStyle) {
    let width = style.width();
    out.extend_from_slice(INDENT.as_bytes());
    style.paint(out, NAME, |out| out.extend_from_slice(name.as_bytes()));
    out.push(b' ');
    style.paint(out, FAINT, |out| {
        out.push(b'(');
        append_count(out, entries.len() as u64);
        out.push(b')');
    });
    out.push(b'\n');
    let mut line = String::new();
    for entry in entries.iter().take(ENTRIES_SHOWN) {
        line.clear();
        for (number, (key, value)) in entry.iter().enumerate() {
            line.push_str(if number > 0 { "  " } else { "" });
            line.push_str(key);
            line.push(' ');
            let start = line.len();
            push_value(&mut line, value);
            cut_middle(&mut line, start, width / 2);
        }
        cut(&mut line, 0, width.saturating_sub(INDENT.len()).saturating_sub(2));
        out.extend_from_slice(INDENT.as_bytes());
        out.extend_from_slice(b"  ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    if let Some(more) = entries.len().checked_sub(ENTRIES_SHOWN).filter(|&more| more > 0) {
        style.paint(out, FAINT, |out| {
            out.extend_from_slice(INDENT.as_bytes());
            out.extend_from_slice("  … ".as_bytes());
            append_count(out, more as u64);
            out.extend_from_slice(b" more (--json shows all)");
        });
        out.push(b'\n');
    }
}

/// The digits of a number; `None` for other values.
#[inline]
fn number_digits(value: &Value<'_>) -> Option<Digits> {
    match value {
        Value::Unsigned(number) => Some(Digits::decimal(*number)),
        Value::Signed(number) => Some(Digits::signed(*number)),
        Value::Hex(number) => Some(Digits::hexadecimal(*number)),
        Value::Text(_) | Value::Bytes(_) | Value::Entries(_) => None,
    }
}

fn push_value(out: &mut String, value: &Value<'_>) {
    if let Some(digits) = number_digits(value) {
        out.push_str(std::str::from_utf8(digits.text()).unwrap_or_default());
    }
    match value {
        Value::Text(text) => {
            out.push('"');
            push_printable(out, text);
            out.push('"');
        }
        Value::Bytes(bytes) => push_bytes(out, bytes),
        Value::Entries(entries) => {
            push_count(out, entries.len());
            out.push_str(if entries.len() == 1 { " entry" } else { " entries" });
        }
        Value::Unsigned(_) | Value::Signed(_) | Value::Hex(_) => {}
    }
}

fn push_count(out: &mut String, count: usize) {
    let mut digits = Vec::new();
    append_count(&mut digits, count as u64);
    out.push_str(std::str::from_utf8(&digits).unwrap_or_default());
}

fn push_bytes(out: &mut String, bytes: &[u8]) {
    for (number, byte) in bytes.iter().take(BYTES_SHOWN).enumerate() {
        if number > 0 {
            out.push(' ');
        }
        out.extend(hex_digits(*byte).map(char::from));
    }
    if bytes.len() > BYTES_SHOWN {
        out.push_str(" … (");
        push_count(out, bytes.len());
        out.push_str(" bytes)");
    }
}

/// Appends bytes in hexadecimal, each line with its absolute offset and its printable ASCII.
pub fn append_hex(out: &mut Vec<u8>, bytes: &[u8], offset: u64, style: RecordStyle) {
    for (number, row) in bytes.chunks(HEX_COLUMNS).enumerate() {
        let start = offset.saturating_add((number as u64).saturating_mul(HEX_COLUMNS as u64));
        out.extend_from_slice(INDENT.as_bytes());
        style.paint(out, FAINT, |out| out.extend_from_slice(format!("{start:08x}").as_bytes()));
        out.extend_from_slice(b"  ");
        let mut halves = String::new();
        for (column, byte) in row.iter().enumerate() {
            halves.push_str(match column {
                0 => "",
                8 => "  ",
                _ => " ",
            });
            halves.extend(hex_digits(*byte).map(char::from));
        }
        out.extend_from_slice(format!("{halves:<48}  ").as_bytes());
        out.extend(row.iter().map(|&byte| if matches!(byte, b' '..=b'~') { byte } else { b'.' }));
        out.push(b'\n');
    }
}
