//! Units of debug information by address.
//!
//! A reader of all units decodes the start of each, and a large library has thousands of which a recording needs a few. Where a
//! table states the addresses of units (`.debug_aranges`, which gcc writes), a unit that is looked up has a reader of its own.

use std::cell::{OnceCell, RefCell};

use addr2line::Context;
use gimli::{DebugInfoOffset, Reader, Section, UnitHeader, constants};

use super::dwarf_sections::DwarfReader;

/// The readers of the units of a file, made when an address of theirs is looked up.
pub(super) struct DwarfUnits {
    sections: gimli::Dwarf<DwarfReader>,
    stated: StatedRanges,
    are_all_stated: OnceCell<bool>,
    /// By number of the unit in `stated`; `None` for one that cannot be read without others.
    single: Vec<OnceCell<Option<Box<Units>>>>,
    all: OnceCell<Option<Box<Units>>>,
    damage: RefCell<Option<String>>,
}

/// A reader of one unit, or of all.
pub(super) type Units = Context<DwarfReader>;

impl DwarfUnits {
    /// The units in these sections.
    ///
    /// # Errors
    /// The reader's message where all units are needed, and cannot be read.
    pub(super) fn new(sections: gimli::Dwarf<DwarfReader>) -> Result<Self, String> {
        // Units of a file that shares entries with others refer to each other.
        let has_own_entries = sections.sup.is_none();
        let stated =
            has_own_entries.then(|| StatedRanges::read(&sections).ok()).flatten().unwrap_or_default();
        let mut single = Vec::new();
        single.resize_with(stated.units.len(), OnceCell::new);
        let (are_all_stated, all, damage) = Default::default();
        let units = Self { sections, stated, are_all_stated, single, all, damage };
        if units.stated.units.is_empty() && units.all().is_none() {
            return Err(units.damage.into_inner().unwrap_or_default());
        }
        Ok(units)
    }

    /// The reader of the unit that has an address; `None` where none has.
    pub(super) fn at(&self, address: u64) -> Option<&Units> {
        match self.stated.find(address) {
            Some(Owner::Unit(number)) => self.one(number).or_else(|| self.all()),
            Some(Owner::Several) => self.all(),
            None if self.are_all_stated() => None,
            None => self.all(),
        }
    }

    /// What could not be read.
    pub(super) fn damage(&self) -> Option<String> {
        self.damage.borrow().clone()
    }

    fn all(&self) -> Option<&Units> {
        self.all.get_or_init(|| self.reader(self.sections.debug_info, self.sections.debug_aranges)).as_deref()
    }

    fn one(&self, number: usize) -> Option<&Units> {
        let open = || {
            let info = unit_alone(&self.sections, *self.stated.units.get(number)?).ok().flatten()?;
            self.reader(info, gimli::DebugAranges::default())
        };
        self.single.get(number)?.get_or_init(open).as_deref()
    }

    /// A reader of the units in `.debug_info` or in a part of it.
    fn reader(
        &self,
        debug_info: gimli::DebugInfo<DwarfReader>,
        debug_aranges: gimli::DebugAranges<DwarfReader>,
    ) -> Option<Box<Units>> {
        let all = &self.sections;
        let sections = gimli::Dwarf {
            debug_abbrev: all.debug_abbrev,
            debug_addr: all.debug_addr,
            debug_aranges,
            debug_info,
            debug_line: all.debug_line,
            debug_line_str: all.debug_line_str,
            debug_str: all.debug_str,
            debug_str_offsets: all.debug_str_offsets,
            ranges: all.ranges,
            file_type: all.file_type,
            sup: all.sup.clone(),
            ..gimli::Dwarf::default()
        };
        match Context::from_dwarf(sections) {
            Ok(units) => Some(Box::new(units)),
            Err(error) => {
                self.damage.borrow_mut().get_or_insert_with(|| error.to_string());
                None
            }
        }
    }

    /// Whether no unit has code at addresses that are not stated.
    fn are_all_stated(&self) -> bool {
        *self.are_all_stated.get_or_init(|| {
            let mut headers = self.sections.units();
            std::iter::from_fn(|| headers.next().transpose()).all(|header| {
                perfuse_stopping::checkpoint();
                let is_stated = |header: &UnitHeader<DwarfReader>| {
                    header
                        .debug_info_offset()
                        .is_some_and(|offset| self.stated.units.binary_search(&offset).is_ok())
                };
                header
                    .is_ok_and(|header| is_stated(&header) || has_no_code(&self.sections, header) == Ok(true))
            })
        })
    }
}

/// The part of `.debug_info` with one unit; `None` where its entries refer to those of others.
fn unit_alone(
    sections: &gimli::Dwarf<DwarfReader>,
    offset: DebugInfoOffset,
) -> gimli::Result<Option<gimli::DebugInfo<DwarfReader>>> {
    let header = sections.debug_info.header_from_offset(offset)?;
    let mut abbreviations = *sections.debug_abbrev.reader();
    abbreviations.skip(header.debug_abbrev_offset().0)?;
    if refers_to_others(abbreviations)? {
        return Ok(None);
    }
    let mut info = *sections.debug_info.reader();
    info.skip(offset.0)?;
    Ok(Some(info.split(header.length_including_self())?.into()))
}

