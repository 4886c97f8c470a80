//! Maps of ELF files: their sections, and the relocations of the addresses in them.

use std::sync::Arc;

use object::elf::{self, Machine, RelocationType};
use object::read::elf::{Crel, FileHeader, Rel, SectionHeader, SectionTable, Sym, SymbolTable};
use object::{Endianness, SymbolIndex};
use rustc_hash::FxHashMap;

use super::container::{CodeRanges, Container, MapSection, WordFormat};
use super::findings::{BEYOND_FILE, Error, MapFindings, OVERLAPPING};
use super::map::CodeLocation;

const MAP: &[u8] = b"xray_instr_map";
const INDEX: &[u8] = b"xray_fn_idx";

/// Finds the map in an ELF file.
///
/// # Errors
/// When there is no table of sections, or no section of the map in it.
pub(super) fn container<'data, Elf: FileHeader<Endian = Endianness>>(
    data: &'data [u8],
    findings: &mut MapFindings,
) -> Result<Container<'data>, Error> {
    let mut file = ElfSections::<Elf>::read(data)?;
    let mut maps = file.named(MAP, findings);
    let mut indexes = if file.is_relocatable { Vec::new() } else { file.named(INDEX, findings) };
    if maps.is_empty() {
        return Err(Error::NoMap(why_none(&file)));
    }
    if file.is_relocatable {
        let mut relocations = SectionRelocations::read(&file);
        for (index, map) in &mut maps {
            map.relocated = relocations.of(*index, map.bytes);
        }
    } else {
        let sections = || maps.iter().chain(&indexes).map(|(_, section)| section);
        let relocations = DynamicRelocations::read(&file, sections());
        for (_, section) in maps.iter_mut().chain(&mut indexes) {
            section.relocated = relocations.within(section);
        }
    }
    Ok(Container {
        architecture: architecture(file.machine, file.words.size == 8),
        is_mach_o: false,
        words: file.words,
        is_relocatable: file.is_relocatable,
        maps: maps.into_iter().map(|(_, map)| map).collect(),
        index: indexes.pop().map(|(_, index)| index).filter(|_| indexes.is_empty()),
        code: code(&file),
        section_names: if file.is_relocatable { names(&file) } else { Vec::new() },
        slice: 0..data.len(),
    })
}

/// The reason why a file has no map.
fn why_none<Elf: FileHeader<Endian = Endianness>>(file: &ElfSections<'_, Elf>) -> &'static str {
    if file.headers().any(|(_, section, name)| name == MAP && section.file_range(file.endian).is_none()) {
        "its section has no bytes here, as in a separate debug file; open the program itself"
    } else {
        "there is no section xray_instr_map"
    }
}

fn code<Elf: FileHeader<Endian = Endianness>>(file: &ElfSections<'_, Elf>) -> CodeRanges {
    let loaded_code = elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0;
    let executable =
        |section: &Elf::SectionHeader| section.sh_flags(file.endian).0 & loaded_code == loaded_code;
    let with_code = file.headers().filter(|(_, section, _)| executable(section));
    CodeRanges::new(with_code.map(|(index, section, _)| {
        let address = if file.is_relocatable { 0 } else { section.sh_addr(file.endian).into() };
        (
            CodeLocation { section: file.is_relocatable.then_some(index), address },
            section.sh_size(file.endian).into(),
        )
    }))
}

fn names<Elf: FileHeader<Endian = Endianness>>(file: &ElfSections<'_, Elf>) -> Vec<Arc<str>> {
    // Thousands of sections share a few names, which are long in a hostile file.
    let mut shared: FxHashMap<&[u8], Arc<str>> = FxHashMap::default();
    let name = |(_, _, name)| {
        Arc::clone(shared.entry(name).or_insert_with(|| Arc::from(String::from_utf8_lossy(name))))
    };
    file.headers().map(name).collect()
}

/// The sections of an ELF file. Damage elsewhere in the file does not matter.
pub(super) struct ElfSections<'data, Elf: FileHeader<Endian = Endianness>> {
    pub(super) data: &'data [u8],
    pub(super) endian: Endianness,
    pub(super) machine: Machine,
    pub(super) is_mips64el: bool,
    pub(super) is_relocatable: bool,
    pub(super) words: WordFormat,
    pub(super) table: SectionTable<'data, Elf>,
    /// Limit on the remaining bytes of the map: no more in all than the file, because sections of a hostile file may overlap.
    unread_bytes: usize,
}

