//! `.eh_frame` of ELF files: finds the section, gives the sections of an object file addresses and applies its relocations.

use std::borrow::Cow;
use std::fmt;

use gimli::RunTimeEndian;
use object::{
    Architecture, Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, RelocationKind,
    RelocationTarget, SectionIndex, SectionKind,
};

use super::reader::{SectionBytes, UnreadEntry, read};
use super::rules::DwarfRegisters;
use super::table::UnwindTable;

/// Why a file has no rows of `.eh_frame`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is not an ELF file, or its headers are damaged.
    NotElf(String),
    /// A machine whose registers are not known here.
    Machine,
    /// It has no `.eh_frame`, or an empty one.
    NoSection,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf(why) => write!(f, "not an ELF file: {why}"),
            Self::Machine => f.write_str("a machine other than x86_64, aarch64 and s390x"),
            Self::NoSection => f.write_str("there is no .eh_frame"),
        }
    }
}

impl std::error::Error for Error {}

/// A section of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeSection {
    /// First address; in an object file the one assigned by [`SectionBases`].
    pub start: u64,
    /// Address after its last byte.
    pub end: u64,
    /// Its name.
    pub name: String,
}

/// The decoded `.eh_frame` of an ELF file.
#[derive(Debug)]
pub struct EhFrame {
    /// Machine, as `uname -m` spells it.
    pub arch: &'static str,
    /// Functions, sorted, with their rows.
    pub table: UnwindTable,
    /// Entries that could not be read.
    pub unread: Vec<UnreadEntry>,
    /// Addresses assigned to the sections of an object file; `None` where the file is linked and has addresses of its own.
    pub bases: Option<SectionBases>,
    /// Size in bytes of `.eh_frame` and of its index, `.eh_frame_hdr`.
    pub size_bytes: u64,
    /// Offset of the section in the file.
    pub file_offset: u64,
    /// Sections of code, by address.
    pub code: Vec<CodeSection>,
}

impl EhFrame {
    /// Reads the `.eh_frame` of a program, a library or an object file.
    ///
    /// # Errors
    /// When there is none, or the machine is not x86_64, aarch64 or s390x.
    pub fn of_elf(file: &[u8]) -> Result<Self, Error> {
        let elf = object::File::parse(file).map_err(|error| Error::NotElf(error.to_string()))?;
        let registers =
            DwarfRegisters::of(elf.architecture()).filter(|_| elf.is_64()).ok_or(Error::Machine)?;
        let sections = || elf.sections().filter(|section| section.name_bytes() == Ok(b".eh_frame"));
        let section = sections().find(|section| section.size() != 0).ok_or(Error::NoSection)?;
        let not_read = |error: object::Error| Error::NotElf(error.to_string());
        let mut data = Cow::Borrowed(section.data().map_err(not_read)?);
        let bases = (elf.kind() == ObjectKind::Relocatable).then(|| SectionBases::of(&elf));
        let code = code_sections(&elf, bases.as_ref());
        let address = bases.as_ref().map_or(section.address(), |bases| bases.end);
        if let Some(bases) = &bases {
            bases.relocate(&elf, &section, address, data.to_mut());
        }
        let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let (table, unread) = read(SectionBytes { data: &data, address, endian, registers });
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

    /// The section of code that contains an address.
    #[must_use]
    pub fn code_at(&self, address: u64) -> Option<&CodeSection> {
        let num_started = self.code.partition_point(|code| code.start <= address);
        self.code.get(..num_started)?.last().filter(|code| address < code.end)
    }
}

fn code_sections(elf: &object::File<'_>, bases: Option<&SectionBases>) -> Vec<CodeSection> {
    let sections =
        elf.sections().filter(|section| section.kind() == SectionKind::Text && section.size() != 0);
    let mut code: Vec<CodeSection> = sections
        .filter_map(|section| {
            let start = bases.map_or(Some(section.address()), |bases| bases.base(section.index().0))?;
            let name = String::from_utf8_lossy(section.name_bytes().unwrap_or_default()).into_owned();
            Some(CodeSection { start, end: start.checked_add(section.size())?, name })
        })
        .collect();
    code.sort_by_key(|code| code.start);
    code
}

/// Addresses assigned to the sections of an object file, which all begin at 0: one section of code after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SectionBases {
    /// By section index; `None` for sections that do not contain code.
    bases: Vec<Option<u64>>,
    /// First address after all code; sections that are not code may be put there.
    end: u64,
}

impl SectionBases {
    /// Assigns addresses to the sections of code.
    fn of(file: &object::File<'_>) -> Self {
        let mut assigned = Self::default();
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let index = section.index().0;
            if assigned.bases.len() <= index {
                assigned.bases.resize(index.saturating_add(1), None);
            }
            if let Some(base) = assigned.bases.get_mut(index) {
                *base = Some(assigned.end);
            }
            let end = assigned.end.saturating_add(section.size());
            assigned.end = end.checked_next_multiple_of(64).unwrap_or(u64::MAX);
        }
        assigned
    }

    /// The address assigned to a section; `None` where the section is not code.
    #[must_use]
    pub fn base(&self, section: usize) -> Option<u64> {
        self.bases.get(section).copied().flatten()
    }

    /// Applies relocations to the bytes of a section whose assigned address is `address`.
    fn relocate(
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
