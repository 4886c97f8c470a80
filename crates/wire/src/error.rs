use std::fmt;

/// What kind of thing stopped a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The bytes end before the field does.
    Short {
        /// Bytes the field needs.
        need: u64,
        /// Bytes there are.
        have: u64,
    },
    /// A string has no NUL before its record ends.
    NoTerminator,
    /// A LEB128 number has more than 64 bits.
    Overlong,
    /// A field has a value its specification rules out.
    Invalid {
        /// The value found.
        value: u64,
        /// What the specification wants there.
        expected: &'static str,
    },
    /// The file does not begin as this format does.
    BadMagic {
        /// The first four bytes, most significant first.
        found: u32,
    },
    /// A compressed stream cannot be unpacked, or an operating-system read failed.
    Unreadable {
        /// What could not be done.
        what: &'static str,
    },
}

/// A decoder's refusal: kind, absolute offset, field, and the record it happened in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong.
    pub kind: ErrorKind,
    /// Absolute offset in the (uncompressed) file.
    pub offset: u64,
    /// Field that could not be read.
    pub field: &'static str,
    /// Name of the record kind, once known.
    pub record: Option<&'static str>,
    /// Zero-based index of the record in the file, once known.
    pub record_index: Option<u64>,
}

impl ParseError {
    /// An error at an absolute offset, not yet tied to a record.
    #[must_use]
    #[cold]
    pub fn new(kind: ErrorKind, offset: u64, field: &'static str) -> Self {
        Self { kind, offset, field, record: None, record_index: None }
    }

    /// The same error, told to be inside this record.
    #[must_use]
    pub fn within(mut self, record: &'static str, record_index: u64) -> Self {
        self.record = Some(record);
        self.record_index = Some(record_index);
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = Place { record: self.record, field: self.field };
        match self.kind {
            ErrorKind::Short { need, have } => write!(f, "short data in {place}: need {need}, have {have}"),
            ErrorKind::NoTerminator => write!(f, "no NUL ends {place}"),
            ErrorKind::Overlong => write!(f, "number of more than 64 bits in {place}"),
            ErrorKind::Invalid { value, expected } => {
                write!(f, "invalid {place}: {value:#x}, expected {expected}")
            }
            ErrorKind::BadMagic { found } => write!(f, "unknown magic {found:#010x}"),
            ErrorKind::Unreadable { what } => write!(f, "cannot {what}"),
        }?;
        match self.record_index {
            Some(index) => write!(f, " (record {index}, offset {:#x})", self.offset),
            None => write!(f, " (offset {:#x})", self.offset),
        }
    }
}

struct Place {
    record: Option<&'static str>,
    field: &'static str,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.record {
            Some(record) => write!(f, "{record}.{}", self.field),
            None => f.write_str(self.field),
        }
    }
}

impl std::error::Error for ParseError {}
