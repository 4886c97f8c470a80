//! The bytes of an input: a mapped file, unpacked data or a buffer.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::ops::{Deref, Range};
use std::path::Path;

use perfuse_mapped::{CUT, MappedFile, TooLarge, UnpackLimit, free_bytes, open_regular};

use crate::packed::{Compression, MAGIC_BYTES, Unpacker, stated_size, unpack_at_once};

/// Unpacked data above this size goes to an unlinked temporary file instead of memory.
const SPILL_BYTES: usize = 64 << 20;
/// Largest input that is unpacked into memory where its size is known before, and as a share of the process's limit.
const MAX_MEMORY_BYTES: u64 = 512 << 20;
const MEMORY_SHARE: u64 = 16;
/// Space that unpacking leaves free for others.
const SPARE_BYTES: u64 = 64 << 20;

/// The bytes of one input: mapped read-only, unpacked, or owned.
#[derive(Debug)]
pub struct Source {
    /// Path as given, `-` for standard input.
    pub path: String,
    /// Why unpacking ended early, where the input was a cut or damaged `.gz`, `.zst` or `.xz`.
    pub unpack_error: Option<String>,
    /// How large parts of it that are compressed may become.
    pub unpack_limit: UnpackLimit,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Mapped(MappedFile),
    Owned(Vec<u8>),
}

impl Source {
    /// Maps a file, as [`Source::open_within`] does with the usual limits.
    ///
    /// # Errors
    /// Those of [`Source::open_within`].
    pub fn open(path: &str) -> io::Result<Self> {
        Self::open_within(path, UnpackLimit::default())
    }

    /// Maps a regular file, or copies what cannot be mapped; gzip, zstd and xz streams are recognized by their magic number and
    /// unpacked.
    ///
    /// # Errors
    /// Those of the operating system; `InvalidInput` for a pipe or device, which [`Source::from_reader`] reads; [`TooLarge`]
    /// for a stream that unpacks to more than the limit. A damaged compressed stream is not an error: the part that can be
    /// unpacked is returned.
    pub fn open_within(path: &str, limit: UnpackLimit) -> io::Result<Self> {
        let map = match MappedFile::new(open_regular(Path::new(path))?) {
            Err(error) if MappedFile::cannot_map(&error) => {
                return Self::from_reader(path, open_regular(Path::new(path))?, limit);
            }
            mapped => mapped?,
        };
        if let Some(compression) = Compression::of(&map) {
            let unpacked = unpack_bytes(path, compression, &map, limit)?;
            return if map.is_cut() { Err(io::Error::other(CUT)) } else { Ok(unpacked) };
        }
        Ok(Self { path: path.to_owned(), unpack_error: None, unpack_limit: limit, bytes: Bytes::Mapped(map) })
    }

    /// Takes bytes from memory, as [`Source::from_bytes_within`] does with the usual limits.
    ///
    /// # Errors
    /// Those of [`Source::from_bytes_within`].
    pub fn from_bytes(path: &str, bytes: Vec<u8>) -> io::Result<Self> {
        Self::from_bytes_within(path, bytes, UnpackLimit::default())
    }

    /// Takes bytes from memory, and unpacks them where they are compressed.
    ///
    /// # Errors
    /// Where unpacking needs a temporary file that cannot be created, and [`TooLarge`].
    pub fn from_bytes_within(path: &str, bytes: Vec<u8>, limit: UnpackLimit) -> io::Result<Self> {
        if let Some(compression) = Compression::of(&bytes) {
            return unpack_bytes(path, compression, &bytes, limit);
        }
        Ok(Self {
            path: path.to_owned(),
            unpack_error: None,
            unpack_limit: limit,
            bytes: Bytes::Owned(bytes),
        })
    }

    /// Copies what a pipe or another stream contains, and unpacks it where it is compressed.
    ///
    /// # Errors
    /// Those of the reader, and of the temporary file; [`TooLarge`] for more bytes than the limit allows, so that a stream
    /// without an end has one.
    pub fn from_reader(path: &str, mut reader: impl Read, limit: UnpackLimit) -> io::Result<Self> {
        let mut head = Vec::with_capacity(MAGIC_BYTES);
        reader.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut head)?;
        let compression = Compression::of(&head);
        let whole = io::Cursor::new(head).chain(reader);
        match compression {
            Some(compression) => unpack(path, Unpacker::new(compression, whole)?, limit),
            None => {
                let mut spill = Spill::default();
                let most = TooLarge { limit_bytes: limit.of_stream(), is_packed: false };
                copy(whole, &mut spill, |_| most)?.map_or(Ok(()), Err)?;
                Ok(Self { unpack_limit: limit, ..spill.finish(path)? })
            }
        }
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

