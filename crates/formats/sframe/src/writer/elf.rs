//! Puts a section into an ELF file: into the space of its old section, or after everything else in a segment of its
//! own. Code and data do not move.

use std::ops::Range;
use std::sync::Arc;

use super::contents::{SectionContents, WriteError};
use super::elf_image::{ElfImage, MovableBlock, file_range};
use crate::SFrame;
use crate::consts::{PT_GNU_SFRAME, SHT_GNU_SFRAME};
use crate::container::elf::{
    Elf, Elf64ProgramHeader, Elf64SectionHeader, PF_R, PT_LOAD, SHF_ALLOC, SHT_NOBITS, SHT_PROGBITS,
};
use crate::container::{Section, SectionOrigin};
use perfuse_recording::Source;

const NAME: &[u8] = b".sframe";
const ALIGNMENT: u64 = 8;

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

/// The file with other bytes for a section. The rest of the old ones is filled with zeros unless other headers refer to it,
/// and headers state the new size.
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
    let elf = Elf::parse(file).map_err(|_| error("the ELF header cannot be read"))?;
    let (new, rest) = old_bytes.split_at_mut(bytes.len());
    new.copy_from_slice(bytes);
    // The size of the section may be wrong: what other headers refer to stays.
    let rest_begins = section.range.start.saturating_add(bytes.len());
    if !is_used_by_others(&elf, section, &(rest_begins..section.range.end)) {
        rest.fill(0);
    }
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

/// Whether bytes of a section are also those of another section or of section headers.
fn is_used_by_others(elf: &Elf<'_>, section: &Section, bytes: &Range<usize>) -> bool {
    let overlaps = |other: &Range<usize>| other.start < bytes.end && bytes.start < other.end;
    elf.sections.iter().enumerate().any(|(index, header)| {
        let is_other = header.sh_offset != section.range.start as u64 && header.sh_type != SHT_NOBITS;
        is_other && file_range(header).is_some_and(|range| overlaps(&range))
            || elf.section_header(index).is_some_and(|range| overlaps(&range))
    })
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

/// The file with a section of these contents in a loaded segment after everything else; an old section is cleared.
///
/// Tools that copy ELF files, such as `strip`, keep the result working: see `ElfImage`.
///
/// # Errors
/// When it is an object file, has no loaded segment or no room for program headers, or the contents cannot be encoded.
pub fn append_section(file: &[u8], contents: &SectionContents) -> Result<Vec<u8>, WriteError> {
    let error = |what| WriteError { function: None, what };
    let elf = Elf::parse(file).map_err(|_| error("the ELF header cannot be read"))?;
    if elf.is_object() {
        return Err(error("link object files first, or assemble them with --gsframe"));
    }
    let mut image = ElfImage::of(&elf);
    let old = elf.sections.iter().position(|section| elf.is_named(section, NAME));
    let sframe_segment = image.segments.iter().position(|segment| segment.p_type == PT_GNU_SFRAME);
    let own = old.and_then(|old| own_segment(&image, old));
    if let Some(range) = old.and_then(|old| image.sections.get(old)).and_then(file_range)
        && let Some(bytes) = image.bytes.get_mut(range)
    {
        bytes.fill(0);
    }
    let own_index = own.as_ref().map(|(index, _)| *index);
    let (address, block) = match own {
        Some((load, block)) => (image.segments.get(load).map_or(0, |load| load.p_vaddr), block),
        None => {
            let num_new = if sframe_segment.is_some() { 1usize } else { 2 };
            let num_segments = image.segments.len().saturating_add(num_new);
            let block = image.make_room(num_segments).map_err(error)?;
            (image.end_address().ok_or(error("there is no loaded segment, or no space after it"))?, block)
        }
    };
    let section = contents.encode(address)?;
    let page_bytes = image.page_bytes();
    let offset = image.pad_to_multiple(page_bytes);
    image.bytes.extend_from_slice(&section);
    // The new section precedes what is moved: LLVM 14 takes a segment that begins where PT_INTERP does for a part of that.
    if let Some(block) = block {
        image.move_to_end(&block, address.wrapping_sub(offset));
    }
    let load_bytes = (image.bytes.len() as u64).saturating_sub(offset);
    let load = loaded_segment(address, offset, load_bytes, page_bytes);
    let size = section.len() as u64;
    let segment = Elf64ProgramHeader {
        p_type: PT_GNU_SFRAME,
        p_filesz: size,
        p_memsz: size,
        p_align: ALIGNMENT,
        ..load
    };
    let header = section_header(contents.version, address, offset, size);
    match sframe_segment.and_then(|index| image.segments.get_mut(index)) {
        Some(old) => *old = segment,
        None => image.segments.push(segment),
    }
    match own_index.and_then(|index| image.segments.get_mut(index)) {
        Some(old) => *old = load,
        None => {
            // Loaded segments stay in the order of their addresses.
            let last = image.segments.iter().rposition(|segment| segment.p_type == PT_LOAD);
            image.segments.insert(last.map_or(0, |last| last.saturating_add(1)), load);
        }
    }
    let has_sections = !image.sections.is_empty();
    match old.and_then(|old| image.sections.get_mut(old)) {
        Some(old) => *old = Elf64SectionHeader { sh_name: old.sh_name, ..header },
        None if !has_sections => {}
        None => {
            let sh_name = image.add_section_name(NAME).ok_or(error("it has no names of sections"))?;
            image.sections.push(Elf64SectionHeader { sh_name, ..header });
        }
    }
    image.finish().map_err(error)
}

fn loaded_segment(address: u64, offset: u64, size: u64, page_bytes: u64) -> Elf64ProgramHeader {
    Elf64ProgramHeader {
        p_type: PT_LOAD,
        p_flags: PF_R,
        p_offset: offset,
        p_vaddr: address,
        p_paddr: address,
        p_filesz: size,
        p_memsz: size,
        p_align: page_bytes,
    }
}

/// The header of an SFrame section, without its name.
fn section_header(version: u8, address: u64, offset: u64, size: u64) -> Elf64SectionHeader {
    Elf64SectionHeader {
        sh_name: 0,
        sh_type: if version >= 3 { SHT_GNU_SFRAME } else { SHT_PROGBITS },
        sh_flags: SHF_ALLOC,
        sh_addr: address,
        sh_offset: offset,
        sh_size: size,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: ALIGNMENT,
        sh_entsize: 0,
    }
}

/// The loaded segment that an old section begins and that can grow, because nothing is loaded after it: its index, and
/// what follows the section there.
fn own_segment(image: &ElfImage, section: usize) -> Option<(usize, Option<MovableBlock>)> {
    let section = image.sections.get(section)?;
    let loads = image.segments.iter().enumerate().filter(|(_, segment)| segment.p_type == PT_LOAD);
    let (index, load) = loads.max_by_key(|(_, segment)| segment.p_vaddr)?;
    let begins = (load.p_offset, load.p_vaddr) == (section.sh_offset, section.sh_addr);
    let is_plain = load.p_flags == PF_R && load.p_filesz == load.p_memsz;
    if !begins || !is_plain || !load.p_vaddr.is_multiple_of(image.page_bytes()) {
        return None;
    }
    let rest = load.p_offset.checked_add(section.sh_size)?..load.p_offset.checked_add(load.p_filesz)?;
    Some((index, image.block(rest).ok()?))
}
