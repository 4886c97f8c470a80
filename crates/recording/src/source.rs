//! The bytes of an input: a mapped file, unpacked data or a buffer.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::ops::{Deref, Range};

use perfuse_mapped::{CUT, MappedFile};

/// Unpacked data above this size goes to an unlinked temporary file instead of memory.
const SPILL_BYTES: usize = 64 << 20;

/// The bytes of one input: mapped read-only, unpacked, or owned.
#[derive(Debug)]
pub struct Source {
    /// Path as given, `-` for standard input.
    pub path: String,
    /// Why unpacking ended early, where the input was a cut or damaged `.gz` or `.zst`.
    pub unpack_error: Option<String>,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(MappedFile),
    Owned(Vec<u8>),
}

impl Source {
    /// Maps a file; gzip and zstd streams are recognized by their magic number and unpacked.
    ///
    /// # Errors
    /// Those of the operating system. A damaged compressed stream is not an error: the part that can be unpacked is returned.
    pub fn open(path: &str) -> io::Result<Self> {
        let file = File::open(path)?;
        if !file.metadata()?.is_file() {
            let mut bytes = Vec::new();
            (&file).read_to_end(&mut bytes)?;
            return Self::from_bytes(path, bytes);
        }
        let map = MappedFile::new(file)?;
        if let Some(unpacker) = unpacker(&map) {
            let unpacked = unpack(path, unpacker)?;
            return if map.is_cut() { Err(io::Error::other(CUT)) } else { Ok(unpacked) };
        }
        Ok(Self { path: path.to_owned(), unpack_error: None, bytes: Bytes::Mapped(map) })
    }

    /// Takes bytes from memory, and unpacks them where they are compressed.
    ///
    /// # Errors
    /// Where unpacking needs a temporary file that cannot be created.
    pub fn from_bytes(path: &str, bytes: Vec<u8>) -> io::Result<Self> {
        if let Some(unpacker) = unpacker(&bytes) {
            return unpack(path, unpacker);
        }
        Ok(Self { path: path.to_owned(), unpack_error: None, bytes: Bytes::Owned(bytes) })
    }

    /// The bytes at an offset; fewer where the input ends.
    #[must_use]
    pub fn get_range(&self, offset: u64, size: u64) -> &[u8] {
        let clip = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(self.len());
        self.get(clip(offset)..clip(offset.saturating_add(size))).unwrap_or_default()
    }

    /// Whether the file became shorter since it was opened, so that what was read of it may be wrong.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        matches!(&self.bytes, Bytes::Mapped(map) if map.is_cut())
    }

    /// Asks the operating system to map the pages of a range at once, before a pass: cheaper than a page fault every few pages.
    pub fn prepare(&self, range: Range<usize>) {
        if let Bytes::Mapped(map) = &self.bytes {
            map.prepare(range);
        }
    }

    /// Prefetches the cache line at an offset that will be read soon, for passes over offsets that are far apart.
    #[inline]
    pub fn touch(&self, offset: u64) {
        std::hint::black_box(self.get(usize::try_from(offset).unwrap_or(usize::MAX)).copied());
    }

    /// Returns the pages of a range to the operating system after a pass, so that resident memory stays small for a file of
    /// any size. They are read again on access.
    pub fn release(&self, range: Range<usize>) {
        if let Bytes::Mapped(map) = &self.bytes {
            map.release(range);
        }
    }
}

impl Deref for Source {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(map) => map,
            Bytes::Owned(bytes) => bytes,
        }
    }
}

fn unpacker(bytes: &[u8]) -> Option<Box<dyn Read + '_>> {
    if bytes.starts_with(&[0x1f, 0x8b]) {
        Some(Box::new(flate2::read::MultiGzDecoder::new(bytes)))
    } else if bytes.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        Some(Box::new(zstd::stream::read::Decoder::with_buffer(bytes).ok()?))
    } else {
        None
    }
}

fn unpack(path: &str, mut unpacker: Box<dyn Read + '_>) -> io::Result<Source> {
    let mut spill = Spill::default();
    let mut chunk = vec![0u8; 1 << 20];
    let mut unpack_error = None;
    loop {
        match unpacker.read(&mut chunk) {
            Ok(0) => break,
            Ok(len) => spill.push(chunk.get(..len).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                unpack_error = Some(error.to_string());
                break;
            }
        }
    }
    Ok(Source { unpack_error, ..spill.finish(path)? })
}

/// Collects unpacked bytes, in memory up to a limit and then in a temporary file.
#[derive(Debug, Default)]
pub struct Spill {
    buffer: Vec<u8>,
    file: Option<File>,
    len: u64,
}

impl Spill {
    /// Appends unpacked bytes.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.len = self.len.saturating_add(bytes.len() as u64);
        if self.buffer.len() >= SPILL_BYTES {
            let file = match &mut self.file {
                Some(file) => file,
                None => self.file.insert(temporary_file()?),
            };
            file.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Number of bytes so far.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes so far.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes as a source with the path they were unpacked from.
    ///
    /// # Errors
    /// Those of the temporary file.
    pub fn finish(self, path: &str) -> io::Result<Source> {
        let bytes = match self.file {
            None => Bytes::Owned(self.buffer),
            Some(mut file) => {
                file.write_all(&self.buffer)?;
                file.rewind()?;
                Bytes::Mapped(MappedFile::closing(&file)?)
            }
        };
        Ok(Source { path: path.to_owned(), unpack_error: None, bytes })
    }
}

/// Creates a file without a name, which is deleted when it is closed.
fn temporary_file() -> io::Result<File> {
    let dir = std::env::temp_dir();
    for attempt in 0u32..100 {
        let path = dir.join(format!("perfuse-{}-{attempt}.unpacked", std::process::id()));
        match File::options().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => {
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a temporary file"))
}
