//! Compressed inputs: which compression, and the readers that unpack them.

use std::cell::Cell;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

use lzma_rust2::{Action, Status, XzStream};
use perfuse_mapped::open_regular;

/// Memory for the dictionary of an `.xz` file, in KiB; `xz -9` uses 64 MiB. A file may ask for 4 GiB.
const XZ_MEMORY_KIB: u32 = 256 << 10;

/// Bytes that decide whether an input is compressed.
pub(crate) const MAGIC_BYTES: usize = 6;

/// A compression that inputs are read through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    Gzip,
    Zstd,
    Xz,
}

impl Compression {
    /// The compression of an input with these first bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let magics: [(&[u8], Self); 3] = [
            (&[0x1f, 0x8b], Self::Gzip),
            (&[0x28, 0xb5, 0x2f, 0xfd], Self::Zstd),
            (&[0xfd, b'7', b'z', b'X', b'Z', 0], Self::Xz),
        ];
        magics.into_iter().find(|(magic, _)| bytes.starts_with(magic)).map(|(_, compression)| compression)
    }
}

/// The size that an input states it has when unpacked; few do.
pub(crate) fn stated_size(bytes: &[u8]) -> Option<u64> {
    match Compression::of(bytes)? {
        Compression::Zstd => zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten(),
        Compression::Gzip | Compression::Xz => None,
    }
}

/// The first bytes of a regular file, unpacked where it is compressed. Fewer where it is shorter, or damaged before.
///
/// # Errors
/// Those of the operating system; `InvalidInput` for a pipe or device.
pub fn head_of(path: &Path, num_bytes: u64) -> io::Result<Vec<u8>> {
    let mut magic = Vec::new();
    open_regular(path)?.take(MAGIC_BYTES as u64).read_to_end(&mut magic)?;
    let file = open_regular(path)?;
    let mut head = Vec::new();
    match Compression::of(&magic) {
        None => {
            file.take(num_bytes).read_to_end(&mut head)?;
        }
        Some(compression) => {
            // Of a damaged file, what precedes the damage is in the buffer.
            let _damage = Unpacker::new(compression, file)?.take(num_bytes).read_to_end(&mut head);
        }
    }
    Ok(head)
}

/// Unpacks a whole input whose stated size is `size`, without copies in between. `None` where that is not its size, or it is damaged.
pub(crate) fn unpack_at_once(bytes: &[u8], size: usize) -> Option<Vec<u8>> {
    // One byte more, so that an input of several frames is not cut at the end of the first.
    let unpacked = zstd::bulk::decompress(bytes, size.saturating_add(1)).ok()?;
    (unpacked.len() == size).then_some(unpacked)
}

/// Unpacks a compressed stream, and counts the bytes that it takes.
pub(crate) struct Unpacker<'a> {
    unpacked: Box<dyn Read + 'a>,
    taken: Rc<Cell<u64>>,
}

impl<'a> Unpacker<'a> {
    /// Reads a stream of that compression.
    ///
    /// # Errors
    /// When the decoder cannot be made.
    pub(crate) fn new(compression: Compression, packed: impl Read + 'a) -> io::Result<Self> {
        let taken = Rc::new(Cell::new(0));
        let packed = Counted { inner: packed, taken: Rc::clone(&taken) };
        let unpacked: Box<dyn Read + 'a> = match compression {
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(packed)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(packed)?),
            Compression::Xz => Box::new(XzUnpacker::new(packed)),
        };
        Ok(Self { unpacked, taken })
    }

    /// Compressed bytes that were taken so far, those that wait in a buffer included.
    pub(crate) fn taken_bytes(&self) -> u64 {
        self.taken.get()
    }
}

impl Read for Unpacker<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.unpacked.read(buffer)
    }
}

struct Counted<R> {
    inner: R,
    taken: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.taken.set(self.taken.get().saturating_add(len as u64));
        Ok(len)
    }
}

/// Bytes of an `.xz` file that are decoded at a time: where one is damaged, what these contain is lost.
const XZ_PART: usize = 16 << 10;

/// Unpacks `.xz`; of a cut file, everything before the cut.
struct XzUnpacker<R> {
    packed: R,
    stream: XzStream,
    part: Vec<u8>,
    /// Bytes of the part that were decoded, and all of them.
    decoded: usize,
    len: usize,
    is_at_end: bool,
}

impl<R: Read> XzUnpacker<R> {
    fn new(packed: R) -> Self {
        let stream = XzStream::new_mem_limit(true, XZ_MEMORY_KIB);
        Self { packed, stream, part: vec![0; XZ_PART], decoded: 0, len: 0, is_at_end: false }
    }
}

impl<R: Read> Read for XzUnpacker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            perfuse_stopping::checkpoint();
            if self.decoded >= self.len && !self.is_at_end {
                self.len = self.packed.read(&mut self.part)?;
                self.decoded = 0;
                self.is_at_end = self.len == 0;
            }
            let action = if self.is_at_end { Action::Finish } else { Action::Run };
            let rest = self.part.get(self.decoded..self.len).unwrap_or_default();
            let done = self.stream.process(rest, buffer, action)?;
            self.decoded = self.decoded.saturating_add(done.bytes_consumed);
            if done.bytes_produced > 0 || done.status == Status::StreamEnd {
                return Ok(done.bytes_produced);
            }
            if self.is_at_end && done.bytes_consumed == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{stated_size, unpack_at_once};

    fn packed(content: &[u8]) -> Vec<u8> {
        zstd::bulk::compress(content, 3).expect("packed")
    }

    #[test]
    fn an_input_that_states_its_size_is_unpacked_at_once() {
        let whole = packed(b"content of a file");
        assert_eq!(stated_size(&whole), Some(17));
        assert_eq!(unpack_at_once(&whole, 17).as_deref(), Some(&b"content of a file"[..]));
    }

    #[test]
    fn several_frames_and_damaged_ones_are_not() {
        let (one, two) = (packed(b"content of a file"), packed(b"and of another one"));
        assert_eq!(unpack_at_once(&[one.clone(), two].concat(), 17), None);
        assert_eq!(unpack_at_once(&one[..one.len() - 3], 17), None);
        assert_eq!(unpack_at_once(&packed(b""), 17), None);
    }
}
