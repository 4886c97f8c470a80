//! Decodes the entries of a map and numbers the functions.

use std::ops::Range;

use super::container::{Container, MapSection};
use super::findings::{
    MapFindings, OUTSIDE_CODE, PARTIAL_ENTRY, RENUMBERED, UNFIT_INDEX, UNKNOWN_KIND, UNKNOWN_VERSION,
    UNRELOCATED,
};
use super::map::{CodeLocation, InstrumentationMap, InstrumentedFunction, Sled, SledKind};

/// Decodes a map; `findings` are those about its file.
pub(super) fn decode(container: &Container<'_>, mut findings: MapFindings) -> InstrumentationMap {
    let sleds = decode_sleds(container, &mut findings);
    let functions = number_functions(container, &sleds, &mut findings);
    InstrumentationMap {
        architecture: container.architecture,
        pointer_bytes: container.words.size,
        sleds,
        functions,
        findings: findings.into_vec(),
        section_names: container.section_names.clone(),
        slice: container.slice.clone(),
        is_mach_o: container.is_mach_o,
    }
}

/// Since this version addresses are relative to the field they are in.
const RELATIVE_VERSION: u8 = 2;

/// Decodes every whole entry of every section of the map.
fn decode_sleds(container: &Container<'_>, findings: &mut MapFindings) -> Vec<Sled> {
    let size = container.entry_bytes();
    // The sections have no more bytes in all than the file.
    let num_entries =
        container.maps.iter().fold(0_usize, |sum, map| sum.saturating_add(map.num_entries(size)));
    let mut sleds = Vec::with_capacity(num_entries);
    for map in &container.maps {
        let mut reader = SledReader { container, map, findings };
        let offsets = (0..map.bytes.len()).step_by(size).take(map.num_entries(size));
        sleds.extend(offsets.filter_map(|offset| reader.entry(offset)));
        let rest = map.bytes.len().checked_rem(size).unwrap_or(0);
        if rest != 0 {
            let whole = map.bytes.len().saturating_sub(rest) as u64;
            findings.at(PARTIAL_ENTRY, map.file_offset.saturating_add(whole), || {
                format!(
                    "{rest} bytes are left after the last entry of xray_instr_map, and an entry has {size}"
                )
            });
        }
    }
    sleds
}

/// Decodes the entries of a section of the map.
struct SledReader<'a, 'data> {
    container: &'a Container<'data>,
    map: &'a MapSection<'data>,
    findings: &'a mut MapFindings,
}

impl SledReader<'_, '_> {
    fn entry(&mut self, at: usize) -> Option<Sled> {
        let word = self.container.words.bytes();
        let function_at = at.checked_add(word)?;
        let kind_at = function_at.checked_add(word)?;
        let &[kind, always_instrument, version] = self.map.bytes.get(kind_at..)?.first_chunk()?;
        let kind = SledKind(kind);
        let offset = self.map.file_offset.saturating_add(at as u64);
        let kind_offset = self.map.file_offset.saturating_add(kind_at as u64);
        if kind.name().is_none() {
            let message = || format!("a sled has kind {}; 0 to 5 are known", kind.0);
            self.findings.at(UNKNOWN_KIND, kind_offset, message);
        }
        if version > RELATIVE_VERSION {
            let message =
                || format!("an entry has version {version}; it was read as version {RELATIVE_VERSION}");
            self.findings.at(UNKNOWN_VERSION, kind_offset.saturating_add(2), message);
        }
        let location = self.address(at, version, "a sled");
        let function = self.address(function_at, version, "a function");
        Some(Sled { location, function, kind, always_instrument: always_instrument != 0, version, offset })
    }

    /// Decodes the address in the field at an offset; `what` is its meaning, for messages.
    fn address(&mut self, at: usize, version: u8, what: &str) -> Option<CodeLocation> {
        let offset = self.map.file_offset.saturating_add(at as u64);
        let location = match self.map.relocated.get(&(at as u64)) {
            Some(relocated) => *relocated,
            None if self.container.is_relocatable => None,
            None => Some(self.in_place(at, version)?),
        };
        match location {
            None => self.findings.at(UNRELOCATED, offset, || {
                format!("the address of {what} is not known: no relocation of its field can be resolved")
            }),
            Some(location) if !self.container.code.contains(location) => {
                self.findings.at(OUTSIDE_CODE, offset, || {
                    format!("the address of {what}, {:#x}, is in no section with code", location.address)
                })
            }
            Some(_) => {}
        }
        location
    }

