//! Files of machine code, and the build ids that identify them.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use lzma_rust2::{Action, Status, XzStream};
use object::read::elf::{ElfFile32, ElfFile64};
use object::{CompressionFormat, FileKind, Object, ObjectSection};
use perfuse_mapped::{MappedFile, TooLarge, UnpackLimit, open_regular};

/// The bytes of an ELF file, with its path.
#[derive(Debug)]
pub struct Image {
    /// Path the bytes were read from.
    pub path: PathBuf,
    /// How large its compressed sections may become.
    unpack_limit: UnpackLimit,
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
        Self::open_within(path, UnpackLimit::default())
    }

    /// The same, with a limit on what its compressed sections unpack to.
    pub fn open_within(path: &Path, unpack_limit: UnpackLimit) -> io::Result<Self> {
        let map = MappedFile::closing(&open_regular(path)?)?;
        Ok(Self { path: path.to_owned(), unpack_limit, bytes: ImageBytes::Mapped(map) })
    }

    /// Whether the file became shorter while it was read, so that what was read of it may be wrong.
    pub fn is_cut(&self) -> bool {
        matches!(&self.bytes, ImageBytes::Mapped(map) if map.is_cut())
    }

    /// An image that is not backed by a file: the vdso.
    pub fn owned(name: &str, bytes: Vec<u8>) -> Self {
        let unpack_limit = UnpackLimit::default();
        Self { path: PathBuf::from(name), unpack_limit, bytes: ImageBytes::Owned(bytes) }
    }

    /// The bytes of one of its sections, unpacked where it is compressed.
    ///
    /// # Errors
    /// The reader's message for a section that is damaged, and a section that states a larger size than is allowed.
    pub fn section<'a>(&self, section: &impl ObjectSection<'a>) -> Result<Cow<'a, [u8]>, String> {
        let packed = section.compressed_data().map_err(|error| error.to_string())?;
        let limit_bytes = self.unpack_limit.of_section(packed.data.len() as u64);
        if packed.format != CompressionFormat::None && packed.uncompressed_size > limit_bytes {
            let name = section.name().unwrap_or("a section");
            return Err(format!("section {name}: {}", TooLarge { limit_bytes, is_packed: true }));
        }
        packed.decompress().map_err(|error| error.to_string())
    }

    /// The file in its section `.gnu_debugdata`: an ELF file, packed with xz, with the functions that are not exported.
    ///
    /// # Errors
    /// The section is damaged, or unpacks to more than is allowed.
    pub(crate) fn mini_debug_info(&self) -> Result<Option<Self>, String> {
        let elf = self.elf().map_err(|error| error.to_string())?;
        let Some(section) = elf.section_by_name(".gnu_debugdata") else { return Ok(None) };
        let packed = section.data().map_err(|error| error.to_string())?;
        let limit_bytes = self.unpack_limit.of_section(packed.len() as u64);
        let bytes = ImageBytes::Owned(unpacked_xz(packed, limit_bytes)?);
        Ok(Some(Self { path: self.path.clone(), unpack_limit: self.unpack_limit, bytes }))
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

/// Memory for the dictionary of a section that is packed with xz, in KiB: as much as `xz -9` uses.
const XZ_MEMORY_KIB: u32 = 65 << 10;

/// Unpacks an `.xz` stream.
fn unpacked_xz(packed: &[u8], limit_bytes: u64) -> Result<Vec<u8>, String> {
    const PART_BYTES: usize = 64 << 10;
    let mut stream = XzStream::new_mem_limit(true, XZ_MEMORY_KIB);
    let mut unpacked = Vec::new();
    let (mut taken, mut len) = (0_usize, 0_usize);
    loop {
        perfuse_stopping::checkpoint();
        unpacked.resize(len.saturating_add(PART_BYTES), 0);
        let rest = packed.get(taken..).unwrap_or_default();
        let free = unpacked.get_mut(len..).unwrap_or_default();
        let done = stream.process(rest, free, Action::Finish).map_err(|error| error.to_string())?;
        taken = taken.saturating_add(done.bytes_consumed);
        len = len.saturating_add(done.bytes_produced);
        if len as u64 > limit_bytes {
            return Err(TooLarge { limit_bytes, is_packed: true }.to_string());
        }
        if done.status == Status::StreamEnd {
            unpacked.truncate(len);
            return Ok(unpacked);
        }
        if done.bytes_consumed == 0 && done.bytes_produced == 0 {
            return Err("it ends within its packed data".to_owned());
        }
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
