//! Maps and function names of Mach-O files.

use std::ops::Range;
use std::sync::Arc;

use object::read::macho::{MachHeader, MachOFile};
use object::{
    Architecture, Endianness, File, Object, ObjectKind, ObjectSection, ObjectSymbol, Relocation,
    RelocationKind, RelocationTarget, SectionKind, SymbolIndex, SymbolKind,
};
use rustc_hash::FxHashMap;

use super::container::{CodeRanges, Container, MapSection, WordFormat};
use super::findings::{BEYOND_FILE, Error, MapFindings, OVERLAPPING};
use super::map::{CodeLocation, InstrumentedFunction};
use crate::symbolize::{NameCache, SymbolFrame, by_familiarity};

const MAP: &[u8] = b"xray_instr_map";
const INDEX: &[u8] = b"xray_fn_idx";

/// Finds the map in a Mach-O file, or in the slice of a universal one that these bytes are.
///
/// # Errors
/// When load commands are damaged, or there is no section of the map.
pub(super) fn container<'data, Mach: MachHeader<Endian = Endianness>>(
    data: &'data [u8],
    slice: Range<usize>,
    findings: &mut MapFindings,
) -> Result<Container<'data>, Error> {
    let file = MachOFile::<Mach>::parse(data)?;
    let words = WordFormat { endian: file.endian(), size: if file.is_64() { 8 } else { 4 } };
    let is_relocatable = file.kind() == ObjectKind::Relocatable;
    let left = data.len();
    let base = slice.start as u64;
    let mut reader = MachOReader {
        file: &file,
        data,
        base,
        words,
        unread_bytes: left,
        unread_relocations: left,
        findings,
    };
    let maps = reader.named(MAP);
    if maps.is_empty() {
        return Err(Error::NoMap("there is no section xray_instr_map"));
    }
    let mut indexes = if is_relocatable { Vec::new() } else { reader.named(INDEX) };
    let code = file.sections().filter(|section| section.kind() == SectionKind::Text);
    let code = CodeRanges::new(code.map(|section| (location(section.address()), section.size())));
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

/// The location of an address: sections of a Mach-O file have addresses, linked or not.
fn location(address: u64) -> CodeLocation {
    CodeLocation { section: None, address }
}

/// Reads sections of the map and their relocations.
struct MachOReader<'a, 'data, Mach: MachHeader<Endian = Endianness>> {
    file: &'a MachOFile<'data, Mach>,
    data: &'data [u8],
    /// Offset of the slice in the file.
    base: u64,
    words: WordFormat,
    /// Limit on the remaining bytes of the map, as in ELF.
    unread_bytes: usize,
    unread_relocations: usize,
    findings: &'a mut MapFindings,
}

impl<'data, Mach: MachHeader<Endian = Endianness>> MachOReader<'_, 'data, Mach> {
    /// The sections with a name; bytes after the end of the file are missing.
    fn named(&mut self, section_name: &[u8]) -> Vec<MapSection<'data>> {
        let mut sections = Vec::new();
        for section in
            self.file.sections().filter(|section| section.name_bytes().is_ok_and(|name| name == section_name))
        {
            let Some((offset, size)) = section.file_range() else { continue };
            let name = String::from_utf8_lossy(section_name);
            let tail =
                usize::try_from(offset).ok().and_then(|start| self.data.get(start..)).unwrap_or_default();
            let len = tail.len().min(usize::try_from(size).unwrap_or(usize::MAX));
            let bytes = tail.get(..len).unwrap_or(tail);
            let file_offset = self.base.saturating_add(offset.min(self.data.len() as u64));
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
            self.unread_bytes = self.unread_bytes.saturating_sub(bytes.len());
            let mut found = MapSection::new(section.address(), file_offset, bytes);
            for (at, relocation) in section.relocations().take(self.unread_relocations) {
                self.unread_relocations = self.unread_relocations.saturating_sub(1);
                if let Some(target) = self.target(&found, at, &relocation) {
                    found.relocated.insert(at, target);
                }
            }
            sections.push(found);
        }
        sections
    }

    /// The target of a field by its relocation: a symbol, or a distance that is relative to the field or to a label near it.
    fn target(
        &self,
        section: &MapSection<'_>,
        at: u64,
        relocation: &Relocation,
    ) -> Option<Option<CodeLocation>> {
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
        Some(resolved.map(|address| location(self.words.wrap(address))))
    }

    fn absolute(
        &self,
        target: RelocationTarget,
        in_place: u64,
        symbol: impl Fn(SymbolIndex) -> Option<u64>,
    ) -> Option<u64> {
        match target {
            RelocationTarget::Symbol(index) => Some(symbol(index)?.wrapping_add(in_place)),
            // The field already contains the address: the section only states what it moves with.
            RelocationTarget::Section(_) => Some(in_place),
            _ => None,
        }
    }
}

/// Name of a machine, as for ELF.
fn architecture(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::X86_64 => "x86_64",
        Architecture::Aarch64 | Architecture::Aarch64_Ilp32 => "aarch64",
        Architecture::I386 => "i386",
        Architecture::Arm => "arm",
        _ => "unknown",
    }
}

/// Names of functions in the symbol table of a Mach-O file.
pub(super) fn names(data: &[u8], functions: &[InstrumentedFunction]) -> Vec<Option<SymbolFrame>> {
    let Ok(file) = File::parse(data) else { return vec![None; functions.len()] };
    let mut symbols: FxHashMap<u64, (bool, &[u8])> = FxHashMap::default();
    for symbol in file.symbols().filter(|symbol| symbol.is_definition() && symbol.kind() == SymbolKind::Text)
    {
        let Ok(name) = symbol.name_bytes() else { continue };
        // Compilers put a symbol of their own, `ltmp0`, at the start of each section; those of programs begin with `_`.
        let Some(name) = name.strip_prefix(b"_") else { continue };
        let found = (symbol.is_global(), name);
        let best = symbols.entry(symbol.address()).or_insert(found);
        if best.0.cmp(&found.0).then_with(|| by_familiarity(best.1, found.1)).is_lt() {
            *best = found;
        }
    }
    let mut cache = NameCache::default();
    let name = |function: &InstrumentedFunction| {
        let (_, raw) = symbols.get(&function.location?.address)?;
        let name = cache.name(raw);
        let linkage_name: Option<Arc<str>> = name.linkage;
        Some(SymbolFrame { name: name.shown, linkage_name, path: None, line: None, column: None })
    };
    functions.iter().map(name).collect()
}
