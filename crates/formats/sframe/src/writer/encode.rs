//! Encodes the contents of a section as bytes.

use perfuse_wire::{Endian, Put};

use super::contents::{OwnedFre, SectionContents, SectionFunction, WriteError};
use crate::consts::SFRAME_MAGIC;
use crate::layout::{FuncDescAttrV3, FuncDescIdxV3, FuncDescV1, FuncDescV2, Header};
use crate::records::entry_bytes;

/// Encoded rows, and the offset of each function's. In version 3 attributes precede rows, so a block is written once
/// for each distinct set of attributes.
#[derive(Default)]
struct EncodedRows {
    bytes: Vec<u8>,
    offsets: Vec<usize>,
}

impl SectionContents {
    /// The section as bytes, for a load address.
    ///
    /// # Errors
    /// [`WriteError`] for what its version cannot represent.
    pub fn encode(&self, address: u64) -> Result<Vec<u8>, WriteError> {
        let entry_bytes =
            entry_bytes(self.version).ok_or(WriteError { function: None, what: "no such version" })?;
        let entries_bytes = entry_bytes.checked_mul(self.functions.len());
        let encoded = self.encode_rows()?;
        let too_many = WriteError { function: None, what: "more than 4 GiB of functions or rows" };
        let count = |number: usize| u32::try_from(number).map_err(|_| too_many.clone());
        let num_rows =
            self.functions.iter().map(|function| self.rows(function).len()).fold(0, usize::saturating_add);
        let auxiliary = self.auxiliary.get(..self.auxiliary.len().min(255)).unwrap_or_default();
        let header = Header {
            sfp_magic: SFRAME_MAGIC,
            sfp_version: self.version,
            sfp_flags: self.flags,
            sfh_abi_arch: self.abi.0,
            sfh_cfa_fixed_fp_offset: self.fixed_fp,
            sfh_cfa_fixed_ra_offset: self.fixed_ra,
            sfh_auxhdr_len: auxiliary.len() as u8,
            sfh_num_fdes: count(self.functions.len())?,
            sfh_num_fres: count(num_rows)?,
            sfh_fre_len: count(encoded.bytes.len())?,
            sfh_fdeoff: 0,
            sfh_freoff: count(entries_bytes.ok_or(too_many.clone())?)?,
        };
        let mut out = Vec::new();
        header.write(&mut out, self.endian);
        out.extend_from_slice(auxiliary);
        for (index, (function, at)) in self.functions.iter().zip(&encoded.offsets).enumerate() {
            let base = if self.is_from_field() { address.wrapping_add(out.len() as u64) } else { address };
            let field = function.start.wrapping_sub(base).cast_signed();
            let error = |what| WriteError { function: Some(index), what };
            self.write_entry(function, field, count(*at)?, &mut out).map_err(error)?;
        }
        out.extend_from_slice(&encoded.bytes);
        Ok(out)
    }

    /// Writes a function entry.
    fn write_entry(
        &self,
        function: &SectionFunction,
        field: i64,
        at: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        let num_rows = u32::try_from(self.rows(function).len()).map_err(|_| "more than 2^32 rows")?;
        let start_offset = || i32::try_from(field).map_err(|_| "its code is more than 2 GiB away");
        let (endian, size) = (self.endian, function.size);
        match self.version {
            1 => FuncDescV1 {
                sfde_func_start_address: start_offset()?,
                sfde_func_size: size,
                sfde_func_start_fre_off: at,
                sfde_func_num_fres: num_rows,
                sfde_func_info: function.info.0,
            }
            .write(out, endian),
            2 => FuncDescV2 {
                sfde_func_start_address: start_offset()?,
                sfde_func_size: size,
                sfde_func_start_fre_off: at,
                sfde_func_num_fres: num_rows,
                sfde_func_info: function.info.0,
                sfde_func_rep_size: function.repeat_bytes,
                sfde_func_padding2: function.padding,
            }
            .write(out, endian),
            _ => FuncDescIdxV3 {
                sfdi_func_start_offset: field,
                sfdi_func_size: size,
                sfdi_func_start_fre_off: at,
            }
            .write(out, endian),
        }
        Ok(())
    }

    /// Encodes the rows of all functions.
    fn encode_rows(&self) -> Result<EncodedRows, WriteError> {
        let mut encoded = EncodedRows { bytes: Vec::new(), offsets: vec![0; self.functions.len()] };
        let mut by_block: Vec<_> = self.functions.iter().enumerate().collect();
        by_block.sort_by_key(|(index, function)| (function.block, *index));
        let mut last: Option<(SectionFunction, usize)> = None;
        for (index, function) in by_block {
            let shares = |before: &SectionFunction| {
                before.block == function.block
                    && before.info.fre_type() == function.info.fre_type()
                    && (self.version < 3 || attributes(before) == attributes(function))
            };
            let at = match last {
                Some((before, at)) if shares(&before) => at,
                _ => {
                    let at = encoded.bytes.len();
                    let error = |what| WriteError { function: Some(index), what };
                    self.write_rows(function, &mut encoded.bytes).map_err(error)?;
                    at
                }
            };
            last = Some((*function, at));
            if let Some(slot) = encoded.offsets.get_mut(index) {
                *slot = at;
            }
        }
        Ok(encoded)
    }

    /// Writes the rows of a function; in version 3 its attributes before them.
    pub(super) fn write_rows(
        &self,
        function: &SectionFunction,
        out: &mut Vec<u8>,
    ) -> Result<(), &'static str> {
        let rows = self.rows(function);
        if self.version >= 3 {
            let attributes = FuncDescAttrV3 {
                sfda_func_num_fres: u16::try_from(rows.len()).map_err(|_| "more than 65535 rows")?,
                sfda_func_info: function.info.0,
                sfda_func_info2: function.fde_type,
                sfda_func_rep_size: function.repeat_bytes,
            };
            attributes.write(out, self.endian);
        }
        let start_bytes = function.info.row_start_bytes().ok_or("an undefined FRE type")?;
        rows.iter().try_for_each(|row| write_row(row, start_bytes, self.endian, out))
    }
}

/// The attributes of a function that rows depend on in version 3.
fn attributes(function: &SectionFunction) -> (u8, u8, u8) {
    (function.info.0, function.fde_type, function.repeat_bytes)
}

/// Writes a row.
///
/// # Errors
/// When a number does not fit its size.
pub(super) fn write_row(
    row: &OwnedFre,
    start_bytes: usize,
    endian: Endian,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    write_number(i64::from(row.start), start_bytes, endian, out).ok_or("a row start exceeds its FRE type")?;
    out.push(row.info.0);
    if row.words.len() != usize::from(row.info.num_words()) {
        return Err("the number of words of a row differs from its info byte");
    }
    let word_bytes = row.info.word_bytes().unwrap_or(0);
    let mut words = row.words.iter();
    words
        .try_for_each(|word| write_number((*word).into(), word_bytes, endian, out))
        .ok_or("a word is larger than its size")
}

/// Writes a number that fits `bytes` bytes, signed or unsigned; `None` where it does not fit.
fn write_number(value: i64, bytes: usize, endian: Endian, out: &mut Vec<u8>) -> Option<()> {
    match bytes {
        1 => out.push(u8::try_from(value).or_else(|_| i8::try_from(value).map(i8::cast_unsigned)).ok()?),
        2 => {
            let value =
                u16::try_from(value).or_else(|_| i16::try_from(value).map(i16::cast_unsigned)).ok()?;
            out.put_u16(value, endian);
        }
        4 => out.put_u32(value as u32, endian),
        _ => return None,
    }
    Some(())
}
