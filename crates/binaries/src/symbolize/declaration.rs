use gimli::{AttributeValue, DebuggingInformationEntry, DwAt, UnitOffset, UnitRef, constants};

use super::dwarf::{Dwarf, Reader};

type Entry = DebuggingInformationEntry<Reader>;

/// References from a function to its declaration that are followed at most; real chains have two.
const MAX_REFERENCES: usize = 8;

/// Where DWARF says a function is declared.
#[derive(Debug, Default)]
pub(crate) struct Declaration {
    /// As the linker knows it; `None` where no function starts at the address.
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) path: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) column: Option<u32>,
}

impl Dwarf {
    /// The function that starts at an address. Where it has no declaration, as with line tables alone, or where none
    /// starts there, the position is that of the instruction.
    pub(crate) fn declaration(&self, address: u64) -> Option<Declaration> {
        let mut frames = self.context.find_frames(address).skip_all_loads().ok()?;
        // The outermost comes last. Its position is that of the call where another function is inlined at its start.
        let (mut function, mut location) = (None, None);
        while let Ok(Some(frame)) = frames.next() {
            function = frame.dw_die_offset.map(|offset| (offset, frame.function));
            location = frame.location;
        }
        let mut found = Declaration::default();
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

impl Declaration {
    /// Takes file, line and column from an entry; what it lacks, from those it refers to. A definition outside of its class
    /// has its own line, and has the file only where that is another than the declaration's.
    fn declare(&mut self, unit: UnitRef<'_, Reader>, mut entry: Entry) {
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

fn reference(entry: &Entry, name: DwAt) -> Option<UnitOffset> {
    match entry.attr_value(name)? {
        AttributeValue::UnitRef(offset) => Some(offset),
        _ => None,
    }
}

/// Whether a range of the function's code begins there.
fn starts_at(unit: UnitRef<'_, Reader>, entry: &Entry, address: u64) -> bool {
    let Ok(mut ranges) = unit.die_ranges(entry) else { return false };
    std::iter::from_fn(|| ranges.next().ok().flatten()).any(|range| range.begin == address)
}

/// A file of the unit's line table, with its directories.
fn path(unit: UnitRef<'_, Reader>, file: u64) -> Option<String> {
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
