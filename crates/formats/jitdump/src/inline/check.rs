//! What the checker tells of extension records.

use std::borrow::Cow;

use perfuse_wire::Diagnostics;

use super::embedded::EMBEDDED_MAGIC;
use super::tier::TIER_MAGIC;
use super::{Dialect, decode};
use crate::consts::RecordTag;
use crate::records::RawRecord;
use crate::rules::{FOREIGN_PAYLOAD, INLINE_DIALECT, INLINE_INVALID};

/// Tells which dialect a record is of, or that it is of none.
pub fn check(record: &RawRecord<'_>, sink: &mut Diagnostics) {
    let mut tell = |rule, field, message: Cow<'static, str>| {
        sink.push(rule, record.offset, Some(record.index), field, || message);
    };
    match decode(record.tag(), record.body, record.body_offset(), record.endian) {
        Ok(extension) => {
            if let Some(name) = dialect_name(extension.dialect()) {
                tell(&INLINE_DIALECT, "id", format!("id {} in {name}", record.prefix.id).into());
            }
        }
        Err(_) if is_foreign(record) => {
            tell(
                &FOREIGN_PAYLOAD,
                "id",
                format!("{} of {} bytes", record.tag(), record.prefix.total_size).into(),
            );
        }
        Err(error) => tell(&INLINE_INVALID, error.field, error.to_string().into()),
    }
}

/// Whether a payload without a published layout is not even meant to be perfuse's.
fn is_foreign(record: &RawRecord<'_>) -> bool {
    let magic = record.cursor().u32("magic").ok();
    match record.tag() {
        RecordTag::SAMPLY_JIT_TIER => magic != Some(TIER_MAGIC),
        RecordTag::SAMPLY_EMBEDDED_SOURCE_FILE => magic != Some(EMBEDDED_MAGIC),
        _ => false,
    }
}

fn dialect_name(dialect: Dialect) -> Option<&'static str> {
    Some(match dialect {
        Dialect::DebugInfo2 => "the layout of samply's document (lists of calls and lines)",
        Dialect::Frames => "the layout of samply's branch and WebKit (chains of source positions)",
        Dialect::InlineInfo1 => "the first abandoned layout (ranges of calls)",
        Dialect::InlineInfo2 => "the second abandoned layout (one stack an address)",
        Dialect::Tier | Dialect::EmbeddedFile | Dialect::Unknown => return None,
    })
}