impl<'data, Elf: FileHeader<Endian = Endianness>> ElfSections<'data, Elf> {
    pub(super) fn read(data: &'data [u8]) -> Result<Self, Error> {
        let header = Elf::parse(data)?;
        let endian = header.endian()?;
        Ok(Self {
            data,
            endian,
            machine: header.e_machine(endian),
            is_mips64el: header.is_mips64el(endian),
            is_relocatable: header.e_type(endian) == elf::ET_REL,
            words: WordFormat { endian, size: if header.is_type_64() { 8 } else { 4 } },
            table: header.sections(endian, data)?,
            unread_bytes: data.len(),
        })
    }

    /// Number, header and name of each section.
    pub(super) fn headers(&self) -> impl Iterator<Item = (u32, &'data Elf::SectionHeader, &'data [u8])> + '_ {
        let name = |section| self.table.section_name(self.endian, section).unwrap_or_default();
        (0..).zip(self.table.iter()).map(move |(index, section)| (index, section, name(section)))
    }

    /// The sections with a name, in their order; bytes after the end of the file are missing.
    pub(super) fn named(
        &mut self,
        section_name: &[u8],
        findings: &mut MapFindings,
    ) -> Vec<(u32, MapSection<'data>)> {
        let headers = self.headers().filter(|(_, _, name)| *name == section_name);
        let headers: Vec<_> = headers.map(|(index, section, _)| (index, section)).collect();
        let mut sections = Vec::new();
        for (index, section) in headers {
            let Some((offset, size)) = section.file_range(self.endian) else { continue };
            let offset = offset.min(self.data.len() as u64);
            let name = String::from_utf8_lossy(section_name);
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            let tail = self.data.get(start..).unwrap_or_default();
            let len = tail.len().min(usize::try_from(size).unwrap_or(usize::MAX));
            if (len as u64) < size {
                findings.at(BEYOND_FILE, offset, || {
                    format!("{name} has {size} bytes, and the file has {len} of them")
                });
            }
            if len > self.unread_bytes {
                findings.at(OVERLAPPING, offset, || {
                    format!("sections {name} have more bytes than the file; section {index} and later ones are left out")
                });
                break;
            }
            self.unread_bytes = self.unread_bytes.saturating_sub(len);
            let address = if self.is_relocatable { 0 } else { section.sh_addr(self.endian).into() };
            sections.push((index, MapSection::new(address, offset, tail.get(..len).unwrap_or(tail))));
        }
        sections
    }

    /// A symbol table, empty where there is none that can be read.
    pub(super) fn symbols(&self, kind: elf::SectionType) -> SymbolTable<'data, Elf> {
        self.table.symbols(self.endian, self.data, kind).unwrap_or_default()
    }
}

/// Targets of relocations, by offset of the field; `None` where one cannot be resolved.
type FieldTargets = FxHashMap<u64, Option<CodeLocation>>;

/// The relocations of an object file, by the section they apply to.
pub(super) struct SectionRelocations<'a, 'data, Elf: FileHeader<Endian = Endianness>> {
    file: &'a ElfSections<'data, Elf>,
    symbols: SymbolTable<'data, Elf>,
    sections: FxHashMap<usize, Vec<&'data Elf::SectionHeader>>,
    /// Limit on the relocations read in all: no more than the file has bytes, because sections of a hostile file may overlap.
    left: usize,
}

/// The two labels of a distance.
#[derive(Default)]
struct LabelDistance {
    to: Option<CodeLocation>,
    from: Option<CodeLocation>,
}

impl<'a, 'data, Elf: FileHeader<Endian = Endianness>> SectionRelocations<'a, 'data, Elf> {
    pub(super) fn read(file: &'a ElfSections<'data, Elf>) -> Self {
        let mut sections: FxHashMap<usize, Vec<_>> = FxHashMap::default();
        for section in file.table.iter().filter(|section| is_relocations(section.sh_type(file.endian))) {
            sections.entry(section.info_link(file.endian).0).or_default().push(section);
        }
        Self { file, symbols: file.symbols(elf::SHT_SYMTAB), sections, left: file.data.len() }
    }

