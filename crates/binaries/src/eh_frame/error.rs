use std::fmt;

/// Why a file has no rows of `.eh_frame`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// It is no ELF file, or its headers make no sense.
    NotElf(String),
    /// A machine whose registers are not known here.
    Machine,
    /// It has no `.eh_frame`, or one without bytes.
    NoSection,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotElf(why) => write!(f, "not an ELF file: {why}"),
            Self::Machine => f.write_str("a machine other than x86_64, aarch64 and s390x"),
            Self::NoSection => f.write_str("there is no .eh_frame"),
        }
    }
}

impl std::error::Error for Error {}
