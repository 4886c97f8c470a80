//! Programs and libraries: symbols, DWARF, `.eh_frame`, XRay instrumentation maps, and ELF images of JIT code. Knows no format
//! of a recording.

pub mod eh_frame;
pub mod elf_image;
pub mod symbolize;
pub mod xray_map;
