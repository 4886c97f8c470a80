//! Finds the sections of ELF files, object files and archives; a bare section is a file of its own.

pub mod elf;
pub mod relocation;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

#[cfg(feature = "tables")]
use perfuse_recording::Sniff;
use perfuse_wire::{ErrorKind, ParseError};

use super::consts::PT_GNU_SFRAME;
#[cfg(feature = "tables")]
use super::consts::SFRAME_MAGIC;
use elf::Elf;
use relocation::AppliedRelocations;

/// What kind of file a section was found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SectionOrigin {
    /// The file is the section, as `objcopy -O binary -j .sframe` extracts it.
    Bare,
    /// An executable or shared object.
    Linked,
    /// An executable or shared object without section headers: a segment, which may be longer than the section.
    Segment,
    /// An object file, or a member of an archive of object files.
    Object,
}

/// A section and its location.
#[derive(Clone, Debug)]
pub struct Section {
    /// The kind of file it was found in.
    pub origin: SectionOrigin,
    /// Name of the archive member; empty where the file is not an archive.
    pub member: String,
    /// Range in the file.
    pub range: Range<usize>,
    /// Range in the file of the ELF file that contains it: all of it, or a member of the archive.
    pub elf: Range<usize>,
    /// Load address; 0 where unknown.
    pub address: u64,
    /// ELF machine.
    pub machine: Option<u16>,
    /// `sh_type`; 0 where there is no section header.
    pub sh_type: u32,
    /// Size in the file of the PT_GNU_SFRAME segment.
    pub segment_bytes: Option<u64>,
    /// Address ranges of code, sorted; empty where unknown.
    pub code: Arc<[Range<u64>]>,
    /// The relocations of the section, in an object file.
    pub relocations: Option<AppliedRelocations>,
    /// The bytes with relocations applied, where there are any.
    pub relocated_data: Option<Vec<u8>>,
}

impl Section {
    /// The bytes; in an object file with relocations applied.
    #[must_use]
    pub fn data<'a>(&'a self, file: &'a [u8]) -> &'a [u8] {
        match &self.relocated_data {
            Some(bytes) => bytes,
            None => self.raw(file),
        }
    }

    /// The bytes as stored in the file.
    #[must_use]
    pub fn raw<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        file.get(self.range.clone()).unwrap_or_default()
    }
}

/// How certain it is that a file is a section or contains one: programs and archives only may contain one.
#[cfg(feature = "tables")]
#[must_use]
pub fn sniff(head: &[u8]) -> Sniff {
    if Elf::sniff(head) || is_archive(head) { Sniff::Likely } else { sniff_bare(head) }
}

/// How certain it is that bytes begin with a section's header. The magic number has two bytes, so the version or the ABI has to
/// be a known one as well.
#[cfg(feature = "tables")]
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

/// All sections of a file.
///
/// # Errors
/// When there is none, or the file's own headers cannot be read.
pub fn sections(file: &[u8]) -> Result<Vec<Section>, ParseError> {
    if Elf::sniff(file) {
        let elf = Elf::parse(file)?;
        let found = elf_sections(&elf, 0, "");
        return match found.is_empty() {
            true => Err(unreadable("find a .sframe section or a PT_GNU_SFRAME segment in this ELF file")),
            false => Ok(found),
        };
    }
    if is_thin_archive(file) {
        return Err(unreadable("read a thin archive, which contains only the names of its members"));
    }
    if is_archive(file) {
        let members = read_members(file).0.into_iter().flat_map(|(name, range)| {
            let start = range.start;
            let bytes = file.get(range).unwrap_or_default();
            Elf::parse(bytes).map(|elf| elf_sections(&elf, start, &name)).unwrap_or_default()
        });
        let found: Vec<_> = members.collect();
        return match found.is_empty() {
            true => Err(unreadable("find a member with a .sframe section in this archive")),
            false => Ok(found),
        };
    }
    let bare = Section {
        origin: SectionOrigin::Bare,
        member: String::new(),
        range: 0..file.len(),
        elf: 0..0,
        address: 0,
        machine: None,
        sh_type: 0,
        segment_bytes: None,
        code: Arc::default(),
        relocations: None,
        relocated_data: None,
    };
    Ok(vec![bare])
}

