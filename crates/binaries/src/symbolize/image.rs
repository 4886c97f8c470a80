use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use object::FileKind;
use object::read::elf::{ElfFile32, ElfFile64};

use super::build_id::BuildId;

/// An ELF file's bytes, and where they are from.
#[derive(Debug)]
pub struct Image {
    /// Path the bytes were read from.
    pub path: PathBuf,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Image {
    /// Maps a file. Only regular files are opened: a recording may name a pipe or a device, which would block.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = File::open(path)?;
        // SAFETY: read-only and private. Readers check every length where they use it, so that a file that is written
        // to meanwhile gives wrong names at worst.
        let map = unsafe { Mmap::map(&file) }?;
        Ok(Self { path: path.to_owned(), bytes: Bytes::Mapped(map) })
    }

    /// An image that is no file: the vdso.
    pub fn owned(name: &str, bytes: Vec<u8>) -> Self {
        Self { path: PathBuf::from(name), bytes: Bytes::Owned(bytes) }
    }

    /// The headers. Cheap: tables of sections and symbols are found, not read.
    pub fn elf(&self) -> object::Result<object::File<'_>> {
        match FileKind::parse(&**self)? {
            FileKind::Elf32 => ElfFile32::parse(&**self).map(object::File::Elf32),
            // Parsed as ELF whatever the kind, so that other kinds of object files are refused in the reader's words.
            _ => ElfFile64::parse(&**self).map(object::File::Elf64),
        }
    }

    pub(crate) fn build_id(&self) -> Option<BuildId> {
        BuildId::of(&self.elf().ok()?)
    }
}

impl Deref for Image {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}
