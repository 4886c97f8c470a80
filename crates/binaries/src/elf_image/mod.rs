//! One ELF image per process that makes its JIT-compiled functions known to every tool that reads ELF and DWARF: perf, gdb,
//! addr2line, objdump, LLVM's.
//!
//! # The address space
//! Runtimes reuse addresses, so an image cannot show code at the addresses it ran at: each piece of code gets a place of its
//! own, and addresses in the image are file offsets (one `PT_LOAD` with `p_vaddr == p_offset`). A perf.data file says which
//! code was where and when by its MMAP2 events: `start` and `len` are those of the code in memory, `pgoff` is
//! [`Placed::file_offset`]. Code whose bytes were not recorded has addresses past the end of the file, in a section
//! `.text.absent` that takes no room in it. For people, each function's `DW_AT_description` says the number of its code object
//! and its first address in memory.
//!
//! # Debug information
//! DWARF 5 in the 32-bit format, read by all of binutils 2.40, elfutils 0.188, gdb 13, LLVM 14 and perf 6.1. Functions are
//! grouped into units small enough that a reader, which decodes the unit of the address it is asked about, has little to decode;
//! `.debug_aranges` leads it there. A function is a `DW_TAG_subprogram` with name, declaration and range, its line rows (with
//! columns) a sequence of their own that ends where the code ends, its inlined calls a tree of `DW_TAG_inlined_subroutine`.
//! Symbols have the linkage name, which is the recording's own spelling.
//!
//! Rows and entries are encoded as they come and never held as objects. `gimli::write` holds every unit until all are written:
//! 6.5 million rows took it 636 MB where this takes 69 MB, code and symbols included, in the same time (2026-11).
//!
//! # What becomes of bad input
//! Sizes are cut at 4 GiB (256 MiB in 32-bit images). Lines behind the end of their code are left out, unsorted ones sorted. Inlined
//! calls are clipped to their caller's range and to what their siblings leave; those without a caller are left out, and
//! [`Summary::num_inlined_calls`] counts what is in the image. A NUL inside a name is written as U+FFFD.
//!
//! The same input gives the same bytes; the build id is the SHA-1 of all code, debug information and symbols.

mod abbreviations;
mod build_id;
mod container;
mod debug_info;
mod error;
mod files;
mod functions;
mod groups;
mod line_program;
mod nesting;
mod regions;
mod section;
mod strings;
mod symbols;
pub mod tables;
#[cfg(test)]
mod tests;
mod unit;
mod writer;

pub use error::Error;
pub use writer::Writer;

/// What an image is of.
#[derive(Clone, Debug)]
pub struct ImageSpec {
    /// ELF `e_machine`, as JITDUMP's `elf_mach`.
    pub machine: u16,
    /// Byte order of the machine.
    pub big_endian: bool,
    /// Whether pointers have 8 bytes.
    pub is_64: bool,
    /// Name of the units: what the code is of, such as `jit code of node (pid 4711)`.
    pub title: String,
    /// Directory that relative paths are in; readers print them as they are where this is empty.
    pub comp_dir: String,
}

/// A piece of machine code, compiled for one function.
#[derive(Clone, Copy, Debug, Default)]
pub struct CodeObject<'a> {
    /// Its number, for people to find it by.
    pub id: u32,
    /// Name for people.
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
    pub lines: &'a [Line<'a>],
    /// Calls inlined into it, depth first.
    pub inlines: &'a [Inline<'a>],
}

/// A source position that holds from an offset up to the next one's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Line<'a> {
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
pub struct Inline<'a> {
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

/// Where in the image a piece of code is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Its address in the image, which is its offset in the file.
    pub file_offset: u64,
    /// Bytes it has there: its size, unless that could not be true.
    pub size: u64,
}

/// What an image holds.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Build id, as in the note of the image.
    pub build_id: [u8; 20],
    /// Pieces of code.
    pub num_functions: u64,
    /// Rows of the line tables.
    pub num_line_rows: u64,
    /// Inlined calls.
    pub num_inlined_calls: u64,
    /// Size of the file.
    pub size_bytes: u64,
    /// Sections with their sizes in bytes.
    pub sections: Vec<(&'static str, u64)>,
}
