//! The output of a repair: a file, or only the number of bytes where a size must be known first.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};

use crate::encode::{self, EncodeError};
use crate::log::XRay;
use crate::records::{Record, XRayDialect};

/// Number of buffered bytes above which they are written.
const FLUSH_BYTES: usize = 1 << 16;

/// Encodes records of a dialect.
pub struct RepairOutput<'w> {
    sink: Option<&'w mut dyn Write>,
    dialect: XRayDialect,
    buffer: Vec<u8>,
    /// Number of bytes.
    pub len: u64,
    /// The first absolute counter.
    pub first_tsc: Option<u64>,
    /// Where bytes are only counted, two hashes of them, with keys that nobody can know.
    hashers: Option<Hashers>,
}

type Hashers = [<RandomState as BuildHasher>::Hasher; 2];

impl<'w> RepairOutput<'w> {
    /// An output to a writer.
    pub fn to(sink: &'w mut dyn Write, dialect: XRayDialect) -> Self {
        Self { sink: Some(sink), dialect, buffer: Vec::new(), len: 0, first_tsc: None, hashers: None }
    }

    /// An output that only counts bytes and computes hashes of them.
    pub fn counting(dialect: XRayDialect, keys: &[RandomState; 2]) -> Self {
        let hashers = Some(keys.each_ref().map(BuildHasher::build_hasher));
        Self { sink: None, dialect, buffer: Vec::new(), len: 0, first_tsc: None, hashers }
    }

    /// Appends a record.
    ///
    /// # Errors
    /// When writing fails.
    pub fn put(&mut self, record: &Record<'_>) -> io::Result<()> {
        if let Record::NewCpuId { tsc, .. } = record {
            self.first_tsc.get_or_insert(*tsc);
        }
        record
            .encode(self.dialect, &mut self.buffer)
            .map_err(|error: EncodeError| io::Error::other(error.to_string()))?;
        self.flush_above(FLUSH_BYTES)
    }

    /// Appends encoded records.
    ///
    /// # Errors
    /// When writing fails.
    pub fn put_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.flush_above(FLUSH_BYTES)
    }

    /// Appends this many zero bytes.
    ///
    /// # Errors
    /// When writing fails.
    pub fn pad(&mut self, mut bytes: u64) -> io::Result<()> {
        while bytes > 0 {
            let now = bytes.min(FLUSH_BYTES as u64);
            self.buffer.resize(self.buffer.len().saturating_add(now as usize), 0);
            self.flush_above(FLUSH_BYTES)?;
            bytes = bytes.saturating_sub(now);
        }
        Ok(())
    }

    /// Writes buffered bytes.
    ///
    /// # Errors
    /// When writing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.flush_above(1)
    }

    /// The hashes of the bytes so far.
    pub fn hashes(&self) -> [u64; 2] {
        self.hashers.as_ref().map(|hashers| hashers.each_ref().map(Hasher::finish)).unwrap_or_default()
    }

    /// Writes the buffered bytes if there are at least this many.
    fn flush_above(&mut self, from: usize) -> io::Result<()> {
        if self.buffer.len() >= from {
            self.len = self.len.saturating_add(self.buffer.len() as u64);
            for hasher in self.hashers.iter_mut().flatten() {
                hasher.write(&self.buffer);
            }
            if let Some(sink) = &mut self.sink {
                sink.write_all(&self.buffer)?;
            }
            self.buffer.clear();
        }
        Ok(())
    }
}

/// The header of a log with this rate.
pub fn log_header(log: &XRay, hz: u64, buffer_size: u64) -> Vec<u8> {
    let header = log.header();
    let version = header.dialect().version;
    encode::header(header.mode, version, header.tsc_flags(), hz, buffer_size, header.endian)
}