/// The error for a file without a readable section.
fn unreadable(what: &'static str) -> ParseError {
    ParseError::new(ErrorKind::Unreadable { what }, 0, "")
}

/// The sections of an ELF file that starts at this offset of the file.
fn elf_sections(elf: &Elf<'_>, start: usize, member: &str) -> Vec<Section> {
    let segment = elf.segments.iter().find(|segment| segment.p_type == PT_GNU_SFRAME);
    let template = Section {
        origin: SectionOrigin::Segment,
        member: member.to_owned(),
        range: 0..0,
        elf: start..start.saturating_add(elf.data.len()),
        address: 0,
        machine: Some(elf.header.e_machine),
        sh_type: 0,
        segment_bytes: segment.map(|segment| segment.p_filesz),
        code: elf.code(),
        relocations: None,
        relocated_data: None,
    };
    let mut found = Vec::new();
    // Sections do not overlap, so their total size is limited by that of the file; headers that claim more are
    // damaged.
    let mut bytes_left = elf.data.len();
    for (index, header) in elf.sections.iter().enumerate() {
        if !elf.is_named(header, b".sframe") {
            continue;
        }
        let Some(bytes) = elf.bytes(header).filter(|bytes| !bytes.is_empty() || found.is_empty()) else {
            continue;
        };
        let Some(bytes_left_after) = bytes_left.checked_sub(bytes.len()) else { break };
        bytes_left = bytes_left_after;
        let mut relocated_data = Cow::Borrowed(bytes);
        let relocations =
            elf.is_object().then(|| relocation::apply_relocations(elf, index, &mut relocated_data, false));
        found.push(Section {
            origin: if elf.is_object() { SectionOrigin::Object } else { SectionOrigin::Linked },
            range: file_range(start, header.sh_offset, bytes.len()),
            address: header.sh_addr,
            sh_type: header.sh_type,
            relocations,
            relocated_data: match relocated_data {
                Cow::Borrowed(_) => None,
                Cow::Owned(bytes) => Some(bytes),
            },
            ..template.clone()
        });
    }
    if found.is_empty()
        && let Some(segment) = segment
        && let Some(bytes) = elf.part(segment.p_offset, segment.p_filesz)
    {
        let range = file_range(start, segment.p_offset, bytes.len());
        found.push(Section { range, address: segment.p_vaddr, ..template });
    }
    found
}

/// What a file should contain after its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingEnd {
    /// Name of the archive member; empty where the file is not an archive.
    pub member: String,
    /// Absolute offset of the header that states the size.
    pub offset: usize,
    /// Where the content would end, as an absolute offset; `None` where a header of a member is damaged.
    pub end: Option<u64>,
}

/// The parts of an ELF file, or of the members of an archive, that are after the end of the file or of the member.
#[must_use]
pub fn missing_ends(file: &[u8]) -> Vec<MissingEnd> {
    if !is_archive(file) {
        return missing_end(file, 0, "").into_iter().collect();
    }
    let (members, end) = read_members(file);
    let whole =
        members.len().saturating_sub(usize::from(end.as_ref().is_some_and(|end| !end.member.is_empty())));
    let in_members = members.iter().take(whole).filter_map(|(name, range)| {
        missing_end(file.get(range.clone()).unwrap_or_default(), range.start, name)
    });
    in_members.chain(end).collect()
}