    /// The targets of the fields of a section, which has these bytes.
    pub(super) fn of(&mut self, index: u32, bytes: &[u8]) -> FieldTargets {
        let mut fields = FieldTargets::default();
        let mut distances: FxHashMap<u64, LabelDistance> = FxHashMap::default();
        for section in self.sections.get(&(index as usize)).into_iter().flatten() {
            let Some(relocations) = RelocationEntries::read(self.file, section) else { continue };
            for relocation in relocations.entries.take(self.left) {
                self.left = self.left.saturating_sub(1);
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

    /// The target of a distance that is relative to the field at an offset, or to a label near it.
    fn end(&self, offset: u64, distance: &LabelDistance) -> Option<CodeLocation> {
        let (to, from) = (distance.to?, distance.from?);
        let address = to.address.wrapping_sub(from.address).wrapping_add(offset);
        Some(CodeLocation { address: self.file.words.wrap(address), ..to })
    }

    fn target(&self, symbol: Option<SymbolIndex>, addend: u64) -> Option<CodeLocation> {
        let index = symbol?;
        let symbol = self.symbols.symbol(index).ok()?;
        let section = self.symbols.symbol_section(self.file.endian, symbol, index).ok()??;
        let value: u64 = symbol.st_value(self.file.endian).into();
        let address = self.file.words.wrap(value.wrapping_add(addend));
        Some(CodeLocation { section: Some(u32::try_from(section.0).ok()?), address })
    }
}

/// The relocations of a linked file that its loader applies to some sections, sorted by address.
///
/// Only those with an addend of their own change a field: without one (REL, RELR) the field has the link-time address.
pub(super) struct DynamicRelocations(Vec<(u64, Option<CodeLocation>)>);

impl DynamicRelocations {
    pub(super) fn read<'a, 'data: 'a, Elf: FileHeader<Endian = Endianness>>(
        file: &ElfSections<'data, Elf>,
        sections: impl Iterator<Item = &'a MapSection<'data>> + Clone,
    ) -> Self {
        let start = sections.clone().map(|section| section.address).min().unwrap_or(0);
        let end = sections.map(MapSection::end).max().unwrap_or(0);
        let symbols = file.symbols(elf::SHT_DYNSYM);
        let mut left = file.data.len();
        let mut found = Vec::new();
        // Linkers can keep the relocations they applied, in sections that are not loaded.
        let loaded = |section: &&Elf::SectionHeader| section.sh_flags(file.endian).0 & elf::SHF_ALLOC.0 != 0;
        for section in file.table.iter().filter(loaded) {
            let Some(relocations) = RelocationEntries::read(file, section) else { continue };
            for relocation in relocations.entries.take(left) {
                left = left.saturating_sub(1);
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

    /// The targets of the fields of a section.
    pub(super) fn within(&self, section: &MapSection<'_>) -> FieldTargets {
        let first = self.0.partition_point(|(address, _)| *address < section.address);
        let inside = self.0.iter().skip(first).take_while(|(address, _)| *address < section.end());
        inside.map(|(address, target)| (address.saturating_sub(section.address), *target)).collect()
    }
}

/// The value of a field: unchanged (`None`), unknown (`Some(None)`), or an address.
fn target<Elf: FileHeader<Endian = Endianness>>(
    file: &ElfSections<'_, Elf>,
    symbols: &SymbolTable<'_, Elf>,
    relocation: &Crel,
    kind: RelocationKind,
    has_addend: bool,
) -> Option<Option<CodeLocation>> {
    let base = match (kind, relocation.symbol()) {
        (RelocationKind::Relative, _) | (RelocationKind::Absolute, None) => has_addend.then_some(0)?,
        (RelocationKind::Absolute, Some(index)) => {
            let symbol = symbols.symbol(index).ok().filter(|symbol| !symbol.is_undefined(file.endian));
            let Some(symbol) = symbol else { return Some(None) };
            symbol.st_value(file.endian).into()
        }
        _ => return None,
    };
    // Without an addend, the field of a symbol contains 0: compilers refer to the start of functions.
    let address = file.words.wrap(base.wrapping_add(relocation.r_addend as u64));
    Some(Some(CodeLocation { section: None, address }))
}

/// The entries of a section of relocations.
struct RelocationEntries<'data> {
    entries: Box<dyn Iterator<Item = Crel> + 'data>,
    /// Whether addends are in the relocations; else they are in the fields.
    has_addends: bool,
}

impl<'data> RelocationEntries<'data> {
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

/// Little-endian 64-bit MIPS has the symbol in the lower half, and the three types from the last byte backwards.
fn from_mips64el(r_offset: u64, info: u64) -> Crel {
    let r_type = RelocationType(((info >> 32) as u32).swap_bytes());
    Crel { r_offset, r_sym: info as u32, r_type, r_addend: 0 }
}

fn is_relocations(kind: elf::SectionType) -> bool {
    matches!(kind, elf::SHT_REL | elf::SHT_RELA | elf::SHT_CREL)
}

/// How a relocation changes a field that contains an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelocationKind {
    /// Adds the load address of the program: at link time, the addend alone.
    Relative,
    /// Address of a symbol.
    Absolute,
    /// Distance of a symbol from the field.
    PcRelative,
    /// Adds the address of a symbol; with the next one, a distance.
    Add,
    /// Subtracts the address of a symbol.
    Subtract,
}

/// Relocations that `object` does not define.
const R_MIPS_PC32: RelocationType = RelocationType(248);
const R_HEX_32_PCREL: RelocationType = RelocationType(31);
const R_HEX_RELATIVE: RelocationType = RelocationType(35);

/// The kind of a relocation, for the machines that XRay supports; `None` for kinds that maps do not use.
pub(super) fn relocation_kind(machine: Machine, r_type: RelocationType) -> Option<RelocationKind> {
    use RelocationKind as Kind;
    let kind = match machine {
        elf::EM_X86_64 => match r_type {
            elf::R_X86_64_RELATIVE | elf::R_X86_64_RELATIVE64 => Kind::Relative,
            elf::R_X86_64_64 | elf::R_X86_64_32 => Kind::Absolute,
            elf::R_X86_64_PC64 | elf::R_X86_64_PC32 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_386 => match r_type {
            elf::R_386_RELATIVE => Kind::Relative,
            elf::R_386_32 => Kind::Absolute,
            elf::R_386_PC32 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_AARCH64 => match r_type {
            elf::R_AARCH64_RELATIVE | elf::R_AARCH64_P32_RELATIVE => Kind::Relative,
            elf::R_AARCH64_ABS64 | elf::R_AARCH64_P32_ABS32 => Kind::Absolute,
            elf::R_AARCH64_PREL64 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_ARM => match r_type {
            elf::R_ARM_RELATIVE => Kind::Relative,
            elf::R_ARM_ABS32 => Kind::Absolute,
            elf::R_ARM_REL32 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_PPC64 => match r_type {
            elf::R_PPC64_RELATIVE => Kind::Relative,
            elf::R_PPC64_ADDR64 => Kind::Absolute,
            elf::R_PPC64_REL64 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_RISCV => match r_type {
            elf::R_RISCV_RELATIVE => Kind::Relative,
            elf::R_RISCV_32 | elf::R_RISCV_64 => Kind::Absolute,
            elf::R_RISCV_32_PCREL => Kind::PcRelative,
            elf::R_RISCV_ADD32 | elf::R_RISCV_ADD64 => Kind::Add,
            elf::R_RISCV_SUB32 | elf::R_RISCV_SUB64 => Kind::Subtract,
            _ => return None,
        },
        elf::EM_LOONGARCH => match r_type {
            elf::R_LARCH_RELATIVE => Kind::Relative,
            elf::R_LARCH_32 | elf::R_LARCH_64 => Kind::Absolute,
            elf::R_LARCH_32_PCREL | elf::R_LARCH_64_PCREL => Kind::PcRelative,
            elf::R_LARCH_ADD32 | elf::R_LARCH_ADD64 => Kind::Add,
            elf::R_LARCH_SUB32 | elf::R_LARCH_SUB64 => Kind::Subtract,
            _ => return None,
        },
        elf::EM_S390 => match r_type {
            elf::R_390_RELATIVE => Kind::Relative,
            elf::R_390_64 => Kind::Absolute,
            elf::R_390_PC64 => Kind::PcRelative,
            _ => return None,
        },
        // 64-bit ones are up to three in one, the first in the lowest byte.
        elf::EM_MIPS => match RelocationType(r_type.0 & 0xff) {
            // A relative one where it has no symbol.
            elf::R_MIPS_REL32 | elf::R_MIPS_32 | elf::R_MIPS_64 => Kind::Absolute,
            R_MIPS_PC32 => Kind::PcRelative,
            _ => return None,
        },
        elf::EM_HEXAGON => match r_type {
            R_HEX_RELATIVE => Kind::Relative,
            elf::R_HEX_32 => Kind::Absolute,
            R_HEX_32_PCREL => Kind::PcRelative,
            _ => return None,
        },
        _ => return None,
    };
    Some(kind)
}

/// Name of a machine.
pub(super) fn architecture(machine: Machine, is_64: bool) -> &'static str {
    match (machine, is_64) {
        (elf::EM_386, _) => "i386",
        (elf::EM_X86_64, _) => "x86_64",
        (elf::EM_ARM, _) => "arm",
        (elf::EM_AARCH64, _) => "aarch64",
        (elf::EM_PPC64, _) => "ppc64",
        (elf::EM_RISCV, true) => "riscv64",
        (elf::EM_RISCV, false) => "riscv32",
        (elf::EM_LOONGARCH, true) => "loongarch64",
        (elf::EM_LOONGARCH, false) => "loongarch32",
        (elf::EM_S390, _) => "s390x",
        (elf::EM_MIPS, true) => "mips64",
        (elf::EM_MIPS, false) => "mips",
        (elf::EM_HEXAGON, _) => "hexagon",
        _ => "unknown",
    }
}
