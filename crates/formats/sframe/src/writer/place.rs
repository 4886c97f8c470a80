//! A section back into its ELF file: in place, where it fits into the old one's bytes.

use std::ops::Range;
use std::sync::Arc;

use super::{Contents, WriteError, insert};
use crate::SFrame;
use crate::consts::PT_GNU_SFRAME;
use crate::container::elf::{Elf, ProgramHeader, SectionHeader};
use crate::container::{Holder, Section};
use perfuse_recording::Source;

/// A program or library with a section: in the place of the one it has, where it fits there, else behind all else.
///
/// # Errors
/// As [`insert`].
pub fn put_into(file: Arc<Source>, contents: &Contents) -> Result<Vec<u8>, WriteError> {
    if let Ok(opened) = SFrame::open(Arc::clone(&file))
        && let [section] = opened.sections()
        && section.holder == Holder::Linked
        && let Ok(bytes) = contents.encode(section.address)
        && bytes.len() <= section.place.len()
    {
        return put_back(&file, section, &bytes);
    }
    insert(&file, contents)
}

/// The file with other bytes for a section. What is left of the old ones is zeros, and headers give the new size.
///
/// # Errors
/// When the section is larger than it was, or is one of an object file, whose relocations point into it.
pub fn put_back(file: &[u8], section: &Section, bytes: &[u8]) -> Result<Vec<u8>, WriteError> {
    let refused = |what| WriteError { function: None, what };
    match section.holder {
        Holder::Bare => return Ok(bytes.to_vec()),
        Holder::Object => {
            return Err(refused("sections of object files stay as they are: relocations point into them"));
        }
        Holder::Linked | Holder::Segment => {}
    }
    let mut out = file.to_vec();
    let place = out.get_mut(section.place.clone()).ok_or(refused("the section is not in the file"))?;
    if bytes.len() > place.len() {
        return Err(refused("it is larger than the section that is there, and nothing behind that can move"));
    }
    let (new, rest) = place.split_at_mut(bytes.len());
    new.copy_from_slice(bytes);
    rest.fill(0);
    let elf = Elf::parse(file).map_err(|_| refused("the ELF header cannot be read"))?;
    let size = bytes.len() as u64;
    let at = section.place.start as u64;
    for (index, header) in elf.sections.iter().enumerate() {
        if header.sh_offset == at && elf.is_named(header, b".sframe") {
            let changed = SectionHeader { sh_size: size, ..*header };
            patch(&mut out, elf.section_header(index), |entry| changed.write(entry, elf.endian));
        }
    }
    for (index, header) in elf.segments.iter().enumerate() {
        if header.p_offset == at && header.p_type == PT_GNU_SFRAME {
            let changed = ProgramHeader { p_filesz: size, p_memsz: size, ..*header };
            patch(&mut out, elf.program_header(index), |entry| changed.write(entry, elf.endian));
        }
    }
    Ok(out)
}

fn patch(out: &mut [u8], place: Option<Range<usize>>, write: impl FnOnce(&mut Vec<u8>)) {
    let mut entry = Vec::new();
    write(&mut entry);
    if let Some(place) = place.and_then(|place| out.get_mut(place))
        && place.len() == entry.len()
    {
        place.copy_from_slice(&entry);
    }
}
