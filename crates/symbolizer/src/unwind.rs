//! SFrame sections of a program: the row for a program counter.

use std::path::Path;
use std::sync::Arc;

use perfuse_addresses::unwinding::Recovery;
use perfuse_sframe::SFrameFile;

use crate::bytes::GrowingBytes;
use crate::error::Error;

/// The SFrame sections of a program, library, object file or archive, or a section alone. Addresses are those of the file: an
/// address in a process less the difference between where the file is mapped and where it states to be.
#[derive(Debug)]
pub struct SFrameTable {
    file: SFrameFile<GrowingBytes>,
    bytes: Arc<GrowingBytes>,
}

/// How the frame of a function is left at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SFrameRow {
    /// Address at which the function starts.
    pub start_address: u64,
    /// Size of the function in bytes.
    pub size_bytes: u64,
    /// Bytes from the start of the function at which the row begins.
    pub row_offset: u64,
    /// How the registers of the caller are found.
    pub recovery: Recovery,
    /// Whether a signal entered the function: its return address is the interrupted instruction, not one after a call.
    pub is_signal: bool,
}

impl SFrameTable {
    /// Maps a file and reads the headers of its sections.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] where there is no section, or none with a header.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::of(GrowingBytes::open(path.as_ref())?, None)
    }

    /// Takes the bytes of a file, or of a section that is loaded at `address`.
    ///
    /// # Errors
    /// [`Error::Format`], as [`open`](Self::open).
    pub fn from_bytes(bytes: Vec<u8>, address: Option<u64>) -> Result<Self, Error> {
        Self::of(GrowingBytes::Pushed(bytes), address)
    }

    fn of(bytes: GrowingBytes, address: Option<u64>) -> Result<Self, Error> {
        let bytes = Arc::new(bytes);
        Ok(Self { file: SFrameFile::open_at(Arc::clone(&bytes), address)?, bytes })
    }

    /// The row for a program counter; `None` where no function has it, or its row has no defined meaning.
    #[must_use]
    pub fn find(&self, pc: u64) -> Option<SFrameRow> {
        let found = self.file.find(pc)?;
        // Before version 3 the flag of a signal frame has another meaning.
        let is_signal = found.function.info.is_signal() && self.file.units().get(found.unit)?.version() >= 3;
        Some(SFrameRow {
            start_address: found.function.start,
            size_bytes: found.function.size.into(),
            row_offset: found.row?.start.into(),
            recovery: found.recovery?.ok()?,
            is_signal,
        })
    }

    /// Whether the file became shorter since it was opened, so that what was found in it may be wrong.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.bytes.is_cut()
    }
}
