//! Function descriptor entries (FDEs) of all versions as one type.

use std::fmt;

use perfuse_wire::{Cursor, Endian};

use super::consts::{SFRAME_FDE_TYPE_FLEX, SFRAME_FDE_TYPE_PCMASK, VERSION_1_REPEAT_BYTES};
use super::layout::{FuncDescAttrV3, FuncDescIdxV3, FuncDescV1, FuncDescV2};

/// The info byte of a function (`sfde_func_info`, `sfda_func_info`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FdeInfo(pub u8);

impl FdeInfo {
    /// Bits 0-3: FRE type, the size code of row start offsets.
    #[must_use]
    pub const fn fre_type(self) -> u8 {
        self.0 & 0xf
    }

    /// Size in bytes of a row start offset; `None` for an undefined FRE type.
    #[must_use]
    pub const fn row_start_bytes(self) -> Option<usize> {
        match self.fre_type() {
            0 => Some(1),
            1 => Some(2),
            2 => Some(4),
            _ => None,
        }
    }

    /// Bit 4: PCINC (0) or PCMASK (1).
    #[must_use]
    pub const fn pc_type(self) -> u8 {
        self.0 >> 4 & 1
    }

    /// Whether rows describe a block of code that repeats (PCMASK).
    #[must_use]
    pub const fn repeats(self) -> bool {
        self.pc_type() == SFRAME_FDE_TYPE_PCMASK
    }

    /// Bit 5, aarch64: return addresses are signed with key B.
    #[must_use]
    pub const fn pauth_key_b(self) -> bool {
        self.0 & 0x20 != 0
    }

    /// Bit 7, version 3: signal frame, entered by the kernel.
    #[must_use]
    pub const fn is_signal(self) -> bool {
        self.0 & 0x80 != 0
    }

    /// Builds the byte from its parts.
    #[must_use]
    pub const fn new(fre_type: u8, repeats: bool, pauth_key_b: bool, is_signal: bool) -> Self {
        Self(fre_type & 0xf | (repeats as u8) << 4 | (pauth_key_b as u8) << 5 | (is_signal as u8) << 7)
    }
}

impl fmt::Display for FdeInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.row_start_bytes() {
            Some(bytes) => write!(f, "ADDR{bytes}")?,
            None => write!(f, "Unknown FRE type {}", self.fre_type())?,
        }
        f.write_str(if self.repeats() { " PCMASK" } else { " PCINC" })?;
        f.write_str(if self.pauth_key_b() { " B_KEY" } else { "" })?;
        f.write_str(if self.is_signal() { " SIGNAL" } else { "" })
    }
}

/// A function descriptor entry (FDE) of any version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fde {
    /// Zero-based index in the table of its unit.
    pub index: u32,
    /// Offset of the entry in the section.
    pub at: usize,
    /// The start field as stored (in an object file: after relocation).
    pub start_field: i64,
    /// Start address.
    pub start: u64,
    /// Size in bytes.
    pub size: u32,
    /// Offset of its rows (version 3: its attributes) from the start of the row sub-section.
    pub start_fre_off: u32,
    /// Number of rows, as stated.
    pub num_rows: u32,
    /// The info byte.
    pub info: FdeInfo,
    /// Version 3: DEFAULT or FLEX; 0 before.
    pub fde_type: u8,
    /// Version 3: reserved bits of the second info byte.
    pub unused_bits: u8,
    /// PCMASK: size in bytes of the block that repeats. Version 1 has no field for it: then 16 for PCMASK, else 0.
    pub repeat_bytes: u8,
    /// Version 2: padding, 0.
    pub padding: u16,
    /// Offset of the first row in the section; `None` where it is outside of the section.
    pub rows_at: Option<usize>,
}

