//! engine

pub mod elf_image;
