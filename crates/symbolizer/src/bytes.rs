//! The bytes of a file, which may become more: mapped, or in memory.

use std::fs::File;
use std::ops::{Deref, Range};
use std::path::Path;

use perfuse_mapped::{MappedFile, open_regular};

use crate::error::Error;

/// The bytes so far.
#[derive(Debug)]
pub enum GrowingBytes {
    /// Of a file, which is mapped again when it has grown.
    File(File, MappedFile),
    /// That were pushed.
    Pushed(Vec<u8>),
}

impl GrowingBytes {
    /// Maps a regular file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = open_regular(path)?;
        let map = MappedFile::closing(&file)?;
        Ok(Self::File(file, map))
    }

    /// Looks how long the file is now.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let Self::File(file, map) = self else { return Ok(()) };
        let (now, before) = (file.metadata()?.len(), map.len() as u64);
        if now < before || map.is_cut() {
            return Err(Error::Cut);
        }
        if now > before {
            *map = MappedFile::closing(file)?;
        }
        Ok(())
    }

    /// Returns the pages of a range to the operating system after a pass; they are read again on access.
    pub fn release(&self, range: Range<usize>) {
        if let Self::File(_, map) = self {
            map.release(range);
        }
    }

    /// Whether the file became shorter.
    pub fn is_cut(&self) -> bool {
        match self {
            Self::File(file, map) => {
                map.is_cut() || file.metadata().is_ok_and(|now| now.len() < map.len() as u64)
            }
            Self::Pushed(_) => false,
        }
    }
}

impl Deref for GrowingBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::File(_, map) => map,
            Self::Pushed(bytes) => bytes,
        }
    }
}
