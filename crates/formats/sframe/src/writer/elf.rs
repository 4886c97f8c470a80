//! Puts a section into an ELF file: into the space of its old section, or after everything else in a segment of its
//! own. What is loaded at run time does not move.

use std::ops::Range;
use std::sync::Arc;

use super::contents::{SectionContents, WriteError};
use crate::SFrame;
use crate::consts::{PT_GNU_SFRAME, SHT_GNU_SFRAME};
use crate::container::elf::{
    Elf, Elf64Header, Elf64ProgramHeader, Elf64SectionHeader, IDENT_BYTES, PF_R, PT_LOAD, PT_PHDR, SHF_ALLOC,
    SHT_PROGBITS,
};
use crate::container::{Section, SectionOrigin};
use perfuse_recording::Source;

const NAME: &[u8] = b".sframe";
const PAGE_BYTES: u64 = 0x1000;
const ALIGNMENT: u64 = 8;
/// Limit of the padding with which the new segment gets the same distance between address and file offset as the
/// first. Linux before 5.18 requires that for the program headers.
const MAX_ZEROS: u64 = 16 << 20;

/// Writes a program or library with a section: in the space of its old section where it fits, else after everything
/// else.
///
/// # Errors
/// As [`append_section`].
pub fn write_to_elf(file: Arc<Source>, contents: &SectionContents) -> Result<Vec<u8>, WriteError> {
    if let Ok(opened) = SFrame::open(Arc::clone(&file))
        && let [section] = opened.sections()
        && section.origin == SectionOrigin::Linked
        && let Ok(bytes) = contents.encode(section.address)
        && bytes.len() <= section.range.len()
    {
        return replace_section(&file, section, &bytes);
    }
    append_section(&file, contents)
}

/// The file with other bytes for a section. The rest of the old ones is filled with zeros, and headers state the new
/// size.
///
/// # Errors
/// When the new section is larger, or is part of an object file, whose relocations point into it.
pub fn replace_section(file: &[u8], section: &Section, bytes: &[u8]) -> Result<Vec<u8>, WriteError> {
    let error = |what| WriteError { function: None, what };
    match section.origin {
        SectionOrigin::Bare => return Ok(bytes.to_vec()),
        SectionOrigin::Object => {
            return Err(error("sections of object files cannot be replaced: relocations point into them"));
        }
        SectionOrigin::Linked | SectionOrigin::Segment => {}
    }
    let mut out = file.to_vec();
    let old_bytes = out.get_mut(section.range.clone()).ok_or(error("the section is not in the file"))?;
    if bytes.len() > old_bytes.len() {
        return Err(error("it is larger than the old section, and nothing after that can move"));
    }
    let (new, rest) = old_bytes.split_at_mut(bytes.len());
    new.copy_from_slice(bytes);
    rest.fill(0);
    let elf = Elf::parse(file).map_err(|_| error("the ELF header cannot be read"))?;
    let size = bytes.len() as u64;
    let at = section.range.start as u64;
    for (index, header) in elf.sections.iter().enumerate() {
        if header.sh_offset == at && elf.is_named(header, b".sframe") {
            let changed = Elf64SectionHeader { sh_size: size, ..*header };
            patch(&mut out, elf.section_header(index), |entry| changed.write(entry, elf.endian));
        }
    }
    for (index, header) in elf.segments.iter().enumerate() {
        if header.p_offset == at && header.p_type == PT_GNU_SFRAME {
            let changed = Elf64ProgramHeader { p_filesz: size, p_memsz: size, ..*header };
            patch(&mut out, elf.program_header(index), |entry| changed.write(entry, elf.endian));
        }
    }
    Ok(out)
}

/// Overwrites a header in place.
fn patch(out: &mut [u8], old_bytes: Option<Range<usize>>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut entry = Vec::new();
    write(&mut entry);
    if let Some(old_bytes) = old_bytes.and_then(|old_bytes| out.get_mut(old_bytes))
        && old_bytes.len() == entry.len()
    {
        old_bytes.copy_from_slice(&entry);
    }
}

