//! A copy of an ELF file whose headers and segments can be changed.
//!
//! `strip` and `objcopy` write program headers directly after the ELF header, wherever the file they copy has them; LLVM
//! 14 does so too. A file with more program headers therefore needs room for them there.

use std::ops::Range;

use perfuse_wire::{Cursor, Endian, layout};
use rustc_hash::FxHashSet;

use crate::container::elf::{
    ET_EXEC, Elf, Elf64Header, Elf64ProgramHeader, Elf64SectionHeader, IDENT_BYTES, PT_DYNAMIC,
    PT_GNU_PROPERTY, PT_INTERP, PT_LOAD, PT_NOTE, PT_PHDR, SHF_ALLOC, SHT_DYNSYM, SHT_NOBITS, SHT_NOTE,
    SHT_SYMTAB,
};
use crate::container::relocation::Elf64Symbol;

layout! {
    /// An entry of the dynamic section.
    Elf64Dynamic = "Elf64_Dyn", section "ELF" {
        /// What the value is.
        d_tag: u64,
        /// A number or an address.
        d_val: u64,
    }
}

/// Tags of the dynamic section whose values are addresses of sections that nothing else refers to by address:
/// DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_JMPREL, DT_RELR, DT_GNU_HASH, DT_VERSYM, DT_VERDEF, DT_VERNEED.
const TAGS_OF_SECTIONS: [u64; 10] = [4, 5, 6, 7, 23, 36, 0x6fff_fef5, 0x6fff_fff0, 0x6fff_fffc, 0x6fff_fffe];

const DT_NULL: u64 = 0;
const MIN_PAGE_BYTES: u64 = 0x1000;
/// The largest page of a machine with SFrame: aarch64's.
const MAX_PAGE_BYTES: u64 = 0x1_0000;
/// Addresses below are not available to programs (`vm.mmap_min_addr`).
const MIN_ADDRESS: u64 = 0x1_0000;
/// Offset of the program headers.
const TABLE_AT: u64 = (IDENT_BYTES as u64).saturating_add(Elf64Header::SIZE);

/// A part of the file that can be moved: only headers, symbols and the dynamic section refer to its addresses.
#[derive(Debug)]
pub(super) struct MovableBlock {
    range: Range<u64>,
    address: u64,
    /// Indexes of its sections, ascending.
    sections: Vec<usize>,
    alignment: u64,
}

/// A copy of an ELF file. [`finish`](Self::finish) writes the headers.
#[derive(Debug)]
pub(super) struct ElfImage {
    pub bytes: Vec<u8>,
    pub segments: Vec<Elf64ProgramHeader>,
    pub sections: Vec<Elf64SectionHeader>,
    header: Elf64Header,
    endian: Endian,
}

impl ElfImage {
    /// A copy of a file.
    pub(super) fn of(elf: &Elf<'_>) -> Self {
        Self {
            bytes: elf.data.to_vec(),
            segments: elf.segments.clone(),
            sections: elf.sections.clone(),
            header: elf.header,
            endian: elf.endian,
        }
    }

    fn loads(&self) -> impl Iterator<Item = &Elf64ProgramHeader> {
        self.segments.iter().filter(|segment| segment.p_type == PT_LOAD)
    }

    /// Alignment of segments.
    pub(super) fn page_bytes(&self) -> u64 {
        let largest = self.loads().map(|load| load.p_align).filter(|align| align.is_power_of_two()).max();
        largest.unwrap_or(0).clamp(MIN_PAGE_BYTES, MAX_PAGE_BYTES)
    }

    /// The first page after everything that is loaded; `None` where nothing is, or no address is left.
    pub(super) fn end_address(&self) -> Option<u64> {
        let end = self.loads().map(|load| load.p_vaddr.saturating_add(load.p_memsz)).max()?;
        end.checked_next_multiple_of(self.page_bytes())
    }

    /// Appends zeros up to a multiple of this, and returns the new size.
    pub(super) fn pad_to_multiple(&mut self, of: u64) -> u64 {
        let len = self.bytes.len() as u64;
        let padded = len.checked_next_multiple_of(of).unwrap_or(len);
        self.bytes.resize(usize::try_from(padded).unwrap_or(self.bytes.len()), 0);
        padded
    }

