//! The parts of a 64-bit ELF file that are needed to find a section. SFrame is defined for 64-bit machines only.

use std::ops::Range;
use std::sync::Arc;

use perfuse_wire::{Cursor, Endian, ErrorKind, ParseError, layout};

layout! {
    /// ELF header after `e_ident`.
    Elf64Header = "Elf64_Ehdr", section "ELF" {
        /// 1 object file, 2 executable, 3 shared object.
        e_type: u16,
        /// Machine.
        e_machine: u16,
        /// 1.
        e_version: u32,
        /// Entry point.
        e_entry: u64,
        /// Offset of the program headers.
        e_phoff: u64,
        /// Offset of the section headers; 0 where they were stripped.
        e_shoff: u64,
        /// Flags.
        e_flags: u32,
        /// Size of this header.
        e_ehsize: u16,
        /// Size of a program header.
        e_phentsize: u16,
        /// Number of program headers.
        e_phnum: u16,
        /// Size of a section header.
        e_shentsize: u16,
        /// Number of section headers; 0 where the first section header contains it.
        e_shnum: u16,
        /// Index of the section with the section names.
        e_shstrndx: u16,
    }

    /// A section header.
    Elf64SectionHeader = "Elf64_Shdr", section "ELF" {
        /// Offset of its name.
        sh_name: u32,
        /// Type.
        sh_type: u32,
        /// Flags.
        sh_flags: u64,
        /// Address in memory.
        sh_addr: u64,
        /// Offset in the file.
        sh_offset: u64,
        /// Size in bytes.
        sh_size: u64,
        /// Index of a related section.
        sh_link: u32,
        /// Index of the section that relocations apply to.
        sh_info: u32,
        /// Alignment.
        sh_addralign: u64,
        /// Size of an entry.
        sh_entsize: u64,
    }

    /// A program header.
    Elf64ProgramHeader = "Elf64_Phdr", section "ELF" {
        /// Type.
        p_type: u32,
        /// Flags.
        p_flags: u32,
        /// Offset in the file.
        p_offset: u64,
        /// Address in memory.
        p_vaddr: u64,
        /// Physical address.
        p_paddr: u64,
        /// Size in the file.
        p_filesz: u64,
        /// Size in memory.
        p_memsz: u64,
        /// Alignment.
        p_align: u64,
    }
}

/// `e_type` of an object file.
pub const ET_REL: u16 = 1;
/// `e_type` of a program with fixed addresses.
pub const ET_EXEC: u16 = 2;
/// `sh_type` of a symbol table.
pub const SHT_SYMTAB: u32 = 2;
/// `sh_type` of the symbol table for dynamic linking.
pub const SHT_DYNSYM: u32 = 11;
/// `sh_type` of notes.
pub const SHT_NOTE: u32 = 7;
/// `sh_type` of a section without bytes in the file.
pub const SHT_NOBITS: u32 = 8;
/// `sh_type` of relocations with addends.
pub const SHT_RELA: u32 = 4;
/// `sh_type` of a section whose content the program defines.
pub const SHT_PROGBITS: u32 = 1;
/// `sh_flags`: loaded at run time.
pub const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
/// `p_type` of a segment that is loaded.
pub const PT_LOAD: u32 = 1;
/// `p_type` of the dynamic section.
pub const PT_DYNAMIC: u32 = 2;
/// `p_type` of the path of the dynamic linker.
pub const PT_INTERP: u32 = 3;
/// `p_type` of notes.
pub const PT_NOTE: u32 = 4;
/// `p_type` of the note with the properties of the program.
pub const PT_GNU_PROPERTY: u32 = 0x6474_e553;
/// `p_type` of the program headers themselves.
pub const PT_PHDR: u32 = 6;
/// `p_flags`: readable.
pub const PF_R: u32 = 4;
const PF_X: u32 = 1;
/// Size of `e_ident`, which precedes the header.
pub const IDENT_BYTES: usize = 16;

/// The headers of an ELF file.
#[derive(Debug)]
pub struct Elf<'a> {
    /// The bytes of the file.
    pub data: &'a [u8],
    /// Byte order.
    pub endian: Endian,
    /// The header.
    pub header: Elf64Header,
    /// Section headers; empty where they are stripped or damaged.
    pub sections: Vec<Elf64SectionHeader>,
    /// Program headers.
    pub segments: Vec<Elf64ProgramHeader>,
}

impl<'a> Elf<'a> {
    /// Whether these first bytes are those of an ELF file.
    #[must_use]
    pub fn sniff(head: &[u8]) -> bool {
        head.starts_with(b"\x7fELF")
    }

