//! Records as `perfuse records` shows them.

use std::borrow::Cow;

use perfuse_wire::{ParseError, RecordView, Value};

use super::consts::RecordTag;
use super::inline;
use super::layout;
use super::records::{DebugInfo, Load, RawRecord, UnwindingInfo};

type Fields<'a> = Vec<(&'static str, Value<'a>)>;

/// A record with its fields decoded; a body that cannot be is shown as bytes.
pub fn view<'a>(record: &RawRecord<'a>) -> RecordView<'a> {
    RecordView {
        index: record.index,
        offset: record.offset,
        size: record.prefix.total_size.into(),
        name: Cow::Owned(inline::shown_tag(record).to_string()),
        timestamp: Some(record.prefix.timestamp),
        fields: fields(record).unwrap_or_else(|_| vec![("body", Value::Bytes(record.body))]),
    }
}

fn fields<'a>(record: &RawRecord<'a>) -> Result<Fields<'a>, ParseError> {
    let mut at = record.cursor();
    Ok(match record.tag() {
        RecordTag::JIT_CODE_LOAD => load(&Load::decode(at)?),
        RecordTag::JIT_CODE_MOVE => moved(&layout::Move::read(&mut at)?),
        RecordTag::JIT_CODE_DEBUG_INFO => debug_info(&DebugInfo::decode(at)?),
        RecordTag::JIT_CODE_UNWINDING_INFO => unwinding_info(&UnwindingInfo::decode(at)?),
        RecordTag::JIT_CODE_CLOSE if record.body.is_empty() => Vec::new(),
        _ => match inline::fields(record) {
            Some(fields) => fields,
            None => vec![("body", Value::Bytes(record.body))],
        },
    })
}

fn load<'a>(load: &Load<'a>) -> Fields<'a> {
    let fixed = &load.fixed;
    with_padding(
        vec![
            ("pid", Value::Unsigned(fixed.pid.into())),
            ("tid", Value::Unsigned(load.tid)),
            ("vma", Value::Hex(fixed.vma)),
            ("code_addr", Value::Hex(fixed.code_addr)),
            ("code_size", Value::Unsigned(fixed.code_size)),
            ("code_index", Value::Unsigned(fixed.code_index)),
            ("name", text(load.name)),
            ("code", Value::Bytes(load.code)),
        ],
        load.padding,
    )
}

fn moved(fixed: &layout::Move) -> Fields<'static> {
    vec![
        ("pid", Value::Unsigned(fixed.pid.into())),
        ("tid", Value::Unsigned(fixed.tid.into())),
        ("vma", Value::Hex(fixed.vma)),
        ("old_code_addr", Value::Hex(fixed.old_code_addr)),
        ("new_code_addr", Value::Hex(fixed.new_code_addr)),
        ("code_size", Value::Unsigned(fixed.code_size)),
        ("code_index", Value::Unsigned(fixed.code_index)),
    ]
}

/// Entries as written: skew and corrupted names are the checker's to tell.
fn debug_info<'a>(info: &DebugInfo<'a>) -> Fields<'a> {
    let mut walk = info.walk();
    let mut entries = Vec::new();
    for entry in walk.by_ref().map_while(Result::ok) {
        entries.push(vec![
            ("code_addr", Value::Hex(entry.fixed.code_addr)),
            ("line", Value::Unsigned(entry.fixed.line.into())),
            ("discrim", Value::Unsigned(entry.fixed.discrim.into())),
            ("name", text(entry.name)),
        ]);
    }
    with_padding(
        vec![
            ("code_addr", Value::Hex(info.fixed.code_addr)),
            ("nr_entry", Value::Unsigned(info.fixed.nr_entry)),
            ("entries", Value::Entries(entries)),
        ],
        walk.rest(),
    )
}

fn unwinding_info<'a>(info: &UnwindingInfo<'a>) -> Fields<'a> {
    with_padding(
        vec![
            ("unwind_data_size", Value::Unsigned(info.fixed.unwind_data_size)),
            ("eh_frame_hdr_size", Value::Unsigned(info.fixed.eh_frame_hdr_size)),
            ("mapped_size", Value::Unsigned(info.fixed.mapped_size)),
            ("unwinding_data", Value::Bytes(info.data)),
        ],
        info.padding,
    )
}

fn with_padding<'a>(mut fields: Fields<'a>, padding: &'a [u8]) -> Fields<'a> {
    if !padding.is_empty() {
        fields.push(("padding", Value::Bytes(padding)));
    }
    fields
}

fn text(bytes: &[u8]) -> Value<'_> {
    Value::Text(String::from_utf8_lossy(bytes))
}
