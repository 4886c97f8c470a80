use object::elf::{self, RelocationType};
use object::read::elf::{Crel, FileHeader, Rel, SectionHeader, Sym, SymbolTable};
use object::{Endianness, SymbolIndex};
use rustc_hash::FxHashMap;

use super::container::Section;
use super::elf_sections::ElfSections;
use super::map::Place;
use super::relocation_kind::{RelocationKind, relocation_kind};

/// What relocations say of fields, by the field's offset; `None` where one cannot be resolved.
type Fields = FxHashMap<u64, Option<Place>>;

/// The relocations of a file that is not linked, by the section they are about.
pub(super) struct SectionRelocations<'a, 'data, Elf: FileHeader<Endian = Endianness>> {
    file: &'a ElfSections<'data, Elf>,
    symbols: SymbolTable<'data, Elf>,
    sections: FxHashMap<usize, Vec<&'data Elf::SectionHeader>>,
    /// Relocations to be read in all: no more than the file has bytes, which sections of a hostile one share.
    left: usize,
}

/// The two halves of a distance.
#[derive(Default)]
struct Distance {
    to: Option<Place>,
    from: Option<Place>,
}

impl<'a, 'data, Elf: FileHeader<Endian = Endianness>> SectionRelocations<'a, 'data, Elf> {
    pub(super) fn read(file: &'a ElfSections<'data, Elf>) -> Self {
        let mut sections: FxHashMap<usize, Vec<_>> = FxHashMap::default();
        for section in file.table.iter().filter(|section| is_relocations(section.sh_type(file.endian))) {
            sections.entry(section.info_link(file.endian).0).or_default().push(section);
        }
        Self { file, symbols: file.symbols(elf::SHT_SYMTAB), sections, left: file.data.len() }
    }

    /// Where the fields of a section point that has these bytes.
    pub(super) fn of(&mut self, index: u32, bytes: &[u8]) -> Fields {
        let mut fields = Fields::default();
        let mut distances: FxHashMap<u64, Distance> = FxHashMap::default();
        for section in self.sections.get(&(index as usize)).into_iter().flatten() {
            let Some(relocations) = Relocations::read(self.file, section) else { continue };
            for relocation in relocations.entries.take(self.left) {
                self.left -= 1;
                let offset = relocation.r_offset;
                let Some(kind) = relocation_kind(self.file.machine, relocation.r_type) else { continue };
                let in_place = || self.file.words.read(bytes, usize::try_from(offset).ok()?);
                let addend =
                    if relocations.has_addends { Some(relocation.r_addend as u64) } else { in_place() };
                let target = addend.and_then(|addend| self.target(relocation.symbol(), addend));
                match kind {
                    RelocationKind::Add => distances.entry(offset).or_default().to = target,
                    RelocationKind::Subtract => distances.entry(offset).or_default().from = target,
                    RelocationKind::Absolute | RelocationKind::PcRelative => {
                        fields.insert(offset, target);
                    }
                    RelocationKind::Relative => {}
                }
            }
        }
        fields.extend(distances.into_iter().map(|(offset, distance)| (offset, self.end(offset, &distance))));
        fields
    }

    /// Where a distance leads to that is counted from the field at an offset, or from a label near it.
    fn end(&self, offset: u64, distance: &Distance) -> Option<Place> {
        let (to, from) = (distance.to?, distance.from?);
        let address = to.address.wrapping_sub(from.address).wrapping_add(offset);
        Some(Place { address: self.file.words.wrap(address), ..to })
    }

    fn target(&self, symbol: Option<SymbolIndex>, addend: u64) -> Option<Place> {
        let index = symbol?;
        let symbol = self.symbols.symbol(index).ok()?;
        let section = self.symbols.symbol_section(self.file.endian, symbol, index).ok()??;
        let value: u64 = symbol.st_value(self.file.endian).into();
        let address = self.file.words.wrap(value.wrapping_add(addend));
        Some(Place { section: Some(u32::try_from(section.0).ok()?), address })
    }
}

/// The relocations of a linked file that its loader applies to some sections, sorted by address.
///
/// Only those with an addend of their own change a field: without one (REL, RELR) the field has the link-time address.
pub(super) struct DynamicRelocations(Vec<(u64, Option<Place>)>);

