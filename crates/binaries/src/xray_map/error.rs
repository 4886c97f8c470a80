use std::{fmt, io};

/// Why a file has no map to read.
#[derive(Debug)]
pub enum Error {
    /// The operating system's answer.
    Io(io::Error),
    /// Neither ELF nor Mach-O, or one whose sections cannot be found; in the reader's words.
    NotAnObject(String),
    /// There is no section `xray_instr_map`, or it was left behind when the file was split.
    NoMap(&'static str),
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(out),
            Self::NotAnObject(why) => write!(out, "not a readable ELF or Mach-O file: {why}"),
            Self::NoMap(why) => write!(out, "no XRay instrumentation map: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<object::Error> for Error {
    fn from(error: object::Error) -> Self {
        Self::NotAnObject(error.to_string())
    }
}
