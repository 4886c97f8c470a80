//! Files of others: only regular ones are opened; they are mapped into memory and may become shorter while they are read; what
//! they unpack to is limited.
//!
//! A read beyond the end of a mapped file is the signal SIGBUS, which ends the process. A handler replaces the pages that
//! are gone by zeros and notes it in the mapping: decoders check all that they read, and come to an end; their caller
//! then asks [`MappedFile::is_cut`], and reports that the file was cut instead of a result. Signals that come from other
//! memory go to the handler that was there before.

mod fault;
mod regular;
mod unpack_limit;

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use memmap2::{Mmap, UncheckedAdvice};

use fault::Watch;

pub use regular::{free_bytes, is_own_or_of_root, open_regular, read_at_most, read_regular};
pub use unpack_limit::{TooLarge, UnpackLimit};

/// What is wrong with a file that [`MappedFile::is_cut`].
pub const CUT: &str = "the file became shorter while it was read";

/// The bytes of a file, mapped read-only; those that the file loses while it is mapped become zeros.
#[derive(Debug)]
pub struct MappedFile {
    // Before the mapping: the handler must not know a mapping that is gone.
    watch: Watch,
    map: Mmap,
    /// For its size; `None` where many files are open already.
    file: Option<OpenFile>,
}

impl MappedFile {
    /// Maps a whole file, and keeps it open to learn whether it becomes shorter; of many files, only the first ones.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn new(file: File) -> io::Result<Self> {
        let mut mapped = Self::closing(&file)?;
        mapped.file = OpenFile::new(file);
        Ok(mapped)
    }

    /// Maps a whole file and does not keep it open, for callers that map many files: that it became shorter is noticed only
    /// where a page that is gone is read.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn closing(file: &File) -> io::Result<Self> {
        // SAFETY: read-only and private. Another process may change the file: readers check every length where they use it,
        // and what a shorter file lacks is replaced by zeros.
        let map = unsafe { Mmap::map(file) }?;
        let watch = Watch::new(map.as_ptr() as usize, map.len());
        Ok(Self { watch, map, file: None })
    }

    /// Whether an error of [`Self::new`] is that the file's system has files that can be read and not mapped: `/proc`, and some
    /// that are mounted from elsewhere.
    #[must_use]
    pub fn cannot_map(error: &io::Error) -> bool {
        error.raw_os_error() == Some(libc::ENODEV)
    }

    /// Whether the file became shorter than it was when it was mapped. What was read since may be zeros.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        let is_shorter =
            |OpenFile(file): &OpenFile| file.metadata().is_ok_and(|now| now.len() < self.map.len() as u64);
        if self.file.as_ref().is_some_and(is_shorter) {
            self.watch.note_cut();
        }
        self.watch.is_cut()
    }

    /// The first byte from an offset on that is stored, or the length of the file: the file system reports which parts of a sparse
    /// file are zeros without reading them. The offset itself where it is not known.
    #[must_use]
    pub fn next_data(&self, offset: usize) -> usize {
        let (Some(OpenFile(file)), Ok(from)) = (&self.file, libc::off_t::try_from(offset)) else {
            return offset;
        };
        // SAFETY: a plain call with an open descriptor, whose position nothing else uses.
        let found = unsafe { libc::lseek(file.as_raw_fd(), from, libc::SEEK_DATA) };
        let is_at_end = || io::Error::last_os_error().raw_os_error() == Some(libc::ENXIO);
        match usize::try_from(found) {
            Ok(found) => found.clamp(offset, self.map.len().max(offset)),
            Err(_) if is_at_end() => self.map.len().max(offset),
            Err(_) => offset,
        }
    }

    /// Returns the pages of a range to the operating system; they are read again on access.
    pub fn release(&self, range: Range<usize>) {
        if let Some(len) = range.end.min(self.map.len()).checked_sub(range.start) {
            // SAFETY: the mapping is a read-only view of a file, so dropped pages come back with its content, or as the
            // zeros that replaced it.
            let _ = unsafe { self.map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, len) };
        }
    }
}

/// Most files that stay open: a process may have 1,024 open by default.
const MOST_OPEN: usize = 256;

/// Number of files that stay open.
static NUM_OPEN: AtomicUsize = AtomicUsize::new(0);

/// One of the files that stay open.
#[derive(Debug)]
struct OpenFile(File);

impl OpenFile {
    /// `None` where so many files are open that this one is closed.
    fn new(file: File) -> Option<Self> {
        let file = Self(file);
        (NUM_OPEN.fetch_add(1, Ordering::Relaxed) < MOST_OPEN).then_some(file)
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        NUM_OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

#[cfg(test)]
mod tests;
