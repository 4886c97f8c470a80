//! Lines, inlined calls and declarations of functions from DWARF.

use std::borrow::Cow;
use std::sync::Arc;

use addr2line::Context;
use gimli::{
    AttributeValue, DebuggingInformationEntry, DwAt, EndianSlice, RunTimeEndian, SectionId, UnitOffset,
    UnitRef, constants,
};
use object::{Object, ObjectSection};

use super::image::Image;

pub(super) type DwarfReader = EndianSlice<'static, RunTimeEndian>;

/// A compressed section may unpack to this many times its size; real ones stay below 40.
const MAX_UNPACK_RATIO: u64 = 256;
const MAX_UNPACKED_BYTES: u64 = 4 << 30;

/// The DWARF of a file; units are decoded when an address in them is looked up.
pub(crate) struct Dwarf {
    /// Borrows from `_sources`, so it is declared before it: fields are dropped in order.
    pub(super) context: Context<DwarfReader>,
    _sources: DwarfSources,
}

/// The bytes that the context borrows.
#[derive(Default)]
struct DwarfSources {
    images: Vec<Arc<Image>>,
    unpacked: Vec<Vec<u8>>,
}

/// A function at an address: its name in DWARF, and the source position.
#[derive(Debug, Default)]
pub(crate) struct DwarfFrame<'a> {
    pub(crate) name: Option<&'a [u8]>,
    pub(crate) path: Option<&'a str>,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
}

/// Whether a file has line tables and functions in DWARF.
pub(crate) fn has_dwarf(elf: &object::File<'_>) -> bool {
    // An object file's sections refer to each other by relocations, which nothing here applies.
    elf.kind() != object::ObjectKind::Relocatable
        && elf
            .section_by_name(".debug_info")
            .is_some_and(|section| section.size() > 0 && section.file_range().is_some())
}

impl Dwarf {
    /// Reads the list of units. `supplement` is the file that several debug files share, as dwz writes it.
    ///
    /// # Errors
    /// The reader's message where the DWARF cannot be read at all.
    pub(crate) fn open(image: &Arc<Image>, supplement: Option<&Arc<Image>>) -> Result<Self, String> {
        let mut sources = DwarfSources::default();
        let mut dwarf = sources.sections(image)?;
        if let Some(supplement) = supplement {
            dwarf.set_sup(sources.sections(supplement)?);
        }
        let context = Context::from_dwarf(dwarf).map_err(|error| error.to_string())?;
        Ok(Self { context, _sources: sources })
    }

    /// The functions at an address, the innermost first. Damaged DWARF gives those found up to the damage.
    pub(crate) fn visit(&self, address: u64, mut frame: impl FnMut(DwarfFrame<'_>)) {
        let Ok(mut frames) = self.context.find_frames(address).skip_all_loads() else { return };
        while let Ok(Some(found)) = frames.next() {
            let location = found.location;
            frame(DwarfFrame {
                name: found.function.as_ref().map(|function| function.name.slice()),
                path: location.as_ref().and_then(|location| location.file),
                line: location.as_ref().and_then(|location| location.line).filter(|&line| line != 0),
                column: location.as_ref().and_then(|location| location.column).filter(|&column| column != 0),
            });
        }
    }
}

impl DwarfSources {
    fn sections(&mut self, image: &Arc<Image>) -> Result<gimli::Dwarf<DwarfReader>, String> {
        let elf = image.elf().map_err(|error| error.to_string())?;
        let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        self.images.push(Arc::clone(image));
        gimli::Dwarf::load(|id| Ok(EndianSlice::new(self.section(&elf, id)?, endian)))
    }

    fn section(&mut self, elf: &object::File<'_>, id: SectionId) -> Result<&'static [u8], String> {
        let needed = matches!(
            id,
            SectionId::DebugAbbrev
                | SectionId::DebugAddr
                | SectionId::DebugAranges
                | SectionId::DebugInfo
                | SectionId::DebugLine
                | SectionId::DebugLineStr
                | SectionId::DebugRanges
                | SectionId::DebugRngLists
                | SectionId::DebugStr
                | SectionId::DebugStrOffsets
        );
        let Some(section) = needed.then(|| elf.section_by_name(id.name())).flatten() else { return Ok(&[]) };
        let packed = section.compressed_data().map_err(|error| error.to_string())?;
        let most = MAX_UNPACKED_BYTES.min((packed.data.len() as u64).saturating_mul(MAX_UNPACK_RATIO));
        if packed.format != object::CompressionFormat::None && packed.uncompressed_size > most {
            return Err(format!("{} claims to unpack to {} bytes", id.name(), packed.uncompressed_size));
        }
        Ok(match packed.decompress().map_err(|error| error.to_string())? {
            // SAFETY: these bytes are of an image in `self.images`.
            Cow::Borrowed(bytes) => unsafe { outlive(bytes) },
            Cow::Owned(bytes) => {
                self.unpacked.push(bytes);
                let bytes = self.unpacked.last().map_or(&[][..], Vec::as_slice);
                // SAFETY: the vector is in `self.unpacked`; moving it does not move its bytes.
                unsafe { outlive(bytes) }
            }
        })
    }
}

/// Extends a borrow to the lifetime of [`Dwarf`], which owns the bytes but cannot express that in its type.
///
/// # Safety
/// The bytes are owned by the [`DwarfSources`] of the same [`Dwarf`], and are neither moved nor changed.
unsafe fn outlive<'a>(bytes: &[u8]) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) }
}

type DebugEntry = DebuggingInformationEntry<DwarfReader>;

/// Limit on the references followed from a function to its declaration; real chains have two.
const MAX_REFERENCES: usize = 8;

/// The declaration of a function.
#[derive(Debug, Default)]
pub(crate) struct FunctionDeclaration {
    /// Its linkage name; `None` where no function starts at the address.
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) path: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
}