    /// The first byte from an offset on that may be other than zero: what a sparse file does not store is skipped.
    #[must_use]
    pub fn next_data(&self, offset: usize) -> usize {
        match &self.bytes {
            Bytes::Mapped(map) => map.next_data(offset),
            Bytes::Owned(_) => offset,
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

fn unpack_bytes(
    path: &str,
    compression: Compression,
    bytes: &[u8],
    limit: UnpackLimit,
) -> io::Result<Source> {
    if let Some(stated) = stated_size(bytes) {
        let limit_bytes = limit.of_packed(bytes.len() as u64);
        if stated > limit_bytes {
            return Err(TooLarge { limit_bytes, is_packed: true }.into());
        }
        if stated <= in_memory_bytes()
            && let Some(unpacked) = usize::try_from(stated).ok().and_then(|size| unpack_at_once(bytes, size))
        {
            return Ok(Source { unpack_limit: limit, ..Spill::of(unpacked).finish(path)? });
        }
        if stated >= SPILL_BYTES as u64 {
            require_space(&temporary_file()?, stated)?;
        }
    }
    unpack(path, Unpacker::new(compression, bytes)?, limit)
}

fn unpack(path: &str, unpacker: Unpacker<'_>, limit: UnpackLimit) -> io::Result<Source> {
    let mut spill = Spill::default();
    let exceeded = |unpacker: &Unpacker<'_>| TooLarge {
        limit_bytes: limit.of_packed(unpacker.taken_bytes()),
        is_packed: true,
    };
    let unpack_error = copy(unpacker, &mut spill, exceeded)?;
    let unpack_error = unpack_error.map(|error| error.to_string());
    Ok(Source { unpack_error, unpack_limit: limit, ..spill.finish(path)? })
}

/// Copies a stream up to its end or to an error in it, which is returned; `limit` is asked for each part.
fn copy<R: Read>(
    mut reader: R,
    spill: &mut Spill,
    limit: impl Fn(&R) -> TooLarge,
) -> io::Result<Option<io::Error>> {
    let mut chunk = vec![0u8; 1 << 20];
    loop {
        perfuse_stopping::checkpoint();
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(len) => spill.push(chunk.get(..len).unwrap_or_default())?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Some(error)),
        }
        let limit = limit(&reader);
        if spill.len() > limit.limit_bytes {
            return Err(limit.into());
        }
    }
}

/// How large an input of a known size may be to be unpacked into memory. A temporary file has a copy of each page in the file
/// system's memory, which takes longer to make than to unpack it.
#[must_use]
pub fn in_memory_bytes() -> u64 {
    MAX_MEMORY_BYTES.min(perfuse_stopping::memory::limit().saturating_div(MEMORY_SHARE))
}

/// Fails where a temporary file cannot get that many bytes.
fn require_space(file: &File, bytes: u64) -> io::Result<()> {
    let Some(free) = free_bytes(file) else { return Ok(()) };
    if free >= bytes.saturating_add(SPARE_BYTES) {
        return Ok(());
    }
    let directory = std::env::temp_dir();
    let message = format!(
        "unpacked it is larger than the {} MiB that are free for temporary files in {}",
        free >> 20,
        directory.display()
    );
    Err(io::Error::new(io::ErrorKind::StorageFull, message))
}

/// Collects unpacked bytes, in memory up to a limit and then in a temporary file.
#[derive(Debug, Default)]
pub struct Spill {
    buffer: Vec<u8>,
    file: Option<File>,
    len: u64,
}

impl Spill {
    /// Bytes that are in memory already.
    #[must_use]
    pub fn of(bytes: Vec<u8>) -> Self {
        Self { len: bytes.len() as u64, buffer: bytes, file: None }
    }

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
            require_space(file, self.buffer.len() as u64)?;
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
        Ok(Source { path: path.to_owned(), unpack_error: None, unpack_limit: UnpackLimit::default(), bytes })
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
