//! Findings about a map, and errors of files without one.

use std::{fmt, io};

/// A problem of a map, or of a log's ids and a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapFinding {
    /// Code of the rule, one of [`CODES`].
    pub code: &'static str,
    /// The problem, with its numbers.
    pub message: String,
    /// Offset in the file; `None` where it is about the whole file or a log.
    pub offset: Option<u64>,
    /// Number of occurrences; more than 1 on the last finding of a code whose further ones are only counted.
    pub count: u64,
}

/// The last entry is not whole.
pub(super) const PARTIAL_ENTRY: &str = "XM001";
/// The file ends within the map.
pub(super) const BEYOND_FILE: &str = "XM002";
/// An address outside the program's code.
pub(super) const OUTSIDE_CODE: &str = "XM003";
/// An undefined kind of sled.
pub(super) const UNKNOWN_KIND: &str = "XM004";
/// An undefined version of an entry.
pub(super) const UNKNOWN_VERSION: &str = "XM005";
/// An address without the relocation that should define it.
pub(super) const UNRELOCATED: &str = "XM006";
/// An index of functions that does not fit the map.
pub(super) const UNFIT_INDEX: &str = "XM007";
/// An index that numbers functions in another way than their addresses do.
pub(super) const RENUMBERED: &str = "XM008";
/// Sections of the map that have more bytes in all than the file.
pub(super) const OVERLAPPING: &str = "XM009";
/// A part of a universal file that cannot be read.
pub(super) const UNREADABLE_SLICE: &str = "XM010";
/// A universal file with maps for several architectures.
pub(super) const SEVERAL_SLICES: &str = "XM011";
/// Function ids that stand for functions of more than one object.
pub(super) const ALIASED_OBJECTS: &str = "XM012";
/// Function ids of objects without a map.
pub(super) const UNMAPPED_OBJECT: &str = "XM013";
/// Function ids that are not in the object's map.
pub(super) const UNKNOWN_FUNCTION: &str = "XM014";
/// Functions of a map that have no name.
pub(super) const UNNAMED: &str = "XM015";

/// Codes of all findings.
pub const CODES: [&str; 15] = [
    PARTIAL_ENTRY,
    BEYOND_FILE,
    OUTSIDE_CODE,
    UNKNOWN_KIND,
    UNKNOWN_VERSION,
    UNRELOCATED,
    UNFIT_INDEX,
    RENUMBERED,
    OVERLAPPING,
    UNREADABLE_SLICE,
    SEVERAL_SLICES,
    ALIASED_OBJECTS,
    UNMAPPED_OBJECT,
    UNKNOWN_FUNCTION,
    UNNAMED,
];

/// Limit on the findings of each code; the last of them counts the others.
const MAX_PER_CODE: usize = 10;

/// Collects findings, a limited number of each code.
#[derive(Debug, Default)]
pub(super) struct MapFindings(Vec<MapFinding>);

impl MapFindings {
    /// Adds a finding at an offset; `message` is only called where the finding is listed.
    pub(super) fn at(&mut self, code: &'static str, offset: u64, message: impl FnOnce() -> String) {
        self.push(code, Some(offset), message);
    }

    /// Adds a finding about a whole file or log.
    pub(super) fn about(&mut self, code: &'static str, message: String) {
        self.push(code, None, || message);
    }

    fn push(&mut self, code: &'static str, offset: Option<u64>, message: impl FnOnce() -> String) {
        let num_listed = self.0.iter().filter(|finding| finding.code == code).count();
        match self.0.iter_mut().rfind(|finding| finding.code == code) {
            Some(last) if num_listed >= MAX_PER_CODE => last.count = last.count.saturating_add(1),
            _ => self.0.push(MapFinding { code, message: message(), offset, count: 1 }),
        }
    }

    pub(super) fn into_vec(self) -> Vec<MapFinding> {
        self.0
    }
}

/// Why no map could be read from a file.
#[derive(Debug)]
pub enum Error {
    /// The operating system's error.
    Io(io::Error),
    /// Neither ELF nor Mach-O, or one whose sections cannot be found; with the reader's message.
    NotAnObject(String),
    /// There is no section `xray_instr_map`, or it is empty because the file was split.
    NoMap(&'static str),
    /// A map as YAML that is not one of `llvm-xray extract`: why, and the offset.
    Yaml(&'static str, u64),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(out),
            Self::NotAnObject(why) => write!(out, "not a readable ELF or Mach-O file: {why}"),
            Self::Yaml(why, offset) => {
                write!(out, "not a YAML map of llvm-xray extract: {why} (offset {offset:#x})")
            }
            Self::NoMap(why) => write!(out, "no XRay instrumentation map: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<object::Error> for Error {
    fn from(error: object::Error) -> Self {
        Self::NotAnObject(error.to_string())
    }
}
