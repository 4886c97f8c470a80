//! Where sections are: in ELF files, object files, archives, or bare.

pub mod archive;
pub mod elf;
pub mod relocation;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use perfuse_recording::Sniff;
use perfuse_wire::{ErrorKind, ParseError};

use super::consts::{PT_GNU_SFRAME, SFRAME_MAGIC};
use elf::Elf;
use relocation::Relocated;

/// What a section was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nothing: the file is the section, as `objcopy -O binary -j .sframe` cuts it out.
    Bare,
    /// An executable or shared object.
    Linked,
    /// An executable or shared object without section headers: a segment, which may be longer than the section.
    Segment,
    /// An object file, or a member of an archive of such.
    Object,
}

/// A section.
#[derive(Clone, Debug)]
pub struct Section {
    /// What it is in.
    pub holder: Holder,
    /// Member of the archive; empty where the file is none.
    pub member: String,
    /// Its place in the file.
    pub place: Range<usize>,
    /// The ELF file it is in: all of the file, or a member of the archive.
    pub elf: Range<usize>,
    /// Where it is loaded to; 0 where nobody knows.
    pub address: u64,
    /// ELF machine.
    pub machine: Option<u16>,
    /// `sh_type`; 0 where there is no section header.
    pub sh_type: u32,
    /// Size in the file of the segment that holds it.
    pub segment_bytes: Option<u64>,
    /// Addresses of code, sorted; empty where nobody knows.
    pub code: Arc<[Range<u64>]>,
    /// Which relocations were applied, in an object file.
    pub relocated: Option<Relocated>,
    /// Its bytes with those, where there were any.
    pub filled: Option<Vec<u8>>,
}

impl Section {
    /// Its bytes, relocated where it is of an object file.
    #[must_use]
    pub fn data<'a>(&'a self, file: &'a [u8]) -> &'a [u8] {
        match &self.filled {
            Some(bytes) => bytes,
            None => self.raw(file),
        }
    }

    /// Its bytes as they are in the file.
    #[must_use]
    pub fn raw<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        file.get(self.place.clone()).unwrap_or_default()
    }
}

/// How certain it is that a file is a section or contains one: programs and archives only may contain one.
#[must_use]
pub fn sniff(head: &[u8]) -> Sniff {
    if Elf::sniff(head) || archive::sniff(head) { Sniff::Likely } else { sniff_bare(head) }
}

/// How certain it is that bytes begin with a section's header. The magic number has two bytes, so the version or the ABI has to
/// be a known one as well.
fn sniff_bare(head: &[u8]) -> Sniff {
    let Some(&[a, b, version, _flags, abi]) = head.first_chunk::<5>() else { return Sniff::No };
    let magic = u16::from_le_bytes([a, b]);
    let has_magic = magic == SFRAME_MAGIC || magic.swap_bytes() == SFRAME_MAGIC;
    match (has_magic, (1..=3).contains(&version), (1..=4).contains(&abi)) {
        (true, true, true) => Sniff::Certain,
        (true, true, false) | (true, false, true) => Sniff::Likely,
        _ => Sniff::No,
    }
}

/// Every section of a file.
///
/// # Errors
/// When there is none, or the file's own headers cannot be read.
pub fn sections(file: &[u8]) -> Result<Vec<Section>, ParseError> {
    if Elf::sniff(file) {
        let elf = Elf::parse(file)?;
        let found = of_elf(&elf, 0, "");
        return match found.is_empty() {
            true => Err(none("find a .sframe section or a PT_GNU_SFRAME segment in this ELF file")),
            false => Ok(found),
        };
    }
    if archive::is_thin(file) {
        return Err(none("read a thin archive, which has only the names of its members"));
    }
    if archive::sniff(file) {
        let members = archive::members(file).into_iter().flat_map(|(name, place)| {
            let start = place.start;
            let bytes = file.get(place).unwrap_or_default();
            Elf::parse(bytes).map(|elf| of_elf(&elf, start, &name)).unwrap_or_default()
        });
        let found: Vec<_> = members.collect();
        return match found.is_empty() {
            true => Err(none("find a member with a .sframe section in this archive")),
            false => Ok(found),
        };
    }
    let bare = Section {
        holder: Holder::Bare,
        member: String::new(),
        place: 0..file.len(),
        elf: 0..0,
        address: 0,
        machine: None,
        sh_type: 0,
        segment_bytes: None,
        code: Arc::default(),
        relocated: None,
        filled: None,
    };
    Ok(vec![bare])
}

fn none(what: &'static str) -> ParseError {
    ParseError::new(ErrorKind::Unreadable { what }, 0, "")
}

fn of_elf(elf: &Elf<'_>, start: usize, member: &str) -> Vec<Section> {
    let segment = elf.segments.iter().find(|segment| segment.p_type == PT_GNU_SFRAME);
    let blank = Section {
        holder: Holder::Segment,
        member: member.to_owned(),
        place: 0..0,
        elf: start..start.saturating_add(elf.data.len()),
        address: 0,
        machine: Some(elf.header.e_machine),
        sh_type: 0,
        segment_bytes: segment.map(|segment| segment.p_filesz),
        code: elf.code(),
        relocated: None,
        filled: None,
    };
    let mut found = Vec::new();
    // Sections do not overlap, so all together are no longer than the file: headers that claim more are damage.
    let mut left = elf.data.len();
    for (index, header) in elf.sections.iter().enumerate() {
        if !elf.is_named(header, b".sframe") {
            continue;
        }
        let Some(bytes) = elf.bytes(header).filter(|bytes| !bytes.is_empty() || found.is_empty()) else {
            continue;
        };
        let Some(rest) = left.checked_sub(bytes.len()) else { break };
        left = rest;
        let mut filled = Cow::Borrowed(bytes);
        let relocated = elf.is_object().then(|| relocation::apply(elf, index, &mut filled));
        found.push(Section {
            holder: if elf.is_object() { Holder::Object } else { Holder::Linked },
            place: place(start, header.sh_offset, bytes.len()),
            address: header.sh_addr,
            sh_type: header.sh_type,
            relocated,
            filled: match filled {
                Cow::Borrowed(_) => None,
                Cow::Owned(bytes) => Some(bytes),
            },
            ..blank.clone()
        });
    }
    if found.is_empty()
        && let Some(segment) = segment
        && let Some(bytes) = elf.part(segment.p_offset, segment.p_filesz)
    {
        let place = place(start, segment.p_offset, bytes.len());
        found.push(Section { place, address: segment.p_vaddr, ..blank });
    }
    found
}

fn place(start: usize, offset: u64, len: usize) -> Range<usize> {
    let from = start.saturating_add(usize::try_from(offset).unwrap_or(usize::MAX));
    from..from.saturating_add(len)
}
