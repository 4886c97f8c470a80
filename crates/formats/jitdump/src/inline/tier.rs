//! SAMPLY_JIT_TIER, id 827346260, in perfuse's layout, version 1: samply's document names the record without a layout.
//!
//! The record contains the tier of the code at an address and precedes its JIT_CODE_LOAD. Other payloads with this id are
//! kept as bytes.

use perfuse_wire::{Cursor, Endian, ParseError, Value, layout};

use super::entries::{self, invalid};

/// Identifies this layout: `PFTR` read most significant byte first.
pub const TIER_MAGIC: u32 = 0x5046_5452;

/// Version of this layout.
pub const TIER_VERSION: u32 = 1;

layout! {
    /// The compiler tier of the code at an address.
    TierFixed = "SAMPLY_JIT_TIER", section "perfuse, inline/README.md" {
        /// 0x50465452, in the file's byte order.
        magic: u32 as Hex,
        /// Version of this layout: 1.
        version: u32,
        /// Address of the code.
        code_addr: u64 as Hex,
        /// Number of a color; 0 for the viewer's choice.
        color: u32,
    } then {
        /// Name of the tier in its runtime.
        name: CString,
    }
}

/// The tier of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier<'a> {
    /// Address of the code.
    pub code_addr: u64,
    /// Number of a color in the README's table; 0 for the viewer's choice.
    pub color: u32,
    /// Name of the tier in its runtime.
    pub name: &'a [u8],
    /// Padding of the record.
    pub padding: &'a [u8],
}

/// Decodes a body at an absolute offset.
///
/// # Errors
/// When magic or version differ, or sizes do not add up.
pub fn decode(body: &[u8], offset: u64, endian: Endian) -> Result<Tier<'_>, ParseError> {
    let mut at = Cursor::new(body, offset, endian);
    let fixed = TierFixed::read(&mut at)?;
    if fixed.magic != TIER_MAGIC {
        return Err(invalid(fixed.magic.into(), "0x50465452", offset, "magic"));
    }
    if fixed.version != TIER_VERSION {
        return Err(invalid(fixed.version.into(), "version 1", offset, "version"));
    }
    let name = at.c_string("name")?;
    Ok(Tier { code_addr: fixed.code_addr, color: fixed.color, name, padding: entries::read_padding(&at)? })
}

impl<'a> Tier<'a> {
    /// Names and values of the fields, without magic and version.
    pub(super) fn fields(&self) -> Vec<(&'static str, Value<'a>)> {
        vec![
            ("code_addr", Value::Hex(self.code_addr)),
            ("color", Value::Unsigned(self.color.into())),
            ("name", Value::text(self.name)),
        ]
    }
}

/// Encodes a body.
#[must_use]
pub fn encode(tier: &Tier<'_>, endian: Endian) -> Vec<u8> {
    let mut out = Vec::new();
    let (code_addr, color) = (tier.code_addr, tier.color);
    TierFixed { magic: TIER_MAGIC, version: TIER_VERSION, code_addr, color }.write(&mut out, endian);
    out.extend(tier.name);
    out.push(0);
    out.extend(tier.padding);
    out
}
