//! An FDR log on its way out.

use std::io::Write;

use super::super::consts::METADATA_BYTES;
use super::super::header::Mode;
use super::super::records::{Dialect, Record};
use super::{Buffer, LogSpec, WriteError};

/// Writes the buffers of an FDR log to a sink.
#[derive(Debug)]
pub struct FdrWriter<W: Write> {
    out: W,
    spec: LogSpec,
}

impl<W: Write> FdrWriter<W> {
    /// Begins a log with its header.
    ///
    /// # Errors
    /// When there is no such version, or the sink refuses.
    pub fn new(mut out: W, spec: LogSpec) -> Result<Self, WriteError> {
        if spec.mode != Mode::Fdr || !spec.is_known() {
            return Err(WriteError::Version(spec.mode, spec.version));
        }
        out.write_all(&spec.header())?;
        Ok(Self { out, spec })
    }

    /// How records of its buffers are written.
    #[must_use]
    pub fn dialect(&self) -> Dialect {
        self.spec.dialect()
    }

    /// Bytes that a buffer takes in a log of a version, padding apart.
    #[must_use]
    pub fn bytes_of(buffer: &Buffer) -> u64 {
        // BufferExtents before it, or EndOfBuffer behind.
        buffer.bytes().len().saturating_add(METADATA_BYTES) as u64
    }

    /// Appends a buffer: behind its extents, or up to the place of the next one.
    ///
    /// # Errors
    /// When the sink refuses, or a buffer of version 1 is larger than `buffer_size`.
    pub fn write(&mut self, buffer: &mut Buffer) -> Result<(), WriteError> {
        buffer.seal();
        let (bytes, records) = (Self::bytes_of(buffer), buffer.bytes());
        let dialect = self.dialect();
        let mut mark = Vec::with_capacity(METADATA_BYTES);
        if dialect.version > 1 {
            // Every version from 2 on has it.
            let _ = Record::BufferExtents(records.len() as u64).encode(dialect, &mut mark);
            self.out.write_all(&mark)?;
            self.out.write_all(records)?;
            return Ok(());
        }
        let buffer_size = self.spec.buffer_size;
        let padding = buffer_size.checked_sub(bytes).ok_or(WriteError::TooLarge { bytes, buffer_size })?;
        let _ = Record::EndOfBuffer.encode(dialect, &mut mark);
        self.out.write_all(records)?;
        self.out.write_all(&mark)?;
        std::io::copy(&mut std::io::Read::take(std::io::repeat(0), padding), &mut self.out)?;
        Ok(())
    }

    /// The sink.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Hands everything on.
    ///
    /// # Errors
    /// When the sink refuses.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        Ok(self.out.flush()?)
    }

    /// Hands everything on, and gives the sink back.
    ///
    /// # Errors
    /// When the sink refuses.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.flush()?;
        Ok(self.out)
    }
}
