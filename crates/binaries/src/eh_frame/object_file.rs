//! Object files: sections all begin at 0, and what they point to is in relocations.

use object::{
    Endianness, Object, ObjectSection, ObjectSymbol, RelocationKind, RelocationTarget, SectionIndex,
    SectionKind,
};

/// Where sections of an object file are put, so that addresses in different ones differ: code one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionBases {
    /// By section index.
    bases: Vec<Option<u64>>,
    end: u64,
}

impl SectionBases {
    /// Lays sections out. Of a file that is linked they stay where they are: then there is nothing to lay out.
    pub(super) fn of(file: &object::File<'_>) -> Self {
        let mut laid = Self::default();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let index = section.index().0;
            if laid.bases.len() <= index {
                laid.bases.resize(index + 1, None);
            }
            laid.bases[index] = Some(laid.end);
            laid.end =
                laid.end.saturating_add(section.size()).checked_next_multiple_of(64).unwrap_or(u64::MAX);
        }
        laid
    }

    /// What to add to an offset in a section; `None` where the section is no code.
    #[must_use]
    pub fn base(&self, section: usize) -> Option<u64> {
        self.bases.get(section).copied().flatten()
    }

    /// Where what is no code may be put: behind all code.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Fills the fields of a section, put at an address, that relocations are about.
    pub(super) fn relocate(
        &self,
        file: &object::File<'_>,
        section: &object::Section<'_, '_>,
        address: u64,
        bytes: &mut [u8],
    ) {
        let little = file.endianness() == Endianness::Little;
        // Sections of a hostile file may share one long list.
        for (offset, relocation) in section.relocations().take(bytes.len()) {
            let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
            let Ok(symbol) = file.symbol_by_index(symbol) else { continue };
            let base = symbol.section_index().and_then(|SectionIndex(index)| self.base(index));
            let Some(base) = base else { continue };
            let target = base.wrapping_add(symbol.address()).wrapping_add_signed(relocation.addend());
            let value = match relocation.kind() {
                RelocationKind::Absolute => target,
                RelocationKind::Relative => target.wrapping_sub(address.wrapping_add(offset)),
                _ => continue,
            };
            let width = usize::from(relocation.size() / 8);
            let Some(field) =
                usize::try_from(offset).ok().and_then(|at| bytes.get_mut(at..at.checked_add(width)?))
            else {
                continue;
            };
            match (width, little) {
                (4, true) => field.copy_from_slice(&(value as u32).to_le_bytes()),
                (4, false) => field.copy_from_slice(&(value as u32).to_be_bytes()),
                (8, true) => field.copy_from_slice(&value.to_le_bytes()),
                (8, false) => field.copy_from_slice(&value.to_be_bytes()),
                _ => {}
            }
        }
    }
}
