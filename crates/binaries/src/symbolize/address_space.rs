//! Converts offsets in a file to the addresses of its symbol table.

use object::read::elf::{ElfFile, FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, elf};

/// How an offset in a module's file is converted to an address in its symbol table.
#[derive(Debug)]
pub(crate) enum AddressSpace {
    /// A program or library: by its loadable segments.
    Segments(Vec<LoadSegment>),
    /// A kernel module: sections as the kernel lays them out, in an address space assigned by their order.
    Sections(SectionLayout),
    /// Linked for one address and loaded at another (a kernel): the difference is subtracted.
    Slid(u64),
}

/// A segment that is loaded from the file.
#[derive(Debug)]
pub(crate) struct LoadSegment {
    file_offset: u64,
    file_bytes: u64,
    address: u64,
    executable: bool,
}

/// Executable sections of an object file one after the other, as the kernel loads a module's text.
#[derive(Debug, Default)]
pub(crate) struct SectionLayout {
    /// By section index; `None` where the section is not loaded as text.
    starts: Vec<Option<u64>>,
}

/// Mappings start and end at pages of at most this size.
const MAX_PAGE_BYTES: u64 = 64 << 10;

impl AddressSpace {
    /// The address space of a program, library or object file.
    pub(crate) fn of<Elf: FileHeader<Endian = Endianness>>(file: &ElfFile<'_, Elf>) -> Self {
        let endian = file.endian();
        if file.elf_header().e_type(endian) == elf::ET_REL {
            return Self::Sections(SectionLayout::of(file));
        }
        let loads = file.elf_program_headers().iter().filter(|header| header.p_type(endian) == elf::PT_LOAD);
        let segment = |header: &Elf::ProgramHeader| LoadSegment {
            file_offset: header.p_offset(endian).into(),
            file_bytes: header.p_filesz(endian).into(),
            address: header.p_vaddr(endian).into(),
            executable: header.p_flags(endian).0 & elf::PF_X.0 != 0,
        };
        Self::Segments(loads.map(segment).collect())
    }

    /// Address in the symbol table, or `None` where no segment has this offset.
    pub(crate) fn address(&self, position: u64) -> Option<u64> {
        match self {
            Self::Segments(segments) => {
                let exact = |segment: &&LoadSegment| segment.covers(position);
                let page = |segment: &&LoadSegment| segment.pages_cover(position);
                let code = segments.iter().filter(|segment| segment.executable);
                let found = code.clone().find(exact).or_else(|| segments.iter().find(exact));
                let found = found.or_else(|| code.clone().find(page))?;
                Some(position.wrapping_sub(found.file_offset).wrapping_add(found.address))
            }
            Self::Sections(_) => Some(position),
            Self::Slid(by) => Some(position.wrapping_sub(*by)),
        }
    }

    /// Whether positions are addresses in memory rather than offsets in a file.
    pub(crate) fn is_absolute(&self) -> bool {
        matches!(self, Self::Slid(_))
    }

    /// Start of a symbol's section; 0 where symbols have whole addresses.
    pub(crate) fn section_start(&self, section: usize) -> Option<u64> {
        match self {
            Self::Sections(layout) => layout.starts.get(section).copied().flatten(),
            Self::Segments(_) | Self::Slid(_) => Some(0),
        }
    }
}

impl LoadSegment {
    fn covers(&self, offset: u64) -> bool {
        offset.checked_sub(self.file_offset).is_some_and(|within| within < self.file_bytes)
    }

    /// A mapping consists of whole pages, so it includes bytes of the file before and after its segment.
    fn pages_cover(&self, offset: u64) -> bool {
        let start = self.file_offset & !(MAX_PAGE_BYTES - 1);
        let end = self.file_offset.saturating_add(self.file_bytes).saturating_add(MAX_PAGE_BYTES - 1);
        self.file_bytes > 0 && (start..end & !(MAX_PAGE_BYTES - 1)).contains(&offset)
    }
}

impl SectionLayout {
    fn of<Elf: FileHeader<Endian = Endianness>>(file: &ElfFile<'_, Elf>) -> Self {
        let endian = file.endian();
        let table = file.elf_section_table();
        let mut end = 0u64;
        let place = |section: &Elf::SectionHeader| {
            let flags = section.sh_flags(endian).0;
            let loaded_code = elf::SHF_ALLOC.0 | elf::SHF_EXECINSTR.0;
            let name = table.section_name(endian, section).unwrap_or_default();
            // `.init*` is loaded elsewhere, and freed after the module has started.
            if flags & loaded_code != loaded_code || name.starts_with(b".init") {
                return None;
            }
            let align = Into::<u64>::into(section.sh_addralign(endian)).clamp(1, MAX_PAGE_BYTES);
            let start = end.checked_next_multiple_of(align)?;
            end = start.checked_add(section.sh_size(endian).into())?;
            Some(start)
        };
        Self { starts: table.iter().map(place).collect() }
    }
}
