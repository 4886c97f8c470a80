//! Checksums of the row groups of a table: a part of a large table is read, and verified, without the rest.
//!
//! The footer states the CRC-32 of each row group. The CRC-32 of the footer itself follows from that of all bytes, which the
//! directory of the zip file states, since the sum of parts in a row can be computed of the sums of the parts.

use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use bytes::{Buf, Bytes};
use crc32fast::Hasher;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{ChunkReader, Length};

/// Key of the Parquet metadata with the CRC-32 of the bytes of each row group.
pub(crate) const ROW_GROUP_SUMS: &str = "perfuse_row_group_crc32";
/// What is wrong with bytes that have another checksum.
pub(crate) const DAMAGED: &str = "its checksum is wrong: the file is damaged";

/// A writer that computes the CRC-32 of what is written.
pub(crate) struct Summing<W> {
    out: W,
    sum: Hasher,
}

impl<W> Summing<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, sum: Hasher::new() }
    }

    /// The checksum of what was written since the last call.
    pub(crate) fn take_sum(&mut self) -> u32 {
        std::mem::take(&mut self.sum).finalize()
    }
}

impl<W: Write> Write for Summing<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let len = self.out.write(data)?;
        self.sum.update(data.get(..len).unwrap_or_default());
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// The end of each row group and its CRC-32, as a footer states them; `None` where it does not, or where bytes of a row group
/// are not between those of its neighbours.
pub(crate) fn stated_sums(metadata: &ParquetMetaData, len: usize) -> Option<Vec<(u64, u32)>> {
    let facts = metadata.file_metadata().key_value_metadata()?;
    let text = facts.iter().find(|fact| fact.key == ROW_GROUP_SUMS)?.value.as_deref()?;
    let mut words = text.split(' ');
    let (mut parts, mut at) = (Vec::new(), 0u64);
    for group in metadata.row_groups() {
        let sum = u32::from_str_radix(words.next()?, 16).ok()?;
        let mut end = at;
        for chunk in group.columns() {
            let (start, size) = chunk.byte_range();
            if start < at {
                return None;
            }
            end = end.max(start.checked_add(size)?);
        }
        if end <= at || end > len as u64 {
            return None;
        }
        parts.push((end, sum));
        at = end;
    }
    (words.next().is_none() && parts.len() > 1).then_some(parts)
}

/// A part of the bytes of a table.
struct Part {
    end: usize,
    sum: u32,
    is_right: OnceLock<bool>,
}

/// The bytes of a table. No byte of it is returned before the part that it is in has its checksum.
#[derive(Clone)]
pub(crate) struct VerifiedBytes {
    bytes: Bytes,
    parts: Arc<[Part]>,
}

impl VerifiedBytes {
    /// Bytes with the CRC-32 `crc`, of which parts from the start on have the stated ends and sums, and the rest is verified now.
    /// `None` where the sums contradict each other.
    pub(crate) fn new(bytes: Bytes, parts: Option<&[(u64, u32)]>, crc: u32) -> Option<Self> {
        let (mut all, mut start, mut known) = (Hasher::new(), 0u64, Vec::new());
        for (end, sum) in parts.unwrap_or_default() {
            all.combine(&Hasher::new_with_initial_len(*sum, end.checked_sub(start)?));
            known.push(Part { end: usize::try_from(*end).ok()?, sum: *sum, is_right: OnceLock::new() });
            start = *end;
        }
        let rest = bytes.get(usize::try_from(start).ok()?..)?;
        let mut sum = Hasher::new();
        sum.update(rest);
        all.combine(&sum);
        let sum = sum.finalize();
        known.push(Part { end: bytes.len(), sum, is_right: OnceLock::from(true) });
        (all.finalize() == crc).then(|| Self { bytes, parts: known.into() })
    }

    /// Whether a part was read whose checksum is wrong.
    pub(crate) fn is_damaged(&self) -> bool {
        self.parts.iter().any(|part| part.is_right.get() == Some(&false))
    }

    /// The end of the part that an offset is in, after its checksum was compared; the end of the file for offsets after it.
    fn verify(&self, offset: usize) -> Result<usize, ParquetError> {
        let number = self.parts.partition_point(|part| part.end <= offset);
        let Some(part) = self.parts.get(number) else { return Ok(self.bytes.len()) };
        let start =
            number.checked_sub(1).and_then(|before| self.parts.get(before)).map_or(0, |part| part.end);
        let is_right = part.is_right.get_or_init(|| {
            let bytes = self.bytes.get(start..part.end).unwrap_or_default();
            crc32fast::hash(bytes) == part.sum
        });
        if *is_right { Ok(part.end) } else { Err(ParquetError::General(DAMAGED.to_owned())) }
    }
}

impl Length for VerifiedBytes {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }
}

impl ChunkReader for VerifiedBytes {
    type T = bytes::buf::Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        let start = usize::try_from(start)?;
        let end = self.verify(start)?;
        if start > end {
            return Err(ParquetError::EOF(format!("offset {start} is after the end of the file")));
        }
        Ok(self.bytes.slice(start..end).reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let start = usize::try_from(start)?;
        let end = start.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end =
            end.ok_or_else(|| ParquetError::EOF(format!("{length} bytes at {start} are not in the file")))?;
        let mut verified = start;
        while verified < end {
            verified = self.verify(verified)?;
        }
        Ok(self.bytes.slice(start..end))
    }
}
