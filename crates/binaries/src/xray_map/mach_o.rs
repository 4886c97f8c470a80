use std::ops::Range;

use object::read::macho::{MachHeader, MachOFile};
use object::{
    Architecture, Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, Relocation, RelocationKind,
    RelocationTarget, SectionKind, SymbolIndex,
};

use super::container::{Code, Container, Section};
use super::error::Error;
use super::findings::{BEYOND_FILE, Findings, OVERLAPPING};
use super::map::Place;
use super::words::Words;

const MAP: &[u8] = b"xray_instr_map";
const INDEX: &[u8] = b"xray_fn_idx";

/// Finds the map in a Mach-O file, or in the slice of a universal one that these bytes are.
///
/// # Errors
/// When load commands make no sense, or there is no section of the map.
pub(super) fn container<'data, Mach: MachHeader<Endian = Endianness>>(
    data: &'data [u8],
    slice: Range<usize>,
    findings: &mut Findings,
) -> Result<Container<'data>, Error> {
    let file = MachOFile::<Mach>::parse(data)?;
    let words = Words { endian: file.endian(), size: if file.is_64() { 8 } else { 4 } };
    let is_relocatable = file.kind() == ObjectKind::Relocatable;
    let left = data.len();
    let base = slice.start as u64;
    let mut reader =
        Reader { file: &file, data, base, words, unread_bytes: left, unread_relocations: left, findings };
    let maps = reader.named(MAP);
    if maps.is_empty() {
        return Err(Error::NoMap("there is no section xray_instr_map"));
    }
    let mut indexes = if is_relocatable { Vec::new() } else { reader.named(INDEX) };
    let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
    let code = Code::new(code.map(|section| (place(section.address()), section.size())));
    Ok(Container {
        architecture: architecture(file.architecture()),
        is_mach_o: true,
        words,
        is_relocatable,
        maps,
        index: indexes.pop().filter(|_| indexes.is_empty()),
        code,
        section_names: Vec::new(),
        slice,
    })
}

/// Sections of a Mach-O file have addresses, linked or not.
fn place(address: u64) -> Place {
    Place { section: None, address }
}

struct Reader<'a, 'data, Mach: MachHeader<Endian = Endianness>> {
    file: &'a MachOFile<'data, Mach>,
    data: &'data [u8],
    /// Offset of the slice in the file.
    base: u64,
    words: Words,
    /// Bytes that sections of the map may still have in all, as in ELF.
    unread_bytes: usize,
    unread_relocations: usize,
    findings: &'a mut Findings,
}

impl<'data, Mach: MachHeader<Endian = Endianness>> Reader<'_, 'data, Mach> {
    fn named(&mut self, wanted: &[u8]) -> Vec<Section<'data>> {
        let mut sections = Vec::new();
        for section in
            self.file.sections().filter(|section| section.name_bytes().is_ok_and(|name| name == wanted))
        {
            let Some((offset, size)) = section.file_range() else { continue };
            let name = String::from_utf8_lossy(wanted);
            let tail =
                usize::try_from(offset).ok().and_then(|start| self.data.get(start..)).unwrap_or_default();
            let bytes = &tail[..tail.len().min(usize::try_from(size).unwrap_or(usize::MAX))];
            let file_offset = self.base + offset.min(self.data.len() as u64);
            if (bytes.len() as u64) < size {
                self.findings.at(BEYOND_FILE, file_offset, || {
                    format!("{name} has {size} bytes, and the file has {} of them", bytes.len())
                });
            }
            if bytes.len() > self.unread_bytes {
                self.findings.at(OVERLAPPING, file_offset, || {
                    format!("sections {name} have more bytes than the file; one of {size} bytes and later ones are left out")
                });
                break;
            }
            self.unread_bytes -= bytes.len();
            let mut found = Section::new(section.address(), file_offset, bytes);
            for (at, relocation) in section.relocations().take(self.unread_relocations) {
                self.unread_relocations -= 1;
                if let Some(place) = self.target(&found, at, &relocation) {
                    found.relocated.insert(at, place);
                }
            }
            sections.push(found);
        }
        sections
    }

    /// Where a field points by its relocation: to a symbol, or as far from the field as from a label near it.
    fn target(&self, section: &Section<'_>, at: u64, relocation: &Relocation) -> Option<Option<Place>> {
        if relocation.kind() != RelocationKind::Absolute {
            return None;
        }
        let in_place = self.words.read(section.bytes, usize::try_from(at).ok()?)?;
        let symbol = |index| Some(self.file.symbol_by_index(index).ok()?.address());
        let resolved = match relocation.subtractor() {
            None => self.absolute(relocation.target(), in_place, symbol),
            Some(label) => self.absolute(relocation.target(), in_place, symbol).and_then(|to| {
                let from_label = section.address.wrapping_add(at).wrapping_sub(symbol(label)?);
                Some(to.wrapping_add(from_label))
            }),
        };
        Some(resolved.map(|address| place(self.words.wrap(address))))
    }

    fn absolute(
        &self,
        target: RelocationTarget,
        in_place: u64,
        symbol: impl Fn(SymbolIndex) -> Option<u64>,
    ) -> Option<u64> {
        match target {
            RelocationTarget::Symbol(index) => Some(symbol(index)?.wrapping_add(in_place)),
            // The field has the address already: the section says only what it moves with.
            RelocationTarget::Section(_) => Some(in_place),
            _ => None,
        }
    }
}

/// What ELF calls the machine.
fn architecture(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "x86_64",
        Architecture::Aarch64 | Architecture::Aarch64_Ilp32 => "aarch64",
        Architecture::I386 => "i386",
        Architecture::Arm => "arm",
        _ => "unknown",
    }
}
