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

/// Appends a string with its quotes; text other than ASCII is UTF-8.
fn append_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
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
    out.push(b'"');
}
