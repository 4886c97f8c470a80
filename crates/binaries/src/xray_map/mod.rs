//! XRay's instrumentation map: the functions of a program that have sleds, their ids and their names.
//!
//! Clang writes a section `xray_instr_map` with an entry for each sled, and the runtime numbers functions by it. Logs contain
//! only these numbers. A [`MapFile`] reads the map of a program, a library or an object file, of ELF and of Mach-O, or what
//! `llvm-xray extract` wrote of one; [`ObjectMaps`] assigns a file to each object of a log, and [`name_functions`] names a log's functions.

mod container;
mod decode;
mod elf;
mod findings;
mod mach_o;
mod map;
mod map_file;
mod naming;
mod tables;
mod yaml;

pub use findings::{CODES, Error, MapFinding};
pub use map::{CodeLocation, InstrumentationMap, InstrumentedFunction, Sled, SledKind};
pub use map_file::{FunctionNames, MapFile};
pub use naming::{NamedFunctions, NativeIds, ObjectMaps, ObjectNumberError, name_functions};