    /// The address in a field without a relocation.
    fn in_place(&self, at: usize, version: u8) -> Option<CodeLocation> {
        let value = self.container.words.read(self.map.bytes, at)?;
        let from = |base: u64| {
            let address = self.container.words.wrap(base.wrapping_add(value));
            CodeLocation { section: None, address }
        };
        let (absolute, relative) = (from(0), from(self.map.address.wrapping_add(at as u64)));
        let (stated, other) =
            if version < RELATIVE_VERSION { (absolute, relative) } else { (relative, absolute) };
        // clang 14 for Hexagon writes version 0 with the addresses of version 2.
        let is_in_code = |location| self.container.code.contains(location);
        let is_other = version != RELATIVE_VERSION && !is_in_code(stated) && is_in_code(other);
        Some(if is_other { other } else { stated })
    }
}

/// Numbers functions as the runtime does: by the index where there is a valid one, else by changes of address.
fn number_functions(
    container: &Container<'_>,
    sleds: &[Sled],
    findings: &mut MapFindings,
) -> Vec<InstrumentedFunction> {
    let by_address = by_address(sleds);
    let Some(section) = &container.index else { return by_address };
    let Some(by_index) = index_functions(container, section, sleds, findings) else { return by_address };
    let differing = by_index.iter().zip(&by_address).find(|(one, other)| one != other);
    let differing = differing.map(|(one, _)| one.id);
    let shorter = || by_index.len().min(by_address.len()) as u32;
    if let Some(id) =
        differing.or_else(|| (by_index.len() != by_address.len()).then(|| shorter().saturating_add(1)))
    {
        findings.at(RENUMBERED, section.file_offset, || {
            format!(
                "xray_fn_idx has {} functions and the map {} changes of address; ids are the runtime's, by xray_fn_idx, \
                 and others from {id} on in llvm-xray",
                by_index.len(),
                by_address.len()
            )
        });
    }
    by_index
}

/// A new function begins where the function address differs from that of the preceding entry.
fn by_address(sleds: &[Sled]) -> Vec<InstrumentedFunction> {
    let mut functions: Vec<InstrumentedFunction> = Vec::new();
    for (at, sled) in sleds.iter().enumerate() {
        match functions.last_mut() {
            Some(last) if last.location == sled.function => last.sleds.end = at.saturating_add(1),
            _ => {
                let id = (functions.len() as u32).saturating_add(1);
                let sleds = at..at.saturating_add(1);
                functions.push(InstrumentedFunction { id, location: sled.function, sleds });
            }
        }
    }
    functions
}

/// The functions of `xray_fn_idx`: id N is its Nth entry. `None` where it does not match the map.
///
/// An entry has two words, and nothing states which two: since LLVM 17 the distance from itself to the first sled and the
/// number of sleds, before that the addresses of the first sled and of the end of the last. All entries have to match one form.
fn index_functions(
    container: &Container<'_>,
    section: &MapSection<'_>,
    sleds: &[Sled],
    findings: &mut MapFindings,
) -> Option<Vec<InstrumentedFunction>> {
    let index = FunctionIndex { container, section };
    // The form that matches more entries is the likelier one.
    let absolute = |counted| index.ranges(IndexForm::Absolute).map_err(|entry: usize| entry.max(counted));
    match index.ranges(IndexForm::Counted).or_else(absolute) {
        Err(entry) => {
            let offset = section.file_offset.saturating_add(entry.saturating_mul(index.entry_bytes()) as u64);
            findings.at(UNFIT_INDEX, offset, || {
                format!("entry {entry} of xray_fn_idx is of no sleds in the map; functions are numbered by their addresses")
            });
            None
        }
        Ok(ranges) => match find_mismatch(&ranges, sleds) {
            None => Some(functions_of(&ranges, sleds)),
            Some(mismatch) => {
                findings.at(UNFIT_INDEX, section.file_offset, || {
                    format!("{mismatch} in xray_fn_idx; functions are numbered by their addresses")
                });
                None
            }
        },
    }
}