impl DynamicRelocations {
    pub(super) fn read<'a, 'data: 'a, Elf: FileHeader<Endian = Endianness>>(
        file: &ElfSections<'data, Elf>,
        sections: impl Iterator<Item = &'a Section<'data>> + Clone,
    ) -> Self {
        let start = sections.clone().map(|section| section.address).min().unwrap_or(0);
        let end = sections.map(Section::end).max().unwrap_or(0);
        let symbols = file.symbols(elf::SHT_DYNSYM);
        let mut left = file.data.len();
        let mut found = Vec::new();
        // Linkers can keep the relocations they applied, in sections that are not loaded.
        let loaded = |section: &&Elf::SectionHeader| section.sh_flags(file.endian).0 & elf::SHF_ALLOC.0 != 0;
        for section in file.table.iter().filter(loaded) {
            let Some(relocations) = Relocations::read(file, section) else { continue };
            for relocation in relocations.entries.take(left) {
                left -= 1;
                if (start..end).contains(&relocation.r_offset)
                    && let Some(kind) = relocation_kind(file.machine, relocation.r_type)
                    && let Some(target) = target(file, &symbols, &relocation, kind, relocations.has_addends)
                {
                    found.push((relocation.r_offset, target));
                }
            }
        }
        found.sort_unstable_by_key(|(address, _)| *address);
        found.dedup_by_key(|(address, _)| *address);
        Self(found)
    }

    /// Where the fields of a section point.
    pub(super) fn within(&self, section: &Section<'_>) -> Fields {
        let first = self.0.partition_point(|(address, _)| *address < section.address);
        let inside = self.0[first..].iter().take_while(|(address, _)| *address < section.end());
        inside.map(|(address, place)| (address - section.address, *place)).collect()
    }
}

/// What a field becomes: unchanged (`None`), unknown (`Some(None)`), or an address.
fn target<Elf: FileHeader<Endian = Endianness>>(
    file: &ElfSections<'_, Elf>,
    symbols: &SymbolTable<'_, Elf>,
    relocation: &Crel,
    kind: RelocationKind,
    has_addend: bool,
) -> Option<Option<Place>> {
    let base = match (kind, relocation.symbol()) {
        (RelocationKind::Relative, _) | (RelocationKind::Absolute, None) => has_addend.then_some(0)?,
        (RelocationKind::Absolute, Some(index)) => {
            let symbol = symbols.symbol(index).ok().filter(|symbol| !symbol.is_undefined(file.endian));
            let Some(symbol) = symbol else { return Some(None) };
            symbol.st_value(file.endian).into()
        }
        _ => return None,
    };
    // Without an addend of its own a symbol's field has 0: compilers name the start of functions.
    let address = file.words.wrap(base.wrapping_add(relocation.r_addend as u64));
    Some(Some(Place { section: None, address }))
}

/// The entries of a section of relocations.
struct Relocations<'data> {
    entries: Box<dyn Iterator<Item = Crel> + 'data>,
    /// Whether addends are in the relocations; else they are in the fields.
    has_addends: bool,
}

impl<'data> Relocations<'data> {
    fn read<Elf: FileHeader<Endian = Endianness>>(
        file: &ElfSections<'data, Elf>,
        section: &'data Elf::SectionHeader,
    ) -> Option<Self> {
        let (endian, mips) = (file.endian, file.is_mips64el);
        match section.sh_type(endian) {
            elf::SHT_REL => {
                let (all, _) = section.rel(endian, file.data).ok()??;
                let entries = all.iter().map(move |one| match mips {
                    false => Crel::from_rel(one, endian),
                    true => from_mips64el(one.r_offset(endian).into(), one.r_info(endian).into()),
                });
                Some(Self { entries: Box::new(entries), has_addends: false })
            }
            elf::SHT_RELA => {
                let (all, _) = section.rela(endian, file.data).ok()??;
                let entries = Box::new(all.iter().map(move |one| Crel::from_rela(one, endian, mips)));
                Some(Self { entries, has_addends: true })
            }
            elf::SHT_CREL => {
                let (all, _) = section.crel(endian, file.data).ok()??;
                let has_addends = all.is_rela();
                Some(Self { entries: Box::new(all.map_while(Result::ok)), has_addends })
            }
            _ => None,
        }
    }
}

/// Little-endian 64-bit MIPS has the symbol in the lower half, and the three types from the last byte on.
fn from_mips64el(r_offset: u64, info: u64) -> Crel {
    let r_type = RelocationType(((info >> 32) as u32).swap_bytes());
    Crel { r_offset, r_sym: info as u32, r_type, r_addend: 0 }
}

fn is_relocations(kind: elf::SectionType) -> bool {
    matches!(kind, elf::SHT_REL | elf::SHT_RELA | elf::SHT_CREL)
}