/// The file with a section of these contents after everything else; an old section is cleared.
///
/// # Errors
/// When it is an object file or has no loaded segment, or the contents cannot be encoded.
pub fn append_section(file: &[u8], contents: &SectionContents) -> Result<Vec<u8>, WriteError> {
    let error = |what| WriteError { function: None, what };
    let elf = Elf::parse(file).map_err(|_| error("the ELF header cannot be read"))?;
    if elf.is_object() {
        return Err(error("link object files first, or assemble them with --gsframe"));
    }
    let space = SegmentSpace::after(&elf).ok_or(error("there is no loaded segment, or no space after it"))?;
    let has_segment = elf.segments.iter().any(|segment| segment.p_type == PT_GNU_SFRAME);
    let num_segments = elf.segments.len().saturating_add(if has_segment { 1 } else { 2 });
    let headers_bytes = Elf64ProgramHeader::SIZE.saturating_mul(num_segments as u64);
    let section_at = headers_bytes.checked_next_multiple_of(ALIGNMENT).unwrap_or(headers_bytes);
    let address = space.address.wrapping_add(section_at);
    let section = contents.encode(address)?;
    let size = section.len() as u64;
    let at = space.offset.saturating_add(section_at);

    let load = Elf64ProgramHeader {
        p_type: PT_LOAD,
        p_flags: PF_R,
        p_offset: space.offset,
        p_vaddr: space.address,
        p_paddr: space.address,
        p_filesz: section_at.saturating_add(size),
        p_memsz: section_at.saturating_add(size),
        p_align: space.page_bytes,
    };
    let sframe_segment = Elf64ProgramHeader {
        p_type: PT_GNU_SFRAME,
        p_offset: at,
        p_vaddr: address,
        p_paddr: address,
        p_filesz: size,
        p_memsz: size,
        p_align: ALIGNMENT,
        ..load
    };
    let mut out = file.to_vec();
    clear_old_section(&elf, &mut out);
    pad_to(&mut out, space.offset);
    for header in program_headers(&elf, load, sframe_segment, headers_bytes) {
        header.write(&mut out, elf.endian);
    }
    pad_to(&mut out, at);
    out.extend_from_slice(&section);
    let header = Elf64SectionHeader {
        sh_name: 0,
        sh_type: if contents.version >= 3 { SHT_GNU_SFRAME } else { SHT_PROGBITS },
        sh_flags: SHF_ALLOC,
        sh_addr: address,
        sh_offset: at,
        sh_size: size,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: ALIGNMENT,
        sh_entsize: 0,
    };
    let sections = section_headers(&elf, &mut out, header);
    let e_phnum = u16::try_from(num_segments).map_err(|_| error("it has too many program headers"))?;
    let (e_phentsize, e_shentsize) = (Elf64ProgramHeader::SIZE as u16, Elf64SectionHeader::SIZE as u16);
    let mut head = Elf64Header { e_phoff: space.offset, e_phnum, e_phentsize, ..elf.header };
    if let Some((offset, num)) = sections {
        head.e_shoff = offset;
        head.e_shnum = num;
        head.e_shentsize = e_shentsize;
    }
    let mut bytes = Vec::new();
    head.write(&mut bytes, elf.endian);
    let end = IDENT_BYTES.saturating_add(bytes.len());
    out.get_mut(IDENT_BYTES..end).ok_or(error("the ELF header is cut short"))?.copy_from_slice(&bytes);
    Ok(out)
}

/// Location of a new segment.
struct SegmentSpace {
    offset: u64,
    address: u64,
    page_bytes: u64,
}