/// The two words of an entry of the index.
#[derive(Clone, Copy)]
enum IndexForm {
    /// Distance to the first sled, and number of sleds.
    Counted,
    /// Addresses of the first sled and of the end of the last.
    Absolute,
}

/// The section `xray_fn_idx`.
struct FunctionIndex<'a, 'data> {
    container: &'a Container<'data>,
    section: &'a MapSection<'data>,
}

impl FunctionIndex<'_, '_> {
    fn entry_bytes(&self) -> usize {
        self.container.words.bytes().saturating_mul(2)
    }

    /// The sleds of each entry; the error is the first entry without sleds in this form.
    fn ranges(&self, form: IndexForm) -> Result<Vec<Range<usize>>, usize> {
        let num_entries = self.section.bytes.len().div_ceil(self.entry_bytes());
        (0..num_entries).map(|entry| self.range(entry, form).ok_or(entry)).collect()
    }

    fn range(&self, entry: usize, form: IndexForm) -> Option<Range<usize>> {
        let first_at = entry.checked_mul(self.entry_bytes())?;
        let second_at = first_at.checked_add(self.container.words.bytes())?;
        let (first, second) = (self.word(first_at)?, self.word(second_at)?);
        match form {
            IndexForm::Counted => {
                let begin = self.section.address.wrapping_add(first_at as u64).wrapping_add(first);
                let (start, left) = self.sled(self.container.words.wrap(begin))?;
                let count = usize::try_from(second).ok().filter(|count| (1..=left).contains(count))?;
                Some(start..start.checked_add(count)?)
            }
            IndexForm::Absolute => {
                let (start, left) = self.sled(first)?;
                let bytes = second.checked_sub(first).filter(|bytes| *bytes != 0)?;
                let size = self.container.entry_bytes() as u64;
                let count = usize::try_from(bytes.checked_div(size)?).ok().filter(|count| *count <= left)?;
                Some(start..start.checked_add(count)?).filter(|_| bytes.is_multiple_of(size))
            }
        }
    }

    fn word(&self, at: usize) -> Option<u64> {
        match self.section.relocated.get(&(at as u64)) {
            Some(relocated) => relocated.map(|location| location.address),
            None => self.container.words.read(self.section.bytes, at),
        }
    }

    /// Index of the sled whose entry is at an address, and the number of sleds from it to the end of its section.
    fn sled(&self, address: u64) -> Option<(usize, usize)> {
        let size = self.container.entry_bytes();
        let mut before = 0_usize;
        for map in &self.container.maps {
            let here = map.num_entries(size);
            let within = address.checked_sub(map.address).and_then(|within| usize::try_from(within).ok());
            let entry =
                within.filter(|within| within.is_multiple_of(size)).and_then(|at| at.checked_div(size));
            if let Some(entry) = entry.filter(|entry| *entry < here) {
                return Some((before.checked_add(entry)?, here.checked_sub(entry)?));
            }
            before = before.checked_add(here)?;
        }
        None
    }
}

/// The first violation of an index: every sled belongs to one function, and all sleds of an entry to the same.
fn find_mismatch(ranges: &[Range<usize>], sleds: &[Sled]) -> Option<String> {
    let mut sorted: Vec<&Range<usize>> = ranges.iter().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut end = 0;
    for range in sorted {
        if range.start < end {
            return Some(format!("sled {} belongs to two functions", range.start));
        }
        if range.start > end {
            return Some(format!("sled {end} belongs to no function"));
        }
        let of_entry = sleds.get(range.clone()).unwrap_or_default();
        if of_entry.iter().zip(of_entry.iter().skip(1)).any(|(one, next)| one.function != next.function) {
            return Some(format!("the function of sled {} has sleds of another function", range.start));
        }
        end = range.end;
    }
    (end < sleds.len()).then(|| format!("sled {end} belongs to no function"))
}

/// The functions of an index, whose entries have these sleds.
fn functions_of(ranges: &[Range<usize>], sleds: &[Sled]) -> Vec<InstrumentedFunction> {
    let function = |(range, id): (&Range<usize>, u32)| InstrumentedFunction {
        id,
        location: sleds.get(range.start).and_then(|sled| sled.function),
        sleds: range.clone(),
    };
    ranges.iter().zip(1..).map(function).collect()
}