/// Whether entries with these abbreviations may refer to entries of other units.
fn refers_to_others(mut abbreviations: DwarfReader) -> gimli::Result<bool> {
    while abbreviations.read_uleb128()? != 0 {
        let _tag = abbreviations.read_uleb128()?;
        let _has_children = abbreviations.read_u8()?;
        loop {
            let (name, form) = (abbreviations.read_uleb128()?, abbreviations.read_uleb128_u16()?);
            match gimli::DwForm(form) {
                constants::DW_FORM_null if name == 0 => break,
                constants::DW_FORM_implicit_const => _ = abbreviations.read_sleb128()?,
                constants::DW_FORM_ref_addr
                | constants::DW_FORM_ref_sup4
                | constants::DW_FORM_ref_sup8
                | constants::DW_FORM_GNU_ref_alt
                | constants::DW_FORM_indirect => return Ok(true),
                _ => {}
            }
        }
    }
    Ok(false)
}

/// Whether a unit states no addresses itself.
fn has_no_code(sections: &gimli::Dwarf<DwarfReader>, header: UnitHeader<DwarfReader>) -> gimli::Result<bool> {
    let unit = sections.unit(header)?;
    let mut entries = unit.entries();
    let Some(root) = entries.next_dfs()? else { return Ok(true) };
    let addresses = [constants::DW_AT_low_pc, constants::DW_AT_ranges];
    Ok(root.tag() != constants::DW_TAG_partial_unit
        && addresses.iter().all(|name| root.attr_value(*name).is_none()))
}

/// The addresses of units, as `.debug_aranges` states them.
#[derive(Debug, Default)]
struct StatedRanges {
    /// First address, first address after it, and whose it is; sorted, without overlaps.
    ranges: Vec<(u64, u64, Owner)>,
    /// The units that have addresses, in the order of the file.
    units: Vec<DebugInfoOffset>,
}

/// What has a range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// A unit, by number.
    Unit(usize),
    /// More than one unit.
    Several,
}

impl StatedRanges {
    fn read(sections: &gimli::Dwarf<DwarfReader>) -> gimli::Result<Self> {
        let mut stated = Vec::new();
        let mut headers = sections.debug_aranges.headers();
        while let Some(header) = headers.next()? {
            perfuse_stopping::checkpoint();
            let mut entries = header.entries();
            while let Some(entry) = entries.next()? {
                // Functions that a linker has discarded are at address 0.
                if entry.length() != 0 && entry.address() != 0 {
                    stated.push((entry.range(), header.debug_info_offset()));
                }
            }
        }
        let mut units: Vec<_> = stated.iter().map(|(_, unit)| *unit).collect();
        units.sort_unstable();
        units.dedup();
        let owner = |unit| units.binary_search(&unit).map_or(Owner::Several, Owner::Unit);
        let ranges = stated.into_iter().map(|(range, unit)| (range.begin, range.end, owner(unit))).collect();
        Ok(Self { ranges: without_overlaps(ranges), units })
    }

    fn find(&self, address: u64) -> Option<Owner> {
        let after = self.ranges.partition_point(|(start, ..)| *start <= address);
        let (_, end, owner) = *self.ranges.get(after.checked_sub(1)?)?;
        (address < end).then_some(owner)
    }
}

/// Sorts ranges. Those that overlap become one, which several units have.
fn without_overlaps(mut ranges: Vec<(u64, u64, Owner)>) -> Vec<(u64, u64, Owner)> {
    ranges.sort_unstable();
    ranges.dedup_by(|(start, end, owner), (_, last_end, last_owner)| {
        let is_overlapping = *start < *last_end;
        if is_overlapping {
            *last_end = (*last_end).max(*end);
            if owner != last_owner {
                *last_owner = Owner::Several;
            }
        }
        is_overlapping
    });
    ranges
}

#[cfg(test)]
mod tests {
    use super::{Owner, StatedRanges, without_overlaps};

    #[test]
    fn ranges_that_overlap_are_of_several_units() {
        let unit = Owner::Unit;
        let ranges =
            vec![(0x40, 0x50, unit(1)), (0x10, 0x30, unit(0)), (0x20, 0x38, unit(2)), (0x48, 0x60, unit(1))];
        let stated = StatedRanges { ranges: without_overlaps(ranges), units: Vec::new() };
        let found = |address| stated.find(address);
        assert_eq!(
            [found(0xf), found(0x10), found(0x37), found(0x38)],
            [None, Some(Owner::Several), Some(Owner::Several), None]
        );
        assert_eq!([found(0x40), found(0x5f), found(0x60)], [Some(unit(1)), Some(unit(1)), None]);
    }
}
