use std::ops::Range;
use std::sync::Arc;

use super::container::Container;
use super::findings::{Finding, Findings};
use super::kind::SledKind;
use super::{entries, numbering};

/// The map of one program, library or object file; of one architecture where a file has several.
#[derive(Debug)]
pub struct InstrumentationMap {
    /// What the code is for: `x86_64`, `aarch64`.
    pub architecture: &'static str,
    /// Size of an address.
    pub pointer_bytes: u8,
    /// In the order of the section.
    pub sleds: Vec<Sled>,
    /// In the order of their ids, which start at 1.
    pub functions: Vec<Function>,
    /// What is wrong with it.
    pub findings: Vec<Finding>,
    /// Names of sections, by their number; empty for linked files, whose places have whole addresses.
    pub(super) section_names: Vec<Arc<str>>,
    /// Where its object file lies in the file.
    pub(super) slice: Range<usize>,
    pub(super) is_mach_o: bool,
}

/// A place in the file's code, as `nm` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the section in an ELF file that is not linked yet, where addresses count from each section's start.
    pub section: Option<u32>,
    /// Link-time address.
    pub address: u64,
}

/// A place in a function that the runtime can patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sled {
    /// Where it is; `None` where the entry does not tell.
    pub place: Option<Place>,
    /// Start of its function; `None` where the entry does not tell.
    pub function: Option<Place>,
    /// What it is for.
    pub kind: SledKind,
    /// Whether the function asked for it, whatever its size.
    pub always_instrument: bool,
    /// Version of the entry: addresses are absolute in 0 and 1, relative to their field in 2.
    pub version: u8,
    /// Offset of the entry in the file.
    pub offset: u64,
}

/// A function with sleds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// What logs have for it, in the first object of a process.
    pub id: u32,
    /// Where it starts; `None` where the map does not tell.
    pub place: Option<Place>,
    /// Its sleds, as positions in [`InstrumentationMap::sleds`].
    pub sleds: Range<usize>,
}

impl InstrumentationMap {
    pub(super) fn of(container: &Container<'_>, mut findings: Findings) -> Self {
        let sleds = entries::sleds(container, &mut findings);
        let functions = numbering::functions(container, &sleds, &mut findings);
        Self {
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

    /// The function of that id.
    #[must_use]
    pub fn function(&self, id: u32) -> Option<&Function> {
        self.functions.get(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    /// Versions its entries have, in order; usually one.
    #[must_use]
    pub fn versions(&self) -> Vec<u8> {
        let mut seen = [false; 256];
        self.sleds.iter().for_each(|sled| seen[usize::from(sled.version)] = true);
        (0..=u8::MAX).filter(|&version| seen[usize::from(version)]).collect()
    }

    /// Name of the section a place is in, where addresses count from it.
    #[must_use]
    pub fn section_name(&self, place: Place) -> Option<&Arc<str>> {
        self.section_names.get(usize::try_from(place.section?).ok()?)
    }
}
