use std::{fmt, io};

use perfuse_tables::access::ColumnError;

/// Why an image could not be written.
#[derive(Debug)]
pub enum Error {
    /// The file could not be written.
    Io(io::Error),
    /// A section grew past what its format can address.
    TooLarge(&'static str),
    /// A batch is not of its table.
    Column(ColumnError),
    /// This table does not ascend by `code_object_id`.
    Unsorted(&'static str),
    /// No function has this `function_id`.
    UnknownFunction(u32),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::TooLarge(section) => write!(f, "too much code for one image: {section} is full"),
            Self::Column(error) => error.fmt(f),
            Self::Unsorted(table) => write!(f, "table {table} does not ascend by code_object_id"),
            Self::UnknownFunction(id) => write!(f, "no function has function_id {id}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Column(error) => Some(error),
            Self::TooLarge(_) | Self::Unsorted(_) | Self::UnknownFunction(_) => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ColumnError> for Error {
    fn from(error: ColumnError) -> Self {
        Self::Column(error)
    }
}
