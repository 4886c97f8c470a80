//! SAMPLY_JIT_TIER, id 827346260. The gist names the record and gives it no layout; this one is perfuse's, version 1.
//!
//! The tier of the code at an address, before its JIT_CODE_LOAD. Any other payload under this id is left as it is.

use perfuse_wire::{Cursor, Endian, ParseError, layout};

use super::entries::{self, invalid};

/// Tells this layout from anyone else's: `PFTR` read most significant byte first.
pub const TIER_MAGIC: u32 = 0x5046_5452;

/// Version of this layout.
pub const TIER_VERSION: u32 = 1;

layout! {
    /// The compiler tier of the code at an address.
    TierFixed = "SAMPLY_JIT_TIER", section "perfuse, inline/README.md" {
        /// 0x50465452, in the file's byte order.
        magic: u32,
        /// Version of this layout: 1.
        version: u32,
        /// Address of the code.
        code_addr: u64,
        /// Number of a colour; 0 leaves it to the viewer.
        color: u32,
    } then {
        /// Name of the tier, as its runtime calls it.
        name: CString,
    }
}

/// The tier of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tier<'a> {
    /// Address of the code.
    pub code_addr: u64,
    /// Number of a colour, by the table in the README; 0 leaves it to the viewer.
    pub color: u32,
    /// Name of the tier, as its runtime calls it.
    pub name: &'a [u8],
    /// What pads the record.
    pub padding: &'a [u8],
}

/// Decodes a body that lies at `offset`.
///
/// # Errors
/// When magic or version are not this layout's, or sizes do not add up.
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
    Ok(Tier { code_addr: fixed.code_addr, color: fixed.color, name, padding: entries::padding(&at)? })
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