impl SegmentSpace {
    /// The space after everything that is loaded.
    fn after(elf: &Elf<'_>) -> Option<Self> {
        let loads = || elf.segments.iter().filter(|segment| segment.p_type == PT_LOAD);
        let first = loads().next()?;
        let page_bytes = loads().map(|load| load.p_align).max()?.max(PAGE_BYTES);
        let page_bytes = Some(page_bytes).filter(|bytes| bytes.is_power_of_two() && *bytes <= 1 << 21)?;
        let end = loads().map(|load| load.p_vaddr.saturating_add(load.p_memsz)).max()?;
        let end = end.checked_next_multiple_of(page_bytes)?;
        let file_end = (elf.data.len() as u64).checked_next_multiple_of(page_bytes)?;
        let distance = first.p_vaddr.wrapping_sub(first.p_offset);
        let offset = end.checked_sub(distance).map_or(file_end, |offset| offset.max(file_end));
        match offset.saturating_sub(file_end) <= MAX_ZEROS {
            true => Some(Self { offset, address: offset.checked_add(distance)?, page_bytes }),
            false => Some(Self { offset: file_end, address: end, page_bytes }),
        }
    }
}

/// Fills the old section with zeros.
fn clear_old_section(elf: &Elf<'_>, out: &mut [u8]) {
    let Some(old) = elf.sections.iter().find(|section| elf.is_named(section, NAME)) else { return };
    let start = usize::try_from(old.sh_offset).unwrap_or(usize::MAX);
    let end = start.saturating_add(usize::try_from(old.sh_size).unwrap_or(usize::MAX));
    if let Some(bytes) = out.get_mut(start..end) {
        bytes.fill(0);
    }
}

/// Appends zeros up to an offset.
fn pad_to(out: &mut Vec<u8>, offset: u64) {
    let len = usize::try_from(offset).unwrap_or(out.len());
    out.resize(len.max(out.len()), 0);
}

/// The program headers with the new ones; loaded segments stay in the order of their addresses.
fn program_headers(
    elf: &Elf<'_>,
    load: Elf64ProgramHeader,
    sframe_segment: Elf64ProgramHeader,
    headers_bytes: u64,
) -> Vec<Elf64ProgramHeader> {
    let mut headers = elf.segments.clone();
    for header in &mut headers {
        if header.p_type == PT_PHDR {
            header.p_offset = load.p_offset;
            header.p_vaddr = load.p_vaddr;
            header.p_paddr = load.p_vaddr;
            header.p_filesz = headers_bytes;
            header.p_memsz = headers_bytes;
        }
    }
    match headers.iter_mut().find(|header| header.p_type == PT_GNU_SFRAME) {
        Some(header) => *header = sframe_segment,
        None => headers.push(sframe_segment),
    }
    let last = headers.iter().rposition(|header| header.p_type == PT_LOAD).unwrap_or(0);
    headers.insert(last.saturating_add(1), load);
    headers
}

/// Writes a new section header table, with a name table that contains the new section's; returns its offset and its
/// number of entries. `None` for a file without sections, or with so many that the first section header contains
/// their number.
fn section_headers(elf: &Elf<'_>, out: &mut Vec<u8>, new: Elf64SectionHeader) -> Option<(u64, u16)> {
    let mut headers = elf.sections.clone();
    let names_at = usize::from(elf.header.e_shstrndx);
    let known = headers.iter_mut().find(|section| elf.is_named(section, NAME));
    match known {
        Some(header) => *header = Elf64SectionHeader { sh_name: header.sh_name, ..new },
        None => {
            let names = elf.bytes(headers.get(names_at)?)?.to_vec();
            let sh_name = u32::try_from(names.len()).ok()?;
            let sh_offset = out.len() as u64;
            out.extend_from_slice(&names);
            out.extend_from_slice(NAME);
            out.push(0);
            let sh_size = (out.len() as u64).saturating_sub(sh_offset);
            let header = headers.get_mut(names_at)?;
            *header = Elf64SectionHeader { sh_offset, sh_size, ..*header };
            headers.push(Elf64SectionHeader { sh_name, ..new });
        }
    }
    let num = u16::try_from(headers.len()).ok().filter(|num| *num < 0xff00 && elf.header.e_shnum != 0)?;
    pad_to(out, (out.len() as u64).checked_next_multiple_of(ALIGNMENT)?);
    let offset = out.len() as u64;
    headers.iter().for_each(|header| header.write(out, elf.endian));
    Some((offset, num))
}
