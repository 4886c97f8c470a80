//! Errors.

use std::fmt;
use std::io;

use perfuse_wire::ParseError;

/// Why a file cannot be read.
#[derive(Debug)]
pub enum Error {
    /// An error of the operating system.
    Io(io::Error),
    /// The bytes are not of the format: what is wrong, and at which offset.
    Format(ParseError),
    /// The file became shorter while it was used. What was found in it before stays right; it cannot be read further.
    Cut,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Format(error) => error.fmt(f),
            Self::Cut => f.write_str(perfuse_mapped::CUT),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Format(error) => Some(error),
            Self::Cut => None,
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
