//! SAMPLY_EMBEDDED_SOURCE_FILE, id 827346261. The gist names the record and gives it no layout; this one is perfuse's,
//! version 1.
//!
//! A source text under the path that debug records use for it. Any other payload under this id is left as it is.

use perfuse_wire::{Cursor, Endian, ParseError, layout};

use super::entries::{self, invalid};

/// Tells this layout from anyone else's: `PFSF` read most significant byte first.
pub const EMBEDDED_MAGIC: u32 = 0x5046_5346;

/// Version of this layout.
pub const EMBEDDED_VERSION: u32 = 1;

layout! {
    /// A source text.
    EmbeddedFixed = "SAMPLY_EMBEDDED_SOURCE_FILE", section "perfuse, inline/README.md" {
        /// 0x50465346, in the file's byte order.
        magic: u32,
        /// Version of this layout: 1.
        version: u32,
        /// Size of the text in bytes.
        text_size: u64,
    } then {
        /// Path, as debug records give it.
        path: CString,
        /// The text, `text_size` bytes.
        text: Bytes,
    }
}

/// A source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmbeddedFile<'a> {
    /// Path, as debug records give it.
    pub path: &'a [u8],
    /// The text, UTF-8 unless its language says otherwise.
    pub text: &'a [u8],
    /// What pads the record.
    pub padding: &'a [u8],
}

/// Decodes a body that lies at `offset`.
///
/// # Errors
/// When magic or version are not this layout's, or sizes do not add up.
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
    Ok(EmbeddedFile { path, text, padding: entries::padding(&at)? })
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
