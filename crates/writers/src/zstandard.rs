//! Zstandard compression of whole files.

use std::io::{self, Read, Write};

/// Level of compression: that of the `zstd` program.
const LEVEL: i32 = 3;

/// Number of bytes that are compressed at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Compresses all bytes of `input` into one frame with a checksum.
pub fn compress(mut input: impl Read, out: impl Write) -> io::Result<()> {
    let mut encoder = zstd::Encoder::new(out, LEVEL)?;
    encoder.include_checksum(true)?;
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        perfuse_stopping::checkpoint();
        match input.read(&mut chunk)? {
            0 => break,
            len => encoder.write_all(chunk.get(..len).unwrap_or_default())?,
        }
    }
    encoder.finish()?.flush()
}
