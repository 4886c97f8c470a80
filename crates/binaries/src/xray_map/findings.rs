/// Something in a map, or about how it fits a log, that its reader should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Code of the rule, one of [`CODES`].
    pub code: &'static str,
    /// What was found, with its numbers.
    pub message: String,
    /// Offset in the file, where it is about a place in one.
    pub offset: Option<u64>,
    /// How many times; more than 1 on the last one of a code that was cut short.
    pub count: u64,
}

/// The last entry is not whole.
pub(super) const PARTIAL_ENTRY: &str = "XM001";
/// The file ends within the map.
pub(super) const BEYOND_FILE: &str = "XM002";
/// An address outside the program's code.
pub(super) const OUTSIDE_CODE: &str = "XM003";
/// A kind of sled nobody defined.
pub(super) const UNKNOWN_KIND: &str = "XM004";
/// A version of the entry nobody defined.
pub(super) const UNKNOWN_VERSION: &str = "XM005";
/// An address that a relocation should give, and none does.
pub(super) const UNRELOCATED: &str = "XM006";
/// An index of functions that does not fit the map.
pub(super) const UNFIT_INDEX: &str = "XM007";
/// An index that numbers functions in another way than their addresses do.
pub(super) const RENUMBERED: &str = "XM008";
/// Sections of the map that have more bytes than the file.
pub(super) const OVERLAPPING: &str = "XM009";
/// A part of a universal file that cannot be read.
pub(super) const UNREADABLE_SLICE: &str = "XM010";
/// A universal file with maps for several architectures.
pub(super) const SEVERAL_SLICES: &str = "XM011";
/// Function ids that stand for functions of more than one object.
pub(super) const ALIASED_OBJECTS: &str = "XM012";
/// Function ids of objects that no map was given for.
pub(super) const UNMAPPED_OBJECT: &str = "XM013";
/// Function ids that the object's map does not have.
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

/// Places told for each code; the last of them counts the others.
const MAX_PLACES: usize = 10;

/// Gathers findings, so many of each code.
#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    /// A finding at a place; its message is only made where it will be told.
    pub(super) fn at(&mut self, code: &'static str, offset: u64, message: impl FnOnce() -> String) {
        self.push(code, Some(offset), message);
    }

    /// A finding about a whole file or log.
    pub(super) fn about(&mut self, code: &'static str, message: String) {
        self.push(code, None, || message);
    }

    fn push(&mut self, code: &'static str, offset: Option<u64>, message: impl FnOnce() -> String) {
        let told = self.0.iter().filter(|finding| finding.code == code).count();
        match self.0.iter_mut().rfind(|finding| finding.code == code) {
            Some(last) if told >= MAX_PLACES => last.count += 1,
            _ => self.0.push(Finding { code, message: message(), offset, count: 1 }),
        }
    }

    pub(super) fn into_vec(self) -> Vec<Finding> {
        self.0
    }
}
