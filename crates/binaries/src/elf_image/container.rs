//! The ELF container: file header, program headers, section headers, build id note.

use object::elf;

use super::image::{Error, ImageSpec};
use super::regions::{AddressRegion, TEXT_START};
use super::section::{Encoding, SectionBuffer};
use super::strings::StringSection;

/// Sections in the order of their headers; readers find them by name, symbols by this number.
#[repr(u16)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SectionIndex {
    Text = 2,
    StringTable = 4,
    SectionNames = 5,
    /// Present only where some code has no bytes.
    AbsentText = 12,
}

/// Header of a section.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub name: &'static str,
    pub kind: elf::SectionType,
    pub flags: elf::SectionFlags,
    pub offset: u64,
    pub size: u64,
}

const LEN_BUILD_ID: usize = 20;
pub(super) const LEN_NOTE: u64 = 16 + LEN_BUILD_ID as u64;

fn len_file_header(encoding: Encoding) -> u16 {
    if encoding.is_64 { 64 } else { 52 }
}

fn len_program_header(encoding: Encoding) -> u16 {
    if encoding.is_64 { 56 } else { 32 }
}

fn len_section_header(encoding: Encoding) -> u16 {
    if encoding.is_64 { 64 } else { 40 }
}

/// Where the build id note is: after room for three program headers.
pub(super) fn note_offset(encoding: Encoding) -> u64 {
    if encoding.is_64 { 64 + 3 * 56 } else { 52 + 3 * 32 }
}

/// The bytes of the file before `.text`, padded up to it.
pub(super) fn head(
    spec: &ImageSpec,
    encoding: Encoding,
    [text, absent]: [AddressRegion; 2],
    build_id: &[u8; LEN_BUILD_ID],
    section_headers: (u64, u16),
) -> SectionBuffer {
    let num_program_headers = if absent.is_empty() { 2 } else { 3 };
    let mut out = SectionBuffer::new(encoding);
    file_header(spec, num_program_headers, section_headers, &mut out);
    let note = note_offset(encoding);
    program_header(elf::PT_LOAD, elf::PF_R | elf::PF_X, 0, [text.end, text.end], 0x1000, &mut out);
    program_header(elf::PT_NOTE, elf::PF_R, note, [LEN_NOTE, LEN_NOTE], 4, &mut out);
    if !absent.is_empty() {
        program_header(
            elf::PT_LOAD,
            elf::PF_R | elf::PF_X,
            absent.start,
            [0, absent.size()],
            0x1000,
            &mut out,
        );
    }
    out.bytes.resize(note as usize, 0);
    out.u32(4);
    out.u32(LEN_BUILD_ID as u32);
    out.u32(elf::NT_GNU_BUILD_ID.0);
    out.append(b"GNU\0");
    out.append(build_id);
    out.bytes.resize(TEXT_START as usize, 0);
    out
}

fn file_header(
    spec: &ImageSpec,
    num_program_headers: u16,
    (offset, num): (u64, u16),
    out: &mut SectionBuffer,
) {
    let encoding = out.encoding;
    out.append(&elf::ELFMAG);
    out.u8(if encoding.is_64 { elf::ELFCLASS64.0 } else { elf::ELFCLASS32.0 });
    out.u8(if encoding.big_endian { elf::ELFDATA2MSB.0 } else { elf::ELFDATA2LSB.0 });
    out.u8(elf::EV_CURRENT.0);
    out.append(&[0; 9]);
    out.u16(elf::ET_DYN.0);
    out.u16(spec.machine);
    out.u32(elf::EV_CURRENT.0.into());
    out.word(0);
    out.word(len_file_header(encoding).into());
    out.word(offset);
    out.u32(machine_flags(elf::Machine(spec.machine)));
    out.u16(len_file_header(encoding));
    out.u16(len_program_header(encoding));
    out.u16(num_program_headers);
    out.u16(len_section_header(encoding));
    out.u16(num);
    out.u16(SectionIndex::SectionNames as u16);
}

