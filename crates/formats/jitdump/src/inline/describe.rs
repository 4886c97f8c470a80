//! Extension records as `perfuse records` shows them.

use std::borrow::Cow;

use perfuse_wire::Value;

use super::{Extension, StringTable, extension};
use crate::records::RawRecord;

type Fields<'a> = Vec<(&'static str, Value<'a>)>;

/// The fields of an extension record, named as in its layout; `None` where its payload is of no known dialect.
#[must_use]
pub fn fields<'a>(record: &RawRecord<'a>) -> Option<Fields<'a>> {
    let (fields, padding) = match extension(record)? {
        Extension::DebugInfo2(info) => (debug_info2(&info), info.padding),
        Extension::Frames(info) => (frames(&info), info.padding),
        Extension::InlineInfo1(info) => (inline_info1(&info), info.padding),
        Extension::InlineInfo2(info) => (inline_info2(&info), info.padding),
        Extension::Tier(info) => (tier(&info), info.padding),
        Extension::EmbeddedFile(info) => (embedded(&info), info.padding),
    };
    let padding = (!padding.is_empty()).then_some(("padding", Value::Bytes(padding)));
    Some(fields.into_iter().chain(padding).collect())
}

/// Names fields by the struct's own names.
macro_rules! unsigned {
    ($of:expr; $($field:ident),+) => { vec![$((stringify!($field), Value::Unsigned($of.$field.into()))),+] };
}

fn debug_info2<'a>(info: &super::debug_info2::DebugInfo2<'a>) -> Fields<'a> {
    let functions = info.functions.iter();
    let calls = info.inline_calls.iter();
    vec![
        ("file_list", strings(&info.files)),
        ("function_names_list", strings(&info.function_names)),
        ("function_list", Value::Entries(functions.map(|f| unsigned!(f; function_name_index, file_index, start_line, start_column, flags)).collect())),
        ("inline_call_list", Value::Entries(calls.map(|c| unsigned!(c; depth, range_count, function_index, call_line_number, call_column_number)).collect())),
        ("range_list", Value::Entries(info.ranges.iter().map(|r| unsigned!(r; start_offset, size)).collect())),
        ("line_record_list", Value::Entries(info.lines.iter().map(|l| unsigned!(l; code_offset, file_index, line_number, column_number)).collect())),
    ]
}

fn frames<'a>(info: &super::frames::Frames<'a>) -> Fields<'a> {
    let offsets = info.code_offsets.iter().map(|entry| unsigned!(entry; code_offset, source_position));
    let positions = info.source_positions.iter().map(|p| {
        vec![
            ("caller_index", Value::Signed(p.caller_index.into())),
            ("function_name", Value::Unsigned(p.function_name.into())),
            ("file", Value::Signed(p.file.into())),
            ("function_start_line", Value::Unsigned(p.function_start_line.into())),
            ("function_start_column", Value::Unsigned(p.function_start_column.into())),
            ("line", Value::Unsigned(p.line.into())),
            ("column", Value::Unsigned(p.column.into())),
        ]
    });
    vec![
        ("code_addr", Value::Hex(info.code_addr)),
        ("code_offsets", Value::Entries(offsets.collect())),
        ("source_positions", Value::Entries(positions.collect())),
        ("strings", strings(&info.strings)),
    ]
}

fn inline_info1<'a>(info: &super::inline_info1::InlineInfo1<'a>) -> Fields<'a> {
    let entries = info.entries.iter().map(|entry| {
        vec![
            ("start_addr", Value::Hex(entry.fixed.start_addr)),
            ("end_addr", Value::Hex(entry.fixed.end_addr)),
            ("call_file", Value::Unsigned(entry.fixed.call_file.into())),
            ("call_line", Value::Unsigned(entry.fixed.call_line.into())),
            ("call_column", Value::Unsigned(entry.fixed.call_column.into())),
            ("inline_depth", Value::Unsigned(entry.fixed.inline_depth.into())),
            ("func_name", text(entry.func_name)),
            ("call_file_name", text(entry.call_file_name)),
        ]
    });
    vec![("code_addr", Value::Hex(info.code_addr)), ("entries", Value::Entries(entries.collect()))]
}

fn inline_info2<'a>(info: &super::inline_info2::InlineInfo2<'a>) -> Fields<'a> {
    let entries = info.entries.iter().map(|entry| {
        vec![
            ("line", Value::Unsigned(entry.fixed.line.into())),
            ("column", Value::Unsigned(entry.fixed.column.into())),
            ("func_name", text(entry.func_name)),
            ("file_path", text(entry.file_path)),
        ]
    });
    vec![("code_addr", Value::Hex(info.code_addr)), ("entries", Value::Entries(entries.collect()))]
}

fn tier<'a>(tier: &super::tier::Tier<'a>) -> Fields<'a> {
    vec![
        ("code_addr", Value::Hex(tier.code_addr)),
        ("color", Value::Unsigned(tier.color.into())),
        ("name", text(tier.name)),
    ]
}

fn embedded<'a>(file: &super::embedded::EmbeddedFile<'a>) -> Fields<'a> {
    vec![("path", text(file.path)), ("text", Value::Bytes(file.text))]
}

/// A string table: entries of one field each.
fn strings<'a>(table: &StringTable<'_>) -> Value<'a> {
    let entry = |string: &[u8]| {
        vec![("string", Value::Text(Cow::Owned(String::from_utf8_lossy(string).into_owned())))]
    };
    Value::Entries(table.iter().map(entry).collect())
}

fn text(bytes: &[u8]) -> Value<'_> {
    Value::Text(String::from_utf8_lossy(bytes))
}
