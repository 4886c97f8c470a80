//! A record as a line of JSON, in the documented form.

use perfuse_wire::{RecordView, Value};

use super::characters::{Digits, append_hexadecimal, append_number, hex_digits};

/// Appends a record as a JSON object on a line of its own.
pub fn append_json(out: &mut Vec<u8>, record: &RecordView<'_>) {
    out.extend_from_slice(b"{\"index\": ");
    append_number(out, record.index);
    out.extend_from_slice(b", \"offset\": ");
    append_number(out, record.offset);
    out.extend_from_slice(b", \"size\": ");
    append_number(out, record.size);
    out.extend_from_slice(b", \"name\": ");
    append_string(out, &record.name);
    out.extend_from_slice(b", \"timestamp\": ");
    match record.timestamp {
        Some(timestamp) => append_number(out, timestamp),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b", \"fields\": ");
    append_object(out, &record.fields);
    out.extend_from_slice(b"}\n");
}

fn append_object(out: &mut Vec<u8>, fields: &[(&'static str, Value<'_>)]) {
    out.push(b'{');
    for (number, (name, value)) in fields.iter().enumerate() {
        if number > 0 {
            out.extend_from_slice(b", ");
        }
        append_string(out, name);
        out.extend_from_slice(b": ");
        append_value(out, value);
    }
    out.push(b'}');
}

fn append_value(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Unsigned(number) => append_number(out, *number),
        Value::Signed(number) => out.extend_from_slice(Digits::signed(*number).text()),
        Value::Hex(number) => {
            out.push(b'"');
            append_hexadecimal(out, *number);
            out.push(b'"');
        }
        Value::Text(text) => append_string(out, text),
        Value::Bytes(bytes) => {
            out.push(b'"');
            out.extend(bytes.iter().flat_map(|byte| hex_digits(*byte)));
            out.push(b'"');
        }
        Value::Entries(entries) => {
            out.push(b'[');
            for (number, entry) in entries.iter().enumerate() {
                if number > 0 {
                    out.extend_from_slice(b", ");
                }
                append_object(out, entry);
            }
            out.push(b']');
        }
    }
}

/// Whether a terminal would obey a character that JSON allows in a string: the other control characters, and what changes the
/// direction of text.
fn controls_a_terminal(char: char) -> bool {
    matches!(
        char,
        '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Appends a string with its quotes; text other than ASCII is UTF-8, except for what controls a terminal.
fn append_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    if text.is_ascii() && !text.contains('\u{7f}') {
        append_characters(out, text);
    } else {
        for part in text.split_inclusive(controls_a_terminal) {
            let plain = part.trim_end_matches(controls_a_terminal);
            append_characters(out, plain);
            for control in part.get(plain.len()..).unwrap_or_default().chars() {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(control)).as_bytes());
            }
        }
    }
    out.push(b'"');
}

fn append_characters(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\') {
        out.extend_from_slice(text.as_bytes());
    } else {
        for &byte in text.as_bytes() {
            match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                b'\n' => out.extend_from_slice(b"\\n"),
                b'\r' => out.extend_from_slice(b"\\r"),
                b'\t' => out.extend_from_slice(b"\\t"),
                0x08 => out.extend_from_slice(b"\\b"),
                0x0c => out.extend_from_slice(b"\\f"),
                0..0x20 => {
                    out.extend_from_slice(b"\\u00");
                    out.extend_from_slice(&hex_digits(byte));
                }
                _ => out.push(byte),
            }
        }
    }
}
