//! Names, lines and inlined calls for native code and the kernel.
//!
//! A [`Symbolizer`] finds the file a mapping was made from, and rejects other files of the same name; a [`Module`] names
//! offsets in it, from its symbol tables and DWARF. Addresses without a name have a reason. Nothing is downloaded.

mod address_space;
mod dwarf;
mod dwarf_sections;
mod dwarf_units;
mod elf_module;
mod elf_symbols;
mod follow;
mod image;
mod kallsyms;
mod kernel;
mod live_kernel;
mod locate;
mod module;
mod names;
mod perf_map;
mod plt;
mod recorded_path;
mod recorded_symbols;
mod scoped_names;
mod split_dwarf;
mod symbol_index;
mod symbolizer;

pub use follow::Follow;
pub use image::Image;
pub use module::{FunctionCode, Module, Resolved, SymbolFrame};
pub(crate) use names::{NameCache, demangle as demangled};
pub use perf_map::{PerfMap, PerfMapEntry};
pub use recorded_path::{is_kernel_image, kernel_module};
pub(crate) use symbol_index::by_familiarity;
pub use symbolizer::{Options, Symbolizer};
