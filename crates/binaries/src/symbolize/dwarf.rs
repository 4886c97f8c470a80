//! Lines, inlined calls and declarations of functions from DWARF.

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;

use addr2line::{LookupContinuation, LookupResult};
use gimli::{AttributeValue, UnitOffset, UnitRef, constants};
use object::{Object, ObjectSection};
use rustc_hash::FxHashMap;

use super::dwarf_sections::{DwarfReader, DwarfSources};
use super::dwarf_units::{DwarfUnits, Units};
use super::image::Image;
use super::scoped_names::{DebugEntry, MAX_REFERENCES, ScopedNames, is_scoped, reference};
use super::split_dwarf::{SplitDwarf, SplitFiles};

/// The DWARF of a file; units are decoded when an address in them is looked up.
pub(crate) struct Dwarf {
    /// Borrows from `sources`, as `split` does; declared before it, since fields are dropped in order.
    units: DwarfUnits,
    split: SplitDwarf,
    /// By the place of the unit in memory, which `units` has as long as this exists.
    scoped_names: RefCell<FxHashMap<usize, ScopedNames>>,
    sources: RefCell<DwarfSources>,
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
    /// Reads the addresses of the units of a program, or of its debug file. `supplement` is the file that several debug files share, as dwz writes it; `split` finds
    /// those that have the rest of units.
    ///
    /// # Errors
    /// The reader's message where the DWARF cannot be read at all.
    pub(crate) fn open(
        program: &Path,
        image: &Arc<Image>,
        supplement: Option<&Arc<Image>>,
        split: Arc<dyn SplitFiles>,
    ) -> Result<Self, String> {
        let mut sources = DwarfSources::default();
        let mut dwarf = sources.sections(image)?;
        if let Some(supplement) = supplement {
            dwarf.set_sup(sources.sections(supplement)?);
        }
        let units = DwarfUnits::new(dwarf)?;
        let mut programs = vec![program.to_owned(), image.path.clone()];
        programs.dedup();
        let (split, scoped_names) = (SplitDwarf::new(programs, split), RefCell::default());
        Ok(Self { units, split, scoped_names, sources: RefCell::new(sources) })
    }

    /// What of the units that were looked up was not found, or is damaged: their inlined calls and declarations are unknown.
    pub(crate) fn missing(&self) -> Option<String> {
        self.units.damage().or_else(|| self.split.missing())
    }

    /// The result of a lookup, for which the rest of split units is read.
    fn whole<L: LookupContinuation<Buf = DwarfReader>>(&self, mut lookup: LookupResult<L>) -> L::Output {
        loop {
            match lookup {
                LookupResult::Output(found) => return found,
                LookupResult::Load { load, continuation } => {
                    lookup = continuation.resume(self.split.load(&load, &mut self.sources.borrow_mut()));
                }
            }
        }
    }

    /// The functions at an address, the innermost first. Damaged DWARF gives those found up to the damage.
    pub(crate) fn visit(&self, address: u64, mut frame: impl FnMut(DwarfFrame<'_>)) {
        let Some(units) = self.units.at(address) else { return };
        let Ok(mut frames) = self.whole(units.find_frames(address)) else { return };
        while let Ok(Some(found)) = frames.next() {
            let location = found.location;
            let raw = found.function.as_ref().map(|function| function.name.slice());
            let is_scoped = found.function.as_ref().is_some_and(|function| is_scoped(function.language));
            let has_scope = is_scoped && raw.is_some_and(|raw| !raw.starts_with(b"_Z"));
            let entry = found.dw_die_offset.filter(|_| has_scope);
            let whole = entry.and_then(|entry| self.scoped_name(units, address, entry));
            let is_its = |whole: &&[u8]| raw.is_some_and(|raw| whole.ends_with(raw));
            frame(DwarfFrame {
                name: whole.as_ref().map(String::as_bytes).filter(is_its).or(raw),
                path: location.as_ref().and_then(|location| location.file),
                line: location.as_ref().and_then(|location| location.line).filter(|&line| line != 0),
                column: location.as_ref().and_then(|location| location.column).filter(|&column| column != 0),
            });
        }
    }
}

impl Dwarf {
    /// The name of an inlined function with the classes and functions that it is declared in.
    fn scoped_name(&self, units: &Units, address: u64, entry: UnitOffset) -> Option<String> {
        let unit = self.whole(units.find_dwarf_and_unit(address))?;
        // The function around them has the name of its symbol.
        if unit.entry(entry).ok()?.tag() != constants::DW_TAG_inlined_subroutine {
            return None;
        }
        let place = std::ptr::from_ref(unit.unit).addr();
        let mut names = self.scoped_names.borrow_mut();
        names.entry(place).or_insert_with(|| ScopedNames::of(unit)).find(unit, entry)
    }
}

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
        let units = self.units.at(address)?;
        let mut frames = self.whole(units.find_frames(address)).ok()?;
        // The outermost comes last. Its position is that of the call where another function is inlined at its start.
        let (mut function, mut location) = (None, None);
        while let Ok(Some(frame)) = frames.next() {
            function = frame.dw_die_offset.map(|offset| (offset, frame.function));
            location = frame.location;
        }
        let mut found = FunctionDeclaration::default();
        if let Some((offset, name)) = function
            && let Some(unit) = self.whole(units.find_dwarf_and_unit(address))
            && let Some(entry) = unit.entry(offset).ok().filter(|entry| starts_at(unit, entry, address))
        {
            found.name = name.map(|name| name.name.slice().to_vec());
            found.declare(unit, entry);
        }
        let Some(location) = location else { return Some(found) };
        if found.line.is_none() {
            found.path = location.file.map(str::to_owned);
            found.line = location.line.filter(|&line| line != 0);
            found.column = location.column.filter(|&column| column != 0);
        } else if found.path.is_none() {
            // The files of a split unit of version 4 are those of the program's line table.
            found.path = location.file.map(str::to_owned);
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
