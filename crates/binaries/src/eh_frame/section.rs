use std::borrow::Cow;

use gimli::RunTimeEndian;
use object::{Architecture, Object, ObjectKind, ObjectSection, SectionKind};

use super::error::Error;
use super::object_file::SectionBases;
use super::reader::{Bytes, Unread, read};
use super::registers::Registers;
use super::table::UnwindTable;

/// A section of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// First address; in an object file where it was put.
    pub start: u64,
    /// Address behind its last byte.
    pub end: u64,
    /// Its name.
    pub name: String,
}

/// The `.eh_frame` of an ELF file, read.
#[derive(Debug)]
pub struct EhFrame {
    /// Machine, as `uname -m` spells it.
    pub arch: &'static str,
    /// Functions, sorted, with their rows.
    pub table: UnwindTable,
    /// What could not be read.
    pub unread: Vec<Unread>,
    /// Where sections of an object file were put; `None` where the file is linked, and addresses are its own.
    pub bases: Option<SectionBases>,
    /// Size in bytes of `.eh_frame`, and of the index to it.
    pub size_bytes: u64,
    /// Offset of the section in the file.
    pub file_offset: u64,
    /// Sections of code, by address.
    pub code: Vec<Code>,
}

impl EhFrame {
    /// Reads that of a program, a library or an object file.
    ///
    /// # Errors
    /// When there is none, or the machine is another than x86_64, aarch64 and s390x.
    pub fn of_elf(file: &[u8]) -> Result<Self, Error> {
        let elf = object::File::parse(file).map_err(|error| Error::NotElf(error.to_string()))?;
        let registers = Registers::of(elf.architecture()).filter(|_| elf.is_64()).ok_or(Error::Machine)?;
        let sections = || elf.sections().filter(|section| section.name_bytes() == Ok(b".eh_frame"));
        let section = sections().find(|section| section.size() != 0).ok_or(Error::NoSection)?;
        let not_read = |error: object::Error| Error::NotElf(error.to_string());
        let mut data = Cow::Borrowed(section.data().map_err(not_read)?);
        let bases = (elf.kind() == ObjectKind::Relocatable).then(|| SectionBases::of(&elf));
        let code = code(&elf, bases.as_ref());
        let address = bases.as_ref().map_or(section.address(), SectionBases::end);
        if let Some(bases) = &bases {
            bases.relocate(&elf, &section, address, data.to_mut());
        }
        let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let (table, unread) = read(Bytes { data: &data, address, endian, registers });
        let index = elf.section_by_name(".eh_frame_hdr").map_or(0, |index| index.size());
        let arch = match (elf.architecture(), elf.is_little_endian()) {
            (Architecture::X86_64, _) => "x86_64",
            (Architecture::Aarch64, true) => "aarch64",
            (Architecture::Aarch64, false) => "aarch64_be",
            _ => "s390x",
        };
        Ok(Self {
            arch,
            table,
            unread,
            bases,
            size_bytes: section.size().saturating_add(index),
            file_offset: section.file_range().map_or(0, |(offset, _)| offset),
            code,
        })
    }

    /// The section of code an address is in.
    #[must_use]
    pub fn code_at(&self, address: u64) -> Option<&Code> {
        let behind = self.code.partition_point(|code| code.start <= address);
        self.code[..behind].last().filter(|code| address < code.end)
    }
}

fn code(elf: &object::File<'_>, bases: Option<&SectionBases>) -> Vec<Code> {
    let sections =
        elf.sections().filter(|section| section.kind() == SectionKind::Text && section.size() != 0);
    let mut code: Vec<Code> = sections
        .filter_map(|section| {
            let start = bases.map_or(Some(section.address()), |bases| bases.base(section.index().0))?;
            let name = String::from_utf8_lossy(section.name_bytes().unwrap_or_default()).into_owned();
            Some(Code { start, end: start.checked_add(section.size())?, name })
        })
        .collect();
    code.sort_by_key(|code| code.start);
    code
}
