//! Errors.

use std::fmt;
use std::io;

use perfuse_wire::ParseError;

/// Why a file cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An error of the operating system.
    Io(io::Error),
    /// Bytes are pushed to a dump that was opened by its path.
    IsFile,
    /// The bytes are not of the format: what is wrong, and at which offset.
    Format(ParseError),
    /// The file became shorter or was written anew while it was used. What was found in it before stays right; it cannot be read
    /// further. Open it again.
    Cut,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
            Self::IsFile => {
                f.write_str("bytes are pushed to a dump of a file: `poll` reads what is appended to it")
            }
            Self::Cut => {
                f.write_str("the file became shorter or was written anew while it was read: open it again")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Format(error) => Some(error),
            Self::IsFile | Self::Cut => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Self {
        Self::Format(error)
    }
}
