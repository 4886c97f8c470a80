//! Files of machine code, and the build ids that identify them.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use object::read::elf::{ElfFile32, ElfFile64};
use object::{FileKind, Object};
use perfuse_mapped::MappedFile;

/// The bytes of an ELF file, with its path.
#[derive(Debug)]
pub struct Image {
    /// Path the bytes were read from.
    pub path: PathBuf,
    bytes: ImageBytes,
}

#[derive(Debug)]
enum ImageBytes {
    Mapped(MappedFile),
    Owned(Vec<u8>),
}

impl Image {
    /// Maps a file. Only regular files are opened: a recording may name a pipe or a device, which would block.
    pub fn open(path: &Path) -> io::Result<Self> {
        if !std::fs::metadata(path)?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = File::open(path)?;
        let map = MappedFile::closing(&file)?;
        Ok(Self { path: path.to_owned(), bytes: ImageBytes::Mapped(map) })
    }

    /// Whether the file became shorter while it was read, so that what was read of it may be wrong.
    pub fn is_cut(&self) -> bool {
        matches!(&self.bytes, ImageBytes::Mapped(map) if map.is_cut())
    }

    /// An image that is not backed by a file: the vdso.
    pub fn owned(name: &str, bytes: Vec<u8>) -> Self {
        Self { path: PathBuf::from(name), bytes: ImageBytes::Owned(bytes) }
    }

    /// The headers. Cheap: tables of sections and symbols are found, not read.
    pub fn elf(&self) -> object::Result<object::File<'_>> {
        match FileKind::parse(&**self)? {
            FileKind::Elf32 => ElfFile32::parse(&**self).map(object::File::Elf32),
            // Parsed as ELF regardless of the kind, so that the reader rejects other kinds of object files with its own error.
            _ => ElfFile64::parse(&**self).map(object::File::Elf64),
        }
    }

    /// The build id in its notes.
    pub(crate) fn build_id(&self) -> Option<ElfBuildId> {
        ElfBuildId::of(&self.elf().ok()?)
    }
}

impl Deref for Image {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            ImageBytes::Mapped(map) => map,
            ImageBytes::Owned(bytes) => bytes,
        }
    }
}

/// The id a linker gives a file, from its `NT_GNU_BUILD_ID` note.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct ElfBuildId(Vec<u8>);

/// perf stores 20 bytes for ids of any length, padded with zeros.
const PERF_BYTES: usize = 20;

impl ElfBuildId {
    /// An id of these bytes; `None` where there are none, or all are 0.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        (!bytes.is_empty() && bytes.iter().any(|&byte| byte != 0)).then(|| Self(bytes.to_vec()))
    }

    /// The id in an ELF file's notes.
    pub(crate) fn of(elf: &object::File<'_>) -> Option<Self> {
        Self::new(elf.build_id().ok()??)
    }

    /// Parses hexadecimal digits.
    pub(crate) fn from_hex(hex: &str) -> Option<Self> {
        if !hex.len().is_multiple_of(2) {
            return None;
        }
        let digits: Option<Vec<u8>> =
            hex.bytes().map(|digit| char::from(digit).to_digit(16).map(|value| value as u8)).collect();
        let bytes: Vec<u8> = digits?.as_chunks::<2>().0.iter().map(|[high, low]| high << 4 | low).collect();
        Self::new(&bytes)
    }

    /// Whether both identify the same file: one may be the other padded with zeros.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        let (short, long) = if self.0.len() <= other.0.len() { (self, other) } else { (other, self) };
        long.0.strip_prefix(short.0.as_slice()).is_some_and(|rest| rest.iter().all(|&byte| byte == 0))
    }

    /// The spellings under which build-id directories may have it: as it is, with perf's padding, and without it.
    pub(crate) fn spellings(&self) -> Vec<String> {
        let mut spellings = vec![self.to_string()];
        if self.0.len() == PERF_BYTES
            && let Some((id, padding)) = self.0.split_at_checked(16)
            && padding.iter().all(|&byte| byte == 0)
        {
            spellings.push(Self(id.to_vec()).to_string());
        } else if self.0.len() < PERF_BYTES {
            let mut padded = self.0.clone();
            padded.resize(PERF_BYTES, 0);
            spellings.push(Self(padded).to_string());
        }
        spellings
    }
}

impl fmt::Display for ElfBuildId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for ElfBuildId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::ElfBuildId;

    #[test]
    fn an_id_padded_with_zeros_is_the_same_id() {
        let md5 = ElfBuildId::from_hex("00112233445566778899aabbccddeeff").expect("hex");
        let filled = ElfBuildId::from_hex("00112233445566778899aabbccddeeff00000000").expect("hex");
        assert!(md5.matches(&filled) && filled.matches(&md5));
        assert_eq!(filled.spellings()[1], md5.to_string());
        assert_eq!(md5.spellings()[1], filled.to_string());
        assert!(!md5.matches(&ElfBuildId::from_hex("00112233445566778899aabbccddeefe").expect("hex")));
    }

    #[test]
    fn invalid_ids_are_rejected() {
        assert_eq!(ElfBuildId::from_hex("abc"), None);
        assert_eq!(ElfBuildId::from_hex("zz"), None);
        assert_eq!(ElfBuildId::from_hex(""), None);
        assert_eq!(ElfBuildId::from_hex("0000"), None, "perf writes zeros where there is no id");
    }
}