    /// Reads the headers. Tables that go past the end of the file are clipped.
    ///
    /// # Errors
    /// When it is not a 64-bit ELF file, or ends within its header.
    pub fn parse(data: &'a [u8]) -> Result<Self, ParseError> {
        let need = (IDENT_BYTES as u64).saturating_add(Elf64Header::SIZE);
        if (data.len() as u64) < need {
            let kind = ErrorKind::Short { need, have: data.len() as u64 };
            return Err(ParseError::new(kind, 0, "e_ident"));
        }
        let endian = match data.get(4..6) {
            Some(&[2, 1]) => Endian::Little,
            Some(&[2, 2]) => Endian::Big,
            Some(&[class, _]) if class != 2 => {
                let kind =
                    ErrorKind::Invalid { value: class.into(), expected: "2: SFrame is for 64-bit ELF files" };
                return Err(ParseError::new(kind, 4, "ei_class"));
            }
            Some(&[_, order]) => {
                let kind = ErrorKind::Invalid { value: order.into(), expected: "1 or 2" };
                return Err(ParseError::new(kind, 5, "ei_data"));
            }
            _ => return Err(ParseError::new(ErrorKind::Short { need, have: 0 }, 0, "e_ident")),
        };
        let body = data.get(IDENT_BYTES..).unwrap_or_default();
        let header = Elf64Header::read(&mut Cursor::new(body, IDENT_BYTES as u64, endian))?;
        let mut elf = Self { data, endian, header, sections: Vec::new(), segments: Vec::new() };
        elf.segments =
            elf.table(header.e_phoff, header.e_phnum.into(), header.e_phentsize, Elf64ProgramHeader::read);
        let first = elf.table(header.e_shoff, 1, header.e_shentsize, Elf64SectionHeader::read);
        let num_sections = match (header.e_shnum, first.first()) {
            (0, Some(first)) => first.sh_size,
            (num, _) => num.into(),
        };
        elf.sections = elf.table(header.e_shoff, num_sections, header.e_shentsize, Elf64SectionHeader::read);
        Ok(elf)
    }

    /// Reads a table of headers, clipped at the end of the file.
    fn table<T>(
        &self,
        offset: u64,
        num: u64,
        entry_bytes: u16,
        read: fn(&mut Cursor<'_>) -> Result<T, ParseError>,
    ) -> Vec<T> {
        let start = usize::try_from(offset).ok().filter(|_| offset != 0 && entry_bytes != 0);
        let bytes = start.and_then(|start| self.data.get(start..)).unwrap_or_default();
        let entries = bytes.chunks_exact(usize::from(entry_bytes).max(1));
        let num = usize::try_from(num).unwrap_or(usize::MAX);
        entries.take(num).map_while(|entry| read(&mut Cursor::new(entry, 0, self.endian)).ok()).collect()
    }

    /// Whether a section has this name.
    #[must_use]
    pub fn is_named(&self, section: &Elf64SectionHeader, name: &[u8]) -> bool {
        let names = self.sections.get(usize::from(self.header.e_shstrndx));
        let names = names.and_then(|names| self.bytes(names)).unwrap_or_default();
        let rest = names.get(section.sh_name as usize..).unwrap_or_default();
        rest.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0))
    }

    /// Range of a section header in the file.
    #[must_use]
    pub fn section_header(&self, index: usize) -> Option<Range<usize>> {
        entry(self.header.e_shoff, index, self.header.e_shentsize, Elf64SectionHeader::SIZE)
    }

    /// Range of a program header in the file.
    #[must_use]
    pub fn program_header(&self, index: usize) -> Option<Range<usize>> {
        entry(self.header.e_phoff, index, self.header.e_phentsize, Elf64ProgramHeader::SIZE)
    }

    /// The bytes of a section, clipped at the end of the file; `None` for SHT_NOBITS.
    #[must_use]
    pub fn bytes(&self, section: &Elf64SectionHeader) -> Option<&'a [u8]> {
        if section.sh_type == SHT_NOBITS {
            return None;
        }
        self.part(section.sh_offset, section.sh_size)
    }

    /// A range of the file, clipped at its end.
    #[must_use]
    pub fn part(&self, offset: u64, size: u64) -> Option<&'a [u8]> {
        let rest = self.data.get(usize::try_from(offset).ok()?..)?;
        Some(rest.get(..usize::try_from(size).ok()?).unwrap_or(rest))
    }

    /// Where the file ends according to its headers.
    #[must_use]
    pub fn end(&self) -> u64 {
        let header = &self.header;
        let table = u64::from(header.e_shnum).saturating_mul(header.e_shentsize.into());
        let sections = self.sections.iter().filter(|section| section.sh_type != SHT_NOBITS);
        let ends = sections.map(|section| section.sh_offset.saturating_add(section.sh_size));
        ends.chain([header.e_shoff.saturating_add(table)]).max().unwrap_or(0)
    }

    /// Whether it is a relocatable object file.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.header.e_type == ET_REL
    }

    /// Address ranges of code, sorted: of executable sections, or of executable segments where there are none.
    #[must_use]
    pub fn code(&self) -> Arc<[Range<u64>]> {
        let sections = self.sections.iter().filter(|s| s.sh_flags & SHF_EXECINSTR != 0 && s.sh_size != 0);
        let mut code: Vec<_> = sections.map(|s| s.sh_addr..s.sh_addr.saturating_add(s.sh_size)).collect();
        if code.is_empty() {
            let segments = self.segments.iter().filter(|s| s.p_type == PT_LOAD && s.p_flags & PF_X != 0);
            code = segments.map(|s| s.p_vaddr..s.p_vaddr.saturating_add(s.p_memsz)).collect();
        }
        code.sort_unstable_by_key(|range| range.start);
        code.into()
    }
}

/// The range of an entry of a table.
fn entry(table: u64, index: usize, stride: u16, size: u64) -> Option<Range<usize>> {
    let at = usize::try_from(table).ok()?.checked_add(index.checked_mul(stride.into())?)?;
    Some(at..at.checked_add(usize::try_from(size).ok()?)?)
}
