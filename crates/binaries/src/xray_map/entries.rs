use super::container::{Container, Section};
use super::findings::{Findings, OUTSIDE_CODE, PARTIAL_ENTRY, UNKNOWN_KIND, UNKNOWN_VERSION, UNRELOCATED};
use super::kind::SledKind;
use super::map::{Place, Sled};

/// Since this version addresses are relative to the field they are in.
const RELATIVE_VERSION: u8 = 2;

/// Every whole entry of every section of the map.
pub(super) fn sleds(container: &Container<'_>, findings: &mut Findings) -> Vec<Sled> {
    let size = container.entry_bytes();
    let mut sleds = Vec::with_capacity(container.maps.iter().map(|map| map.bytes.len() / size).sum());
    for map in &container.maps {
        let mut reader = Reader { container, map, findings };
        sleds.extend((0..map.bytes.len() / size).filter_map(|index| reader.entry(index * size)));
        let rest = map.bytes.len() % size;
        if rest != 0 {
            let whole = (map.bytes.len() - rest) as u64;
            findings.at(PARTIAL_ENTRY, map.file_offset.saturating_add(whole), || {
                format!(
                    "{rest} bytes are left after the last entry of xray_instr_map, and an entry has {size}"
                )
            });
        }
    }
    sleds
}

struct Reader<'a, 'data> {
    container: &'a Container<'data>,
    map: &'a Section<'data>,
    findings: &'a mut Findings,
}

impl Reader<'_, '_> {
    fn entry(&mut self, at: usize) -> Option<Sled> {
        let word = self.container.words.bytes();
        let &[kind, always_instrument, version] = self.map.bytes.get(at + 2 * word..)?.first_chunk()?;
        let kind = SledKind(kind);
        let offset = self.map.file_offset.saturating_add(at as u64);
        if kind.name().is_none() {
            let message = || format!("a sled has kind {}; 0 to 5 are known", kind.0);
            self.findings.at(UNKNOWN_KIND, offset.saturating_add(2 * word as u64), message);
        }
        if version > RELATIVE_VERSION {
            let message =
                || format!("an entry has version {version}; it was read as version {RELATIVE_VERSION}");
            self.findings.at(UNKNOWN_VERSION, offset.saturating_add(2 * word as u64 + 2), message);
        }
        let place = self.address(at, version, "a sled");
        let function = self.address(at + word, version, "a function");
        Some(Sled { place, function, kind, always_instrument: always_instrument != 0, version, offset })
    }

    /// The address in the field at an offset; `of` says what is there.
    fn address(&mut self, at: usize, version: u8, of: &str) -> Option<Place> {
        let offset = self.map.file_offset.saturating_add(at as u64);
        let place = match self.map.relocated.get(&(at as u64)) {
            Some(relocated) => *relocated,
            None if self.container.is_relocatable => None,
            None => Some(self.in_place(at, version)?),
        };
        match place {
            None => self.findings.at(UNRELOCATED, offset, || {
                format!("the address of {of} is not known: no relocation of its field can be resolved")
            }),
            Some(place) if !self.container.code.contains(place) => {
                self.findings.at(OUTSIDE_CODE, offset, || {
                    format!("the address of {of}, {:#x}, is in no section with code", place.address)
                })
            }
            Some(_) => {}
        }
        place
    }

    /// The address that a field holds by itself.
    fn in_place(&self, at: usize, version: u8) -> Option<Place> {
        let value = self.container.words.read(self.map.bytes, at)?;
        let from = |base: u64| {
            let address = self.container.words.wrap(base.wrapping_add(value));
            Place { section: None, address }
        };
        let (absolute, relative) = (from(0), from(self.map.address.wrapping_add(at as u64)));
        let (told, other) =
            if version < RELATIVE_VERSION { (absolute, relative) } else { (relative, absolute) };
        // clang 14 for Hexagon says version 0 and writes as in version 2.
        let is_in_code = |place| self.container.code.contains(place);
        let is_other = version != RELATIVE_VERSION && !is_in_code(told) && is_in_code(other);
        Some(if is_other { other } else { told })
    }
}