/// ELF `e_flags` that readers expect for a machine.
fn machine_flags(machine: elf::Machine) -> u32 {
    match machine {
        elf::EM_ARM => elf::EF_ARM_EABI_VER5.0,
        // ABI version 2: symbols are code, not function descriptors.
        elf::EM_PPC64 => 2,
        elf::EM_RISCV => (elf::EF_RISCV_RVC | elf::EF_RISCV_FLOAT_ABI_DOUBLE).0,
        elf::EM_LOONGARCH => (elf::EF_LARCH_ABI_DOUBLE_FLOAT | elf::EF_LARCH_OBJABI_V1).0,
        _ => 0,
    }
}

/// A segment whose address is its file offset: perf uses one as the other.
fn program_header(
    kind: elf::ProgramType,
    flags: elf::ProgramFlags,
    offset: u64,
    [len_file, len_memory]: [u64; 2],
    align: u64,
    out: &mut SectionBuffer,
) {
    out.u32(kind.0);
    if out.encoding.is_64 {
        out.u32(flags.0);
    }
    for word in [offset, offset, offset, len_file, len_memory] {
        out.word(word);
    }
    if !out.encoding.is_64 {
        out.u32(flags.0);
    }
    out.word(align);
}

/// The section header table, and the section of names it refers to.
pub(super) fn section_headers(headers: &[Header], encoding: Encoding) -> SectionBuffer {
    let mut out = SectionBuffer::new(encoding);
    out.bytes.resize(len_section_header(encoding).into(), 0);
    let mut name = 1;
    for header in headers {
        section_header(header, name, &mut out);
        name = name.saturating_add(header.name.len() as u32).saturating_add(1);
    }
    out
}

/// The section `.shstrtab` for these names.
pub(super) fn section_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let mut bytes = vec![0];
    for name in names {
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
    }
    bytes
}

fn section_header(header: &Header, name: u32, out: &mut SectionBuffer) {
    let len_symbol = len_symbol(out.encoding) as u64;
    let (link, info, align, len_entry) = match header.kind {
        // `sh_info`: index of the first symbol that is not local. All are local, so it is their number.
        elf::SHT_SYMTAB => (
            SectionIndex::StringTable as u32,
            header.size.checked_div(len_symbol).unwrap_or(0) as u32,
            8,
            len_symbol,
        ),
        elf::SHT_NOTE => (0, 0, 4, 0),
        _ if header.flags.contains(elf::SHF_EXECINSTR) => (0, 0, 16, 0),
        _ => (0, 0, 1, u64::from(header.flags.contains(elf::SHF_STRINGS))),
    };
    let address = if header.flags.contains(elf::SHF_ALLOC) { header.offset } else { 0 };
    out.u32(name);
    out.u32(header.kind.0);
    for word in [header.flags.0, address, header.offset, header.size] {
        out.word(word);
    }
    out.u32(link);
    out.u32(info);
    out.word(align);
    out.word(len_entry);
}

/// The symbol table and its strings. Symbols are local: code of several tiers shares a name.
#[derive(Debug)]
pub(super) struct SymbolSection {
    pub table: SectionBuffer,
    pub strings: StringSection,
}

impl SymbolSection {
    pub fn new(encoding: Encoding) -> Self {
        let mut table = SectionBuffer::new(encoding);
        table.bytes.resize(len_symbol(encoding), 0);
        Self { table, strings: StringSection::new(".strtab") }
    }

    pub fn add(&mut self, name: &str, address: u64, size: u64, section: SectionIndex) -> Result<(), Error> {
        let name = self.strings.intern(name)?;
        let info = elf::STB_LOCAL.0 << 4 | elf::STT_FUNC.0;
        let table = &mut self.table;
        table.u32(name);
        if table.encoding.is_64 {
            table.append(&[info, 0]);
            table.u16(section as u16);
            table.u64(address);
            table.u64(size);
        } else {
            table.word(address);
            table.word(size);
            table.append(&[info, 0]);
            table.u16(section as u16);
        }
        Ok(())
    }
}

pub(super) fn len_symbol(encoding: Encoding) -> usize {
    if encoding.is_64 { 24 } else { 16 }
}