    /// Makes room for program headers after the ELF header. What is in their way is returned, to be moved; where that
    /// cannot move, a page is inserted before a program with fixed addresses.
    ///
    /// # Errors
    /// When neither is possible.
    pub(super) fn make_room(&mut self, num_segments: usize) -> Result<Option<MovableBlock>, &'static str> {
        const NO_ROOM: &str = "there is no room for two more program headers, and what follows them cannot move: \
             link it again from objects that are assembled with --gsframe";
        let end = TABLE_AT.saturating_add(Elf64ProgramHeader::SIZE.saturating_mul(num_segments as u64));
        let block = match self.sections.is_empty() {
            // Nothing states what follows the program headers.
            true => Err(()),
            false => self.block(TABLE_AT..end),
        };
        let block = match block {
            Ok(block) => block,
            Err(()) => self.insert_page(end).map(|()| None).ok_or(NO_ROOM)?,
        };
        self.load_program_headers(end).ok_or(NO_ROOM)?;
        Ok(block)
    }

    /// Extends the first segment up to the end of the program headers, if it contains the ELF header, and sets the
    /// segment that states their location.
    fn load_program_headers(&mut self, end: u64) -> Option<()> {
        let first = self.segments.iter().position(|one| one.p_type == PT_LOAD && one.p_offset == 0);
        let table = self.segments.iter().position(|one| one.p_type == PT_PHDR);
        let Some(first) = first else { return if table.is_none() { Some(()) } else { None } };
        let others = || self.segments.iter().enumerate().filter(|(index, _)| *index != first);
        let load = *self.segments.get(first)?;
        if load.p_filesz < end {
            let next_is_after = others().filter(|(_, one)| one.p_type == PT_LOAD).all(|(_, one)| {
                one.p_offset >= end && one.p_vaddr.checked_sub(load.p_vaddr).is_some_and(|at| at >= end)
            });
            if !next_is_after || load.p_filesz != load.p_memsz {
                return None;
            }
            *self.segments.get_mut(first)? = Elf64ProgramHeader { p_filesz: end, p_memsz: end, ..load };
        }
        if let Some(table) = table.and_then(|table| self.segments.get_mut(table)) {
            let (address, size) = (load.p_vaddr.wrapping_add(TABLE_AT), end.saturating_sub(TABLE_AT));
            (table.p_offset, table.p_vaddr, table.p_paddr) = (TABLE_AT, address, address);
            (table.p_filesz, table.p_memsz) = (size, size);
        }
        Some(())
    }

    /// Inserts a page for the headers before a program with fixed addresses, which keep their meaning.
    fn insert_page(&mut self, headers_end: u64) -> Option<()> {
        let page = self.page_bytes();
        let first = self.loads().min_by_key(|load| load.p_vaddr)?;
        let is_possible = self.header.e_type == ET_EXEC
            && first.p_offset == 0
            && first.p_vaddr >= page.saturating_add(MIN_ADDRESS)
            && headers_end <= page;
        let head = self.bytes.get(..usize::try_from(TABLE_AT).ok()?).filter(|_| is_possible)?;
        let mut bytes = head.to_vec();
        bytes.resize(usize::try_from(page).ok()?, 0);
        bytes.append(&mut self.bytes);
        self.bytes = bytes;
        for segment in &mut self.segments {
            let is_loaded = segment.p_type == PT_LOAD;
            if is_loaded && segment.p_offset == 0 {
                segment.p_vaddr = segment.p_vaddr.saturating_sub(page);
                segment.p_paddr = segment.p_paddr.saturating_sub(page);
                segment.p_filesz = segment.p_filesz.saturating_add(page);
                segment.p_memsz = segment.p_memsz.saturating_add(page);
            } else if segment.p_offset != 0 || segment.p_filesz != 0 {
                segment.p_offset = segment.p_offset.saturating_add(page);
            }
            if is_loaded {
                segment.p_align = segment.p_align.min(page);
            }
        }
        for section in self.sections.iter_mut().skip(1) {
            section.sh_offset = section.sh_offset.saturating_add(page);
        }
        Some(())
    }

    /// What overlaps a range of the file, with everything that has to stay beside it; `None` where nothing does.
    ///
    /// # Errors
    /// When some of it cannot be moved.
    pub(super) fn block(&self, range: Range<u64>) -> Result<Option<MovableBlock>, ()> {
        let occupied = |section: &Elf64SectionHeader| section.sh_type != SHT_NOBITS && section.sh_size != 0;
        let sections = self.sections.iter().skip(1).filter(|section| occupied(section));
        let sections = sections.map(|one| one.sh_offset..one.sh_offset.saturating_add(one.sh_size));
        let segments =
            self.segments.iter().filter(|one| matches!(one.p_type, PT_INTERP | PT_NOTE | PT_GNU_PROPERTY));
        let segments = segments.map(|one| one.p_offset..one.p_offset.saturating_add(one.p_filesz));
        let mut parts: Vec<Range<u64>> = sections.chain(segments).collect();
        parts.sort_unstable_by_key(|part| part.start);
        // Parts that overlap each other stay together.
        let mut block: Option<Range<u64>> = None;
        for part in parts {
            match &mut block {
                Some(block) if part.start < block.end => block.end = block.end.max(part.end),
                Some(block) if part.start < range.end => block.end = part.end,
                Some(_) => break,
                None if part.start < range.end && part.end > range.start => block = Some(part),
                None => {}
            }
        }
        let Some(range) = block else { return Ok(None) };
        let is_inside =
            |section: &Elf64SectionHeader| occupied(section) && range.contains(&section.sh_offset);
        let inside = || self.sections.iter().enumerate().skip(1).filter(|(_, section)| is_inside(section));
        let (_, first) = inside().next().ok_or(())?;
        let distance = |section: &Elf64SectionHeader| section.sh_addr.wrapping_sub(section.sh_offset);
        let interpreter = self.segments.iter().find(|one| one.p_type == PT_INTERP).map(|one| one.p_offset);
        let entries = self.dynamic().filter(|(_, entry)| TAGS_OF_SECTIONS.contains(&entry.d_tag));
        let dynamic: FxHashSet<u64> = entries.map(|(_, entry)| entry.d_val).collect();
        let is_movable = inside().all(|(_, section)| {
            let is_known = section.sh_type == SHT_NOTE
                || interpreter == Some(section.sh_offset)
                || dynamic.contains(&section.sh_addr);
            section.sh_flags & SHF_ALLOC != 0 && distance(section) == distance(first) && is_known
        });
        if !is_movable || range.start < TABLE_AT || range.end > self.bytes.len() as u64 {
            return Err(());
        }
        let alignment = inside().map(|(_, section)| section.sh_addralign).max().unwrap_or(0);
        let alignment = alignment.max(16).checked_next_power_of_two().unwrap_or(MIN_PAGE_BYTES);
        Ok(Some(MovableBlock {
            address: range.start.wrapping_add(distance(first)),
            sections: inside().map(|(index, _)| index).collect(),
            alignment: alignment.min(MIN_PAGE_BYTES),
            range,
        }))
    }

    /// Entries of the dynamic section, with their offsets in the file.
    fn dynamic(&self) -> impl Iterator<Item = (usize, Elf64Dynamic)> {
        let segment = self.segments.iter().find(|segment| segment.p_type == PT_DYNAMIC);
        let start = segment.and_then(|segment| usize::try_from(segment.p_offset).ok()).unwrap_or(usize::MAX);
        let size = segment.and_then(|segment| usize::try_from(segment.p_filesz).ok()).unwrap_or(0);
        let bytes = self.bytes.get(start..).unwrap_or_default();
        let bytes = bytes.get(..size).unwrap_or(bytes);
        let entries = bytes.chunks_exact(Elf64Dynamic::SIZE as usize).enumerate();
        let entries = entries.map_while(move |(index, entry)| {
            let at = start.checked_add(index.checked_mul(Elf64Dynamic::SIZE as usize)?)?;
            Some((at, Elf64Dynamic::read(&mut Cursor::new(entry, 0, self.endian)).ok()?))
        });
        entries.take_while(|(_, entry)| entry.d_tag != DT_NULL)
    }

    /// Copies a block to the end of the file. `distance` is that between address and file offset there.
    pub(super) fn move_to_end(&mut self, block: &MovableBlock, distance: u64) {
        let MovableBlock { range, address, .. } = block;
        let old_end = address.wrapping_add(range.end.saturating_sub(range.start));
        let offset = self.pad_to_multiple(block.alignment);
        // The remainder by the alignment stays, so that each section keeps its alignment.
        let offset = offset.saturating_add(range.start.checked_rem(block.alignment).unwrap_or(0));
        self.bytes.resize(usize::try_from(offset).unwrap_or(self.bytes.len()), 0);
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        let end = usize::try_from(range.end).unwrap_or(usize::MAX);
        if start <= end && end <= self.bytes.len() {
            self.bytes.extend_from_within(start..end);
        }
        let moved_by = offset.wrapping_sub(range.start);
        let address_moved_by = offset.wrapping_add(distance).wrapping_sub(*address);
        for index in &block.sections {
            let Some(section) = self.sections.get_mut(*index) else { continue };
            section.sh_offset = section.sh_offset.wrapping_add(moved_by);
            section.sh_addr = section.sh_addr.wrapping_add(address_moved_by);
        }
        for segment in &mut self.segments {
            if matches!(segment.p_type, PT_INTERP | PT_NOTE | PT_GNU_PROPERTY)
                && range.contains(&segment.p_offset)
            {
                segment.p_offset = segment.p_offset.wrapping_add(moved_by);
                segment.p_vaddr = segment.p_vaddr.wrapping_add(address_moved_by);
                segment.p_paddr = segment.p_vaddr;
            }
        }
        let is_moved = |value: u64| (*address..old_end).contains(&value);
        let entries: Vec<_> = self.dynamic().collect();
        for (at, entry) in entries {
            if TAGS_OF_SECTIONS.contains(&entry.d_tag) && is_moved(entry.d_val) {
                let d_val = entry.d_val.wrapping_add(address_moved_by);
                self.overwrite(at, |bytes, endian| Elf64Dynamic { d_val, ..entry }.write(bytes, endian));
            }
        }
        self.move_symbols(&block.sections, address_moved_by);
    }

    /// Changes the values of the symbols of some sections.
    fn move_symbols(&mut self, sections: &[usize], by: u64) {
        let table = |kind| self.sections.iter().find(|section| section.sh_type == kind);
        let tables = [table(SHT_SYMTAB), table(SHT_DYNSYM)].map(|found| found.and_then(file_range));
        for Range { start, end } in tables.into_iter().flatten() {
            let rest = self.bytes.get_mut(start..).unwrap_or_default();
            let len = end.saturating_sub(start).min(rest.len());
            let entries = rest.get_mut(..len).unwrap_or_default();
            for bytes in entries.chunks_exact_mut(Elf64Symbol::SIZE as usize) {
                let Ok(symbol) = Elf64Symbol::read(&mut Cursor::new(bytes, 0, self.endian)) else { continue };
                if sections.binary_search(&usize::from(symbol.st_shndx)).is_ok() {
                    let st_value = symbol.st_value.wrapping_add(by);
                    let mut entry = Vec::new();
                    Elf64Symbol { st_value, ..symbol }.write(&mut entry, self.endian);
                    bytes.copy_from_slice(&entry);
                }
            }
        }
    }

    /// Overwrites a header in place.
    fn overwrite(&mut self, at: usize, write: impl FnOnce(&mut Vec<u8>, Endian)) -> Option<()> {
        let mut entry = Vec::new();
        write(&mut entry, self.endian);
        self.bytes.get_mut(at..at.checked_add(entry.len())?)?.copy_from_slice(&entry);
        Some(())
    }

    /// Appends a name to the names of sections; returns its offset there.
    pub(super) fn add_section_name(&mut self, name: &[u8]) -> Option<u32> {
        let index = usize::from(self.header.e_shstrndx);
        let names = *self.sections.get(index)?;
        let range = file_range(&names)?;
        self.bytes.get(range.clone())?;
        let at = self.bytes.len();
        self.bytes.extend_from_within(range);
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        let sh_size = self.bytes.len().saturating_sub(at) as u64;
        *self.sections.get_mut(index)? = Elf64SectionHeader { sh_offset: at as u64, sh_size, ..names };
        u32::try_from(names.sh_size).ok()
    }

    /// Writes the headers, and returns the file.
    ///
    /// # Errors
    /// When there are more of them than the ELF header can count.
    pub(super) fn finish(mut self) -> Result<Vec<u8>, &'static str> {
        let e_phnum = u16::try_from(self.segments.len()).map_err(|_| "it has too many program headers")?;
        let is_counted = |num: &u16| *num < 0xff00 && (*num == 0 || self.header.e_shnum != 0);
        let e_shnum = u16::try_from(self.sections.len()).ok().filter(is_counted);
        let e_shnum = e_shnum.ok_or("it has too many sections")?;
        let e_shoff = if e_shnum == 0 { 0 } else { self.pad_to_multiple(8) };
        for section in &self.sections {
            section.write(&mut self.bytes, self.endian);
        }
        let (segments, head) = (std::mem::take(&mut self.segments), self.header);
        let table = usize::try_from(TABLE_AT).unwrap_or(usize::MAX);
        let (e_phentsize, e_shentsize) = (Elf64ProgramHeader::SIZE as u16, Elf64SectionHeader::SIZE as u16);
        let head =
            Elf64Header { e_phoff: TABLE_AT, e_phnum, e_phentsize, e_shoff, e_shnum, e_shentsize, ..head };
        let written = self.overwrite(IDENT_BYTES, |bytes, endian| head.write(bytes, endian)).and_then(|()| {
            self.overwrite(table, |bytes, endian| {
                segments.iter().for_each(|segment| segment.write(bytes, endian));
            })
        });
        written.map(|()| self.bytes).ok_or("the ELF header is cut short")
    }
}

/// Range of a section in the file.
pub(super) fn file_range(section: &Elf64SectionHeader) -> Option<Range<usize>> {
    let start = usize::try_from(section.sh_offset).ok()?;
    Some(start..start.checked_add(usize::try_from(section.sh_size).ok()?)?)
}
