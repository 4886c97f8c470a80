use object::Endianness;
use object::elf::{self, Machine};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, SymbolTable};

use super::container::Section;
use super::error::Error;
use super::findings::{BEYOND_FILE, Findings, OVERLAPPING};
use super::words::Words;

/// An ELF file as far as its sections go. What is damaged elsewhere in it does not matter.
pub(super) struct ElfSections<'data, Elf: FileHeader<Endian = Endianness>> {
    pub(super) data: &'data [u8],
    pub(super) endian: Endianness,
    pub(super) machine: Machine,
    pub(super) is_mips64el: bool,
    pub(super) is_relocatable: bool,
    pub(super) words: Words,
    pub(super) table: SectionTable<'data, Elf>,
    /// Bytes that sections of the map may still have in all: no more than the file, which sections of a hostile one share.
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
            words: Words { endian, size: if header.is_type_64() { 8 } else { 4 } },
            table: header.sections(endian, data)?,
            unread_bytes: data.len(),
        })
    }

    /// Number, header and name of each section.
    pub(super) fn headers(&self) -> impl Iterator<Item = (u32, &'data Elf::SectionHeader, &'data [u8])> + '_ {
        let name = |section| self.table.section_name(self.endian, section).unwrap_or_default();
        (0..).zip(self.table.iter()).map(move |(index, section)| (index, section, name(section)))
    }

    /// The sections of a name, in their order, as far as the file has them.
    pub(super) fn named(&mut self, wanted: &[u8], findings: &mut Findings) -> Vec<(u32, Section<'data>)> {
        let headers = self.headers().filter(|(_, _, name)| *name == wanted);
        let headers: Vec<_> = headers.map(|(index, section, _)| (index, section)).collect();
        let mut sections = Vec::new();
        for (index, section) in headers {
            let Some((offset, size)) = section.file_range(self.endian) else { continue };
            let offset = offset.min(self.data.len() as u64);
            let name = String::from_utf8_lossy(wanted);
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
            self.unread_bytes -= len;
            let address = if self.is_relocatable { 0 } else { section.sh_addr(self.endian).into() };
            sections.push((index, Section::new(address, offset, &tail[..len])));
        }
        sections
    }

    /// A symbol table, empty where there is none that can be read.
    pub(super) fn symbols(&self, kind: elf::SectionType) -> SymbolTable<'data, Elf> {
        self.table.symbols(self.endian, self.data, kind).unwrap_or_default()
    }
}
