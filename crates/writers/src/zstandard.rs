//! Zstandard compression of whole files.

use std::io::{self, Read, Write};

/// Level of compression: that of the `zstd` program.
const LEVEL: i32 = 3;

/// Compresses all bytes of `input` into one frame with a checksum.
pub fn compress(mut input: impl Read, out: impl Write) -> io::Result<()> {
    let mut encoder = zstd::Encoder::new(out, LEVEL)?;
    encoder.include_checksum(true)?;
    io::copy(&mut input, &mut encoder)?;
    encoder.finish()?.flush()
}