/// The same of one ELF file, which starts at this offset of the file.
fn missing_end(data: &[u8], start: usize, member: &str) -> Option<MissingEnd> {
    if !Elf::sniff(data) {
        return None;
    }
    let end = Elf::parse(data).ok()?.end();
    let missing = end > data.len() as u64;
    missing.then(|| MissingEnd {
        member: member.to_owned(),
        offset: start,
        end: Some(end.saturating_add(start as u64)),
    })
}

/// The bytes of a section of an object file with all its relocations applied.
#[must_use]
pub fn fully_relocated(file: &[u8], section: &Section) -> Option<Vec<u8>> {
    let elf = Elf::parse(file.get(section.elf.clone())?).ok()?;
    let at = section.range.start.checked_sub(section.elf.start)? as u64;
    let is_section =
        |header: &elf::Elf64SectionHeader| header.sh_offset == at && elf.is_named(header, b".sframe");
    let index = elf.sections.iter().position(is_section)?;
    let mut bytes = Cow::Borrowed(section.raw(file));
    relocation::apply_relocations(&elf, index, &mut bytes, true);
    Some(bytes.into_owned())
}

/// A range of the file, given by an offset in the ELF file at `start`.
fn file_range(start: usize, offset: u64, len: usize) -> Range<usize> {
    let from = start.saturating_add(usize::try_from(offset).unwrap_or(usize::MAX));
    from..from.saturating_add(len)
}

const ARCHIVE_MAGIC: &[u8] = b"!<arch>\n";
const THIN_ARCHIVE_MAGIC: &[u8] = b"!<thin>\n";
const MEMBER_HEADER_BYTES: usize = 60;

/// Whether these first bytes are those of an archive; a thin archive contains only the names of its members.
fn is_archive(head: &[u8]) -> bool {
    head.starts_with(ARCHIVE_MAGIC) || is_thin_archive(head)
}

/// Whether these first bytes are those of a thin archive, whose members are separate files.
fn is_thin_archive(head: &[u8]) -> bool {
    head.starts_with(THIN_ARCHIVE_MAGIC)
}

/// Name and range of each member, in file order, and what is missing where the archive ends within one.
fn read_members(data: &[u8]) -> (Vec<(String, Range<usize>)>, Option<MissingEnd>) {
    let mut members = Vec::new();
    let mut long_names: &[u8] = &[];
    let mut at = ARCHIVE_MAGIC.len();
    while let Some(rest) = data.get(at..).filter(|rest| !rest.iter().all(u8::is_ascii_whitespace)) {
        let header = rest.get(..MEMBER_HEADER_BYTES).unwrap_or_default();
        let Some(size) = parse_decimal(header.get(48..58).unwrap_or_default()) else {
            return (members, Some(MissingEnd { member: String::new(), offset: at, end: None }));
        };
        let start = at.saturating_add(MEMBER_HEADER_BYTES);
        let stated_end = start.saturating_add(size);
        let end = stated_end.min(data.len());
        let content = data.get(start..end).unwrap_or_default();
        let name = header.get(..16).unwrap_or_default().trim_ascii_end();
        match name {
            b"/" | b"/SYM64/" => {}
            b"//" => long_names = content,
            _ => members.push((member_name(name, long_names), start..end)),
        }
        if stated_end > end {
            let member = member_name(name, long_names);
            return (members, Some(MissingEnd { member, offset: at, end: Some(stated_end as u64) }));
        }
        // Members begin at even offsets.
        at = end.saturating_add(end & 1);
    }
    (members, None)
}

fn parse_decimal(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.trim().parse().ok()
}

/// The name of an archive member; long names are in a table.
fn member_name(name: &[u8], long_names: &[u8]) -> String {
    let long = name.strip_prefix(b"/").and_then(parse_decimal).and_then(|at| long_names.get(at..));
    let name = match long {
        Some(bytes_left_after) => bytes_left_after.split(|byte| *byte == b'\n').next().unwrap_or_default(),
        None => name,
    };
    String::from_utf8_lossy(name.strip_suffix(b"/").unwrap_or(name)).into_owned()
}
