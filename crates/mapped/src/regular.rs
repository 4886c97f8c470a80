//! Opening files by names that may come from strangers.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file for reading. Never waits and never changes anything: a pipe, a terminal or a device is an error before
/// a byte of it is read.
///
/// # Errors
/// Those of the operating system, and `InvalidInput` for anything but a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Asked twice: opening some devices has effects, and what the path names may change before it is opened.
    require_regular(&std::fs::metadata(path)?)?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path)?;
    require_regular(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of a size that is expected of its kind.
///
/// # Errors
/// As [`open_regular`], and `FileTooLarge` where the file has more than `most_bytes`.
pub fn read_regular(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    read_at_most(&open_regular(path)?, most_bytes)
}

/// Reads an open file of a size that is expected of its kind.
///
/// # Errors
/// Those of the operating system, and `FileTooLarge` where the file has more than `most_bytes`.
pub fn read_at_most(file: &File, most_bytes: u64) -> io::Result<Vec<u8>> {
    // Of a file in /proc the size is not known, and another one may grow. One byte more shows the end.
    let expected = file.metadata()?.len().min(most_bytes).saturating_add(1);
    let mut bytes = Vec::with_capacity(usize::try_from(expected).unwrap_or(0));
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {most_bytes} bytes"),
        ));
    }
    Ok(bytes)
}

/// Whether a file belongs to the user of this process or to root: another user may have written the content of any other file in a
/// directory that all users share, such as `/tmp`.
///
/// # Errors
/// Those of the operating system.
pub fn is_own_or_of_root(file: &File) -> io::Result<bool> {
    // SAFETY: the call has no arguments and always succeeds.
    let own = unsafe { libc::geteuid() };
    let owner = file.metadata()?.uid();
    Ok(owner == 0 || owner == own)
}

fn require_regular(status: &std::fs::Metadata) -> io::Result<()> {
    if status.is_file() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
}

/// Bytes that an unprivileged process can still write to the file system of an open file; `None` where that is not known.
#[must_use]
pub fn free_bytes(file: &File) -> Option<u64> {
    let mut status = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the descriptor is open, and the pointer is valid for a write of one `statvfs`.
    let result = unsafe { libc::fstatvfs(file.as_raw_fd(), status.as_mut_ptr()) };
    if result != 0 {
        return None;
    }
    // SAFETY: the call has filled the structure.
    let status = unsafe { status.assume_init() };
    Some(bytes_of(&status))
}

#[allow(clippy::useless_conversion, reason = "the types of the fields differ between platforms")]
fn bytes_of(status: &libc::statvfs) -> u64 {
    u64::from(status.f_bavail).saturating_mul(u64::from(status.f_frsize))
}