impl Dwarf {
    /// The function that starts at an address. Where it has no declaration, as with line tables alone, or where no
    /// function starts there, the position is that of the instruction.
    pub(crate) fn declaration(&self, address: u64) -> Option<FunctionDeclaration> {
        let mut frames = self.context.find_frames(address).skip_all_loads().ok()?;
        // The outermost comes last. Its position is that of the call where another function is inlined at its start.
        let (mut function, mut location) = (None, None);
        while let Ok(Some(frame)) = frames.next() {
            function = frame.dw_die_offset.map(|offset| (offset, frame.function));
            location = frame.location;
        }
        let mut found = FunctionDeclaration::default();
        if let Some((offset, name)) = function
            && let Some(unit) = self.context.find_dwarf_and_unit(address).skip_all_loads()
            && let Some(entry) = unit.entry(offset).ok().filter(|entry| starts_at(unit, entry, address))
        {
            found.name = name.map(|name| name.name.slice().to_vec());
            found.declare(unit, entry);
        }
        if let Some(location) = location.filter(|_| found.line.is_none()) {
            found.path = location.file.map(str::to_owned);
            found.line = location.line.filter(|&line| line != 0);
            found.column = location.column.filter(|&column| column != 0);
        }
        Some(found)
    }
}

impl FunctionDeclaration {
    /// Copies file, line and column from an entry; those it lacks, from the entries it refers to. A definition outside of its class
    /// has its own line, and has the file only where that is another than the declaration's.
    fn declare(&mut self, unit: UnitRef<'_, DwarfReader>, mut entry: DebugEntry) {
        for _ in 0..MAX_REFERENCES {
            let value = |name| entry.attr_value(name);
            let number = |name| u32::try_from(value(name)?.udata_value()?).ok().filter(|&number| number != 0);
            self.line = self.line.or_else(|| number(constants::DW_AT_decl_line));
            self.column = self.column.or_else(|| number(constants::DW_AT_decl_column));
            let file = value(constants::DW_AT_decl_file).and_then(|value| match value {
                AttributeValue::FileIndex(file) => Some(file),
                other => other.udata_value(),
            });
            self.path = self.path.take().or_else(|| path(unit, file?));
            if self.line.is_some() && self.path.is_some() {
                return;
            }
            let origin = reference(&entry, constants::DW_AT_abstract_origin);
            let Some(next) = origin.or_else(|| reference(&entry, constants::DW_AT_specification)) else {
                return;
            };
            let Ok(next) = unit.entry(next) else { return };
            entry = next;
        }
    }
}

fn reference(entry: &DebugEntry, name: DwAt) -> Option<UnitOffset> {
    match entry.attr_value(name)? {
        AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}

/// Whether a range of the function's code begins there.
fn starts_at(unit: UnitRef<'_, DwarfReader>, entry: &DebugEntry, address: u64) -> bool {
    let Ok(mut ranges) = unit.die_ranges(entry) else { return false };
    std::iter::from_fn(|| ranges.next().ok().flatten()).any(|range| range.begin == address)
}

/// A file of the unit's line table, with its directories.
fn path(unit: UnitRef<'_, DwarfReader>, file: u64) -> Option<String> {
    let header = unit.line_program.as_ref()?.header();
    let entry = header.file(file)?;
    let mut parts = vec![unit.attr_string(entry.path_name()).ok()?];
    // Directory 0 is the one the compiler ran in.
    if entry.directory_index() != 0 {
        parts.extend(entry.directory(header).and_then(|directory| unit.attr_string(directory).ok()));
    }
    parts.extend(unit.comp_dir);
    let mut whole = String::new();
    for part in parts.iter().rev().map(|part| String::from_utf8_lossy(part.slice())) {
        if part.starts_with('/') {
            whole.clear();
        } else if !whole.is_empty() && !whole.ends_with('/') {
            whole.push('/');
        }
        whole.push_str(&part);
    }
    Some(whole)
}
