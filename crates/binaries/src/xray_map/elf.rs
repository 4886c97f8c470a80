use std::sync::Arc;

use object::Endianness;
use object::elf;
use object::read::elf::{FileHeader, SectionHeader};
use rustc_hash::FxHashMap;

use super::container::{Code, Container};
use super::elf_relocations::{DynamicRelocations, SectionRelocations};
use super::elf_sections::ElfSections;
use super::error::Error;
use super::findings::Findings;
use super::map::Place;
use super::relocation_kind::architecture;

const MAP: &[u8] = b"xray_instr_map";
const INDEX: &[u8] = b"xray_fn_idx";

/// Finds the map in an ELF file.
///
/// # Errors
/// When there is no table of sections, or no section of the map in it.
pub(super) fn container<'data, Elf: FileHeader<Endian = Endianness>>(
    data: &'data [u8],
    findings: &mut Findings,
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

fn why_none<Elf: FileHeader<Endian = Endianness>>(file: &ElfSections<'_, Elf>) -> &'static str {
    if file.headers().any(|(_, section, name)| name == MAP && section.file_range(file.endian).is_none()) {
        "its section has no bytes here, as in a separate debug file; open the program itself"
    } else {
        "there is no section xray_instr_map"
    }
}

fn code<Elf: FileHeader<Endian = Endianness>>(file: &ElfSections<'_, Elf>) -> Code {
    let wanted = elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0;
    let executable = |section: &Elf::SectionHeader| section.sh_flags(file.endian).0 & wanted == wanted;
    let with_code = file.headers().filter(|(_, section, _)| executable(section));
    Code::new(with_code.map(|(index, section, _)| {
        let address = if file.is_relocatable { 0 } else { section.sh_addr(file.endian).into() };
        (
            Place { section: file.is_relocatable.then_some(index), address },
            section.sh_size(file.endian).into(),
        )
    }))
}

fn names<Elf: FileHeader<Endian = Endianness>>(file: &ElfSections<'_, Elf>) -> Vec<Arc<str>> {
    // Thousands of sections have one of a few names, which a hostile file makes long.
    let mut known: FxHashMap<&[u8], Arc<str>> = FxHashMap::default();
    let name = |(_, _, name)| {
        Arc::clone(known.entry(name).or_insert_with(|| Arc::from(String::from_utf8_lossy(name))))
    };
    file.headers().map(name).collect()
}
