//! The input of an image, what is reported about it, and errors.

use std::{fmt, io};

use perfuse_tables::access::ColumnError;

/// Machine and description of an image.
#[derive(Clone, Debug)]
pub struct ImageSpec {
    /// ELF `e_machine`, as JITDUMP's `elf_mach`.
    pub machine: u16,
    /// Byte order of the machine.
    pub big_endian: bool,
    /// Whether pointers have 8 bytes.
    pub is_64: bool,
    /// Name of the units, such as `jit code of node (pid 4711)`.
    pub title: String,
    /// Directory that relative paths are in; readers print them as they are where this is empty.
    pub comp_dir: String,
}

/// A piece of machine code, compiled for one function.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeObject<'a> {
    /// Its number, shown in the description of the function.
    pub id: u32,
    /// Name to show.
    pub name: &'a str,
    /// Name of the symbol.
    pub linkage_name: &'a str,
    /// Source file the function is declared in.
    pub path: Option<&'a str>,
    /// Line it is declared at, from 1.
    pub line: Option<u32>,
    /// Column it is declared at, from 1.
    pub column: Option<u32>,
    /// First address in memory, when created.
    pub start_address: u64,
    /// Size in bytes.
    pub size: u64,
    /// Machine code, where it was recorded.
    pub code: Option<&'a [u8]>,
    /// Source positions, by offset; of several at one offset the last counts.
    pub lines: &'a [LineRow<'a>],
    /// Calls inlined into it, depth first.
    pub inlines: &'a [InlinedRange<'a>],
}

/// A source position that applies from an offset up to the next one's.
#[derive(Clone, Copy, Debug, Default)]
pub struct LineRow<'a> {
    /// Bytes from the start of the code.
    pub offset: u64,
    /// Source file.
    pub path: &'a str,
    /// Line, from 1; 0 where the code belongs to no line.
    pub line: u32,
    /// Column, from 1.
    pub column: Option<u32>,
}

/// A range of code that a function was inlined into.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlinedRange<'a> {
    /// Bytes from the start of the code.
    pub start: u64,
    /// Length in bytes.
    pub size: u64,
    /// 0 for a call from the outer function.
    pub depth: u32,
    /// Function that was inlined.
    pub name: &'a str,
    /// Source file it is declared in.
    pub path: Option<&'a str>,
    /// Line it is declared at, from 1.
    pub line: Option<u32>,
    /// File of the call; the caller's where not given.
    pub call_path: Option<&'a str>,
    /// Line of the call, from 1.
    pub call_line: Option<u32>,
    /// Column of the call, from 1.
    pub call_column: Option<u32>,
}

/// The place of a piece of code in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodePlacement {
    /// Its address in the image, which is its offset in the file.
    pub file_offset: u64,
    /// Its size there, in bytes: smaller than given where that exceeds the limit.
    pub size: u64,
}

/// The contents of an image, in numbers.
#[derive(Clone, Debug, Default)]
pub struct ImageSummary {
    /// Build id, as in the note of the image.
    pub build_id: [u8; 20],
    /// Number of pieces of code.
    pub num_functions: u64,
    /// Number of rows of the line tables.
    pub num_line_rows: u64,
    /// Number of inlined calls.
    pub num_inlined_calls: u64,
    /// Size of the file.
    pub size_bytes: u64,
    /// Sections with their sizes in bytes.
    pub sections: Vec<(&'static str, u64)>,
}

/// Why an image could not be written.
#[derive(Debug)]
pub enum Error {
    /// The file could not be written.
    Io(io::Error),
    /// A section is larger than its format can address.
    TooLarge(&'static str),
    /// A batch does not have the columns of its table.
    Column(ColumnError),
    /// This table does not ascend by `code_object_id`.
    Unsorted(&'static str),
    /// No function has this `function_id`.
    UnknownFunction(u32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::TooLarge(section) => write!(f, "too much code for one image: {section} is full"),
            Self::Column(error) => error.fmt(f),
            Self::Unsorted(table) => write!(f, "table {table} does not ascend by code_object_id"),
            Self::UnknownFunction(id) => write!(f, "no function has function_id {id}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Column(error) => Some(error),
            Self::TooLarge(_) | Self::Unsorted(_) | Self::UnknownFunction(_) => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ColumnError> for Error {
    fn from(error: ColumnError) -> Self {
        Self::Column(error)
    }
}