impl Fde {
    /// Address after its last byte.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.size))
    }

    /// Whether its rows are FLEX rows, which name registers.
    #[must_use]
    pub const fn is_flex(&self) -> bool {
        self.fde_type == SFRAME_FDE_TYPE_FLEX
    }

    /// Converts an offset in the function to the offset that row starts are compared with: for PCMASK the offset in
    /// the block that repeats. `None` where that block has size 0.
    #[must_use]
    pub fn row_offset(&self, code_offset: u64) -> Option<u64> {
        if self.info.repeats() {
            code_offset.checked_rem(u64::from(self.repeat_bytes))
        } else {
            Some(code_offset)
        }
    }
}

/// A function with all fields 0.
pub(super) const BLANK: Fde = Fde {
    index: 0,
    at: 0,
    start_field: 0,
    start: 0,
    size: 0,
    start_fre_off: 0,
    num_rows: 0,
    info: FdeInfo(0),
    fde_type: 0,
    unused_bits: 0,
    repeat_bytes: 0,
    padding: 0,
    rows_at: None,
};

/// Size in bytes of a function entry in the table; `None` for an unknown version.
#[must_use]
pub const fn entry_bytes(version: u8) -> Option<usize> {
    match version {
        1 => Some(FuncDescV1::SIZE as usize),
        2 => Some(FuncDescV2::SIZE as usize),
        3 => Some(FuncDescIdxV3::SIZE as usize),
        _ => None,
    }
}

/// The number of rows that an entry of version 1 or 2 states.
#[inline]
pub(super) fn num_rows(version: u8, entry: &[u8], endian: Endian) -> Option<u32> {
    let cursor = &mut Cursor::new(entry, 0, endian);
    match version {
        1 => FuncDescV1::read(cursor).ok().map(|entry| entry.sfde_func_num_fres),
        2 => FuncDescV2::read(cursor).ok().map(|entry| entry.sfde_func_num_fres),
        _ => None,
    }
}

/// Decodes an entry. `start`, `rows_at` and the index are left at 0.
#[inline]
pub(super) fn decode(version: u8, entry: &[u8], endian: Endian) -> Option<Fde> {
    let cursor = &mut Cursor::new(entry, 0, endian);
    Some(match version {
        1 => {
            let entry = FuncDescV1::read(cursor).ok()?;
            let info = FdeInfo(entry.sfde_func_info);
            Fde {
                start_field: entry.sfde_func_start_address.into(),
                size: entry.sfde_func_size,
                start_fre_off: entry.sfde_func_start_fre_off,
                num_rows: entry.sfde_func_num_fres,
                info,
                repeat_bytes: if info.repeats() { VERSION_1_REPEAT_BYTES } else { 0 },
                ..BLANK
            }
        }
        2 => {
            let entry = FuncDescV2::read(cursor).ok()?;
            Fde {
                start_field: entry.sfde_func_start_address.into(),
                size: entry.sfde_func_size,
                start_fre_off: entry.sfde_func_start_fre_off,
                num_rows: entry.sfde_func_num_fres,
                info: FdeInfo(entry.sfde_func_info),
                repeat_bytes: entry.sfde_func_rep_size,
                padding: entry.sfde_func_padding2,
                ..BLANK
            }
        }
        3 => {
            let entry = FuncDescIdxV3::read(cursor).ok()?;
            Fde {
                start_field: entry.sfdi_func_start_offset,
                size: entry.sfdi_func_size,
                start_fre_off: entry.sfdi_func_start_fre_off,
                ..BLANK
            }
        }
        _ => return None,
    })
}

/// Version 3: adds the attributes, which precede the rows.
pub(super) fn with_attributes(function: Fde, bytes: &[u8], endian: Endian) -> Option<Fde> {
    let attributes = FuncDescAttrV3::read(&mut Cursor::new(bytes, 0, endian)).ok()?;
    Some(Fde {
        num_rows: attributes.sfda_func_num_fres.into(),
        info: FdeInfo(attributes.sfda_func_info),
        fde_type: attributes.sfda_func_info2 & 0x1f,
        unused_bits: attributes.sfda_func_info2 & 0xe0,
        repeat_bytes: attributes.sfda_func_rep_size,
        ..function
    })
}
