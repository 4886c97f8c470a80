//! XRay's instrumentation map: which functions of a program have sleds, under which ids, and what they are called.
//!
//! Clang leaves a section `xray_instr_map` with an entry for each sled, and the runtime numbers functions by it. Logs have
//! nothing but these numbers. A [`MapFile`] reads the map of a program, a library or an object file, of ELF and of Mach-O;
//! [`ObjectMaps`] say which file each object of a log is, and [`name_functions`] puts names to a log's functions.

mod container;
mod elf;
mod elf_relocations;
mod elf_sections;
mod entries;
mod error;
mod findings;
mod fit;
mod index;
mod kind;
mod mach_o;
mod mach_o_names;
mod map;
mod map_file;
mod name_functions;
mod named_objects;
mod native_ids;
mod numbering;
mod object_maps;
mod relocation_kind;
mod slices;
mod tables;
mod words;

pub use error::Error;
pub use findings::{CODES, Finding};
pub use kind::SledKind;
pub use map::{Function, InstrumentationMap, Place, Sled};
pub use map_file::{MapFile, Names};
pub use name_functions::{Named, name_functions};
pub use native_ids::NativeIds;
pub use object_maps::{ObjectMaps, ObjectNumberError};
