//! Applies the relocations of a section in an object file: its start fields are 0 until then.

use std::borrow::Cow;

use perfuse_wire::{Cursor, Endian, layout};

use super::elf::{Elf, SHT_RELA};
use crate::unit;

layout! {
    /// A relocation with an addend.
    Elf64Rela = "Elf64_Rela", section "ELF" {
        /// Offset to relocate.
        r_offset: u64,
        /// Index of the symbol, and relocation type.
        r_info: u64,
        /// Added to the symbol's value.
        r_addend: i64,
    }

    /// A symbol.
    Elf64Symbol = "Elf64_Sym", section "ELF" {
        /// Offset of its name.
        st_name: u32,
        /// Binding and type.
        st_info: u8,
        /// Visibility.
        st_other: u8,
        /// Index of its section; 0 where the symbol is undefined.
        st_shndx: u16,
        /// Offset in its section, or address.
        st_value: u64,
        /// Size.
        st_size: u64,
    }
}

const EM_S390: u16 = 22;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

const R_X86_64_PC32: u32 = 2;
const R_X86_64_PC64: u32 = 24;
const R_AARCH64_PREL64: u32 = 260;
const R_AARCH64_PREL32: u32 = 261;
const R_390_PC32: u32 = 5;
const R_390_PC64: u32 = 23;

/// The relocations of a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppliedRelocations {
    /// Start fields that were relocated, by offset, sorted; each with the index of the section it points to.
    pub applied: Vec<(u64, u16)>,
    /// Offsets of the relocations that were not applied: of another type, not of a start field, or without a symbol.
    pub refused: Vec<u64>,
}

impl AppliedRelocations {
    /// Index of the section that the start field at this offset points to.
    #[must_use]
    pub fn section_of(&self, at: u64) -> Option<u16> {
        let found = self.applied.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        self.applied.get(found).map(|(_, section)| *section)
    }
}

/// Relocates the start fields of a section, which is copied if there are any. Other fields are changed only where
/// `everywhere` is set: `ld -r` before binutils 2.45 writes relocations that point into rows.
pub fn apply_relocations(
    elf: &Elf<'_>,
    section_index: usize,
    bytes: &mut Cow<'_, [u8]>,
    everywhere: bool,
) -> AppliedRelocations {
    let mut applied_relocations = AppliedRelocations::default();
    let tables = unit::entry_tables(bytes);
    let is_start = |at: u64| {
        usize::try_from(at).is_ok_and(|at| {
            tables.iter().any(|(table, stride)| {
                table.contains(&at) && at.wrapping_sub(table.start).is_multiple_of(*stride)
            })
        })
    };
    let Some(target) = elf.sections.get(section_index).copied() else { return applied_relocations };
    // Limits the total number of entries: relocation sections do not overlap.
    let mut entries_left = elf.data.len() as u64 / Elf64Rela::SIZE;
    for section in &elf.sections {
        if section.sh_type != SHT_RELA || section.sh_info as usize != section_index {
            continue;
        }
        let symbols = elf.sections.get(section.sh_link as usize).and_then(|table| elf.bytes(table));
        let entries = elf.bytes(section).unwrap_or_default().chunks_exact(Elf64Rela::SIZE as usize);
        for entry in entries {
            let Some(entries_left_after) = entries_left.checked_sub(1) else { return applied_relocations };
            entries_left = entries_left_after;
            let Ok(entry) = Elf64Rela::read(&mut Cursor::new(entry, 0, elf.endian)) else { continue };
            let symbol = symbol(symbols.unwrap_or_default(), entry.r_info >> 32, elf.endian);
            let value = symbol
                .map(|symbol| symbol.st_value.wrapping_add_signed(entry.r_addend))
                .map(|value| value.wrapping_sub(target.sh_addr.wrapping_add(entry.r_offset)));
            let written = value
                .filter(|_| everywhere || is_start(entry.r_offset))
                .and_then(|value| write_value(bytes, &entry, value, elf));
            match written.and(symbol) {
                Some(symbol) => applied_relocations.applied.push((entry.r_offset, symbol.st_shndx)),
                None => applied_relocations.refused.push(entry.r_offset),
            }
        }
    }
    applied_relocations.applied.sort_unstable();
    applied_relocations
}

fn symbol(table: &[u8], index: u64, endian: Endian) -> Option<Elf64Symbol> {
    let at = usize::try_from(index).ok()?.checked_mul(Elf64Symbol::SIZE as usize)?;
    Elf64Symbol::read(&mut Cursor::new(table.get(at..)?, 0, endian)).ok()
}

/// Writes the value of a relocation; `None` for another relocation type.
fn write_value(bytes: &mut Cow<'_, [u8]>, entry: &Elf64Rela, value: u64, elf: &Elf<'_>) -> Option<()> {
    let width = match (elf.header.e_machine, entry.r_info as u32) {
        (EM_X86_64, R_X86_64_PC32) | (EM_AARCH64, R_AARCH64_PREL32) | (EM_S390, R_390_PC32) => 4usize,
        (EM_X86_64, R_X86_64_PC64) | (EM_AARCH64, R_AARCH64_PREL64) | (EM_S390, R_390_PC64) => 8,
        _ => return None,
    };
    let at = usize::try_from(entry.r_offset).ok()?;
    let range = at..at.checked_add(width)?;
    bytes.get(range.clone())?;
    let range = bytes.to_mut().get_mut(range)?;
    let value = match elf.endian {
        Endian::Little => value.to_le_bytes(),
        Endian::Big => {
            value.wrapping_shl(64u32.saturating_sub((width as u32).saturating_mul(8))).to_be_bytes()
        }
    };
    range.copy_from_slice(value.get(..width)?);
    Some(())
}
