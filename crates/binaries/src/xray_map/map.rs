//! The decoded instrumentation map: sleds, and the functions that have them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::findings::MapFinding;

/// The map of one program, library or object file; of one architecture where a file has several.
#[derive(Debug)]
pub struct InstrumentationMap {
    /// Machine of the code: `x86_64`, `aarch64`.
    pub architecture: &'static str,
    /// Size of an address in bytes.
    pub pointer_bytes: u8,
    /// Sleds, in the order of the section.
    pub sleds: Vec<Sled>,
    /// Functions, in the order of their ids, which start at 1.
    pub functions: Vec<InstrumentedFunction>,
    /// Problems of the map.
    pub findings: Vec<MapFinding>,
    /// Names of sections, by their number; empty for linked files, whose locations have whole addresses.
    pub(super) section_names: Vec<Arc<str>>,
    /// Range of the object file in a universal file.
    pub(super) slice: Range<usize>,
    pub(super) is_mach_o: bool,
}

/// A location in the code of the file, as `nm` prints it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeLocation {
    /// Number of the section in an object file of ELF, where addresses are relative to the start of their section.
    pub section: Option<u32>,
    /// Link-time address.
    pub address: u64,
}

/// An instrumentation point: instructions of a function that the runtime can patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sled {
    /// Its location; `None` where the entry does not contain it.
    pub location: Option<CodeLocation>,
    /// Start of its function; `None` where the entry does not contain it.
    pub function: Option<CodeLocation>,
    /// Its kind.
    pub kind: SledKind,
    /// Whether the function is instrumented regardless of its size.
    pub always_instrument: bool,
    /// Version of the entry: addresses are absolute in 0 and 1, relative to their field in 2.
    pub version: u8,
    /// Offset of the entry in the file.
    pub offset: u64,
}

/// A function with sleds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrumentedFunction {
    /// Its number in logs, where it is in the first object of a process.
    pub id: u32,
    /// Its start; `None` where the map does not contain it.
    pub location: Option<CodeLocation>,
    /// Its sleds, as indices in [`InstrumentationMap::sleds`].
    pub sleds: Range<usize>,
}

impl InstrumentationMap {
    /// The function with an id.
    #[must_use]
    pub fn function(&self, id: u32) -> Option<&InstrumentedFunction> {
        self.functions.get(usize::try_from(id.checked_sub(1)?).ok()?)
    }

    /// The versions of its entries, sorted; usually one.
    #[must_use]
    pub fn versions(&self) -> Vec<u8> {
        let mut versions = Vec::new();
        for sled in &self.sleds {
            if !versions.contains(&sled.version) {
                versions.push(sled.version);
            }
        }
        versions.sort_unstable();
        versions
    }

    /// Name of the section of a location, where addresses are relative to it.
    #[must_use]
    pub fn section_name(&self, location: CodeLocation) -> Option<&Arc<str>> {
        self.section_names.get(usize::try_from(location.section?).ok()?)
    }
}

/// The kind of a sled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SledKind(pub u8);

impl SledKind {
    /// Entry of a function.
    pub const FUNCTION_ENTER: Self = Self(0);
    /// Return from a function.
    pub const FUNCTION_EXIT: Self = Self(1);
    /// Jump to another function in place of a call and a return.
    pub const TAIL_EXIT: Self = Self(2);
    /// Entry of a function whose first argument is logged.
    pub const LOG_ARGS_ENTER: Self = Self(3);
    /// `__xray_customevent`.
    pub const CUSTOM_EVENT: Self = Self(4);
    /// `__xray_typedevent`.
    pub const TYPED_EVENT: Self = Self(5);

    const NAMES: [&str; 6] =
        ["function-enter", "function-exit", "tail-exit", "log-args-enter", "custom-event", "typed-event"];

    /// Its name in `llvm-xray extract`; `None` for undefined kinds.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        Self::NAMES.get(usize::from(self.0)).copied()
    }

    /// The kind with a name.
    pub(super) fn named(name: &str) -> Option<Self> {
        (0..).map(Self).zip(Self::NAMES).find(|(_, one)| *one == name).map(|(kind, _)| kind)
    }
}

impl fmt::Display for SledKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => out.write_str(name),
            None => write!(out, "unknown-{}", self.0),
        }
    }
}
