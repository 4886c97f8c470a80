//! SAMPLY_EMBEDDED_SOURCE_FILE, id 827346261, in perfuse's layout, version 1: samply's document names the record without a
//! layout.
//!
//! The record contains a source text and the path that debug records use for it. Other payloads with this id are kept as
//! bytes.

use perfuse_wire::{Cursor, Endian, ParseError, Value, layout};

use super::entries::{self, invalid};

/// Identifies this layout: `PFSF` read most significant byte first.
pub const EMBEDDED_MAGIC: u32 = 0x5046_5346;

/// Version of this layout.
pub const EMBEDDED_VERSION: u32 = 1;

layout! {
    /// A source text.
    EmbeddedFixed = "SAMPLY_EMBEDDED_SOURCE_FILE", section "perfuse, inline/README.md" {
        /// 0x50465346, in the file's byte order.
        magic: u32 as Hex,
        /// Version of this layout: 1.
        version: u32,
        /// Size of the text in bytes.
        text_size: u64,
    } then {
        /// Path, as in debug records.
        path: CString,
        /// The text, `text_size` bytes.
        text: Bytes,
    }
}

/// A source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedFile<'a> {
    /// Path, as in debug records.
    pub path: &'a [u8],
    /// The text, usually UTF-8.
    pub text: &'a [u8],
    /// Padding of the record.
    pub padding: &'a [u8],
}

/// Decodes a body at an absolute offset.
///
/// # Errors
/// When magic or version differ, or sizes do not add up.
pub fn decode(body: &[u8], offset: u64, endian: Endian) -> Result<EmbeddedFile<'_>, ParseError> {
    let mut at = Cursor::new(body, offset, endian);
    let fixed = EmbeddedFixed::read(&mut at)?;
    if fixed.magic != EMBEDDED_MAGIC {
        return Err(invalid(fixed.magic.into(), "0x50465346", offset, "magic"));
    }
    if fixed.version != EMBEDDED_VERSION {
        return Err(invalid(fixed.version.into(), "version 1", offset, "version"));
    }
    let path = at.c_string("path")?;
    let text = at.bytes(fixed.text_size, "text")?;
    Ok(EmbeddedFile { path, text, padding: entries::read_padding(&at)? })
}

impl<'a> EmbeddedFile<'a> {
    /// Names and values of the fields, without magic, version and size.
    pub(super) fn fields(&self) -> Vec<(&'static str, Value<'a>)> {
        vec![("path", Value::text(self.path)), ("text", Value::Bytes(self.text))]
    }
}

/// Encodes a body.
#[must_use]
pub fn encode(file: &EmbeddedFile<'_>, endian: Endian) -> Vec<u8> {
    let mut out = Vec::new();
    let text_size = file.text.len() as u64;
    EmbeddedFixed { magic: EMBEDDED_MAGIC, version: EMBEDDED_VERSION, text_size }.write(&mut out, endian);
    out.extend(file.path);
    out.push(0);
    out.extend(file.text);
    out.extend(file.padding);
    out
}
