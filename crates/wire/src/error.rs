//! Errors that stop decoding.

use std::fmt;

/// Kind of a [`ParseError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The bytes end inside the field.
    Short {
        /// Number of bytes of the field.
        need: u64,
        /// Number of bytes left.
        have: u64,
    },
    /// A string has no NUL in its record.
    NoTerminator,
    /// A LEB128 number has more than 64 bits.
    Overlong,
    /// A field has a value that its specification does not allow.
    Invalid {
        /// The value found.
        value: u64,
        /// Description of allowed values.
        expected: &'static str,
    },
    /// The file does not begin with a magic of this format.
    BadMagic {
        /// The first four bytes, most significant first.
        found: u32,
    },
    /// A compressed stream cannot be unpacked, or an operating-system read failed.
    Unreadable {
        /// Description of the failed operation, such as `unpack the stream`.
        what: &'static str,
    },
}

/// An error that stops decoding: its kind, absolute offset, field and record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Kind of the error.
    pub kind: ErrorKind,
    /// Absolute offset in the uncompressed file.
    pub offset: u64,
    /// Name of the field.
    pub field: &'static str,
    /// Name of the record's kind; `None` where not known.
    pub record: Option<&'static str>,
    /// Zero-based index of the record in the file; `None` where not known.
    pub record_index: Option<u64>,
}

impl ParseError {
    /// An error at an absolute offset, without a record.
    #[must_use]
    #[cold]
    pub fn new(kind: ErrorKind, offset: u64, field: &'static str) -> Self {
        Self { kind, offset, field, record: None, record_index: None }
    }

    /// Adds the record that contains the error.
    #[must_use]
    pub fn within(mut self, record: &'static str, record_index: u64) -> Self {
        self.record = Some(record);
        self.record_index = Some(record_index);
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = FieldPath { record: self.record, field: self.field };
        match self.kind {
            ErrorKind::Short { need, have } => write!(f, "short data in {path}: need {need}, have {have}"),
            ErrorKind::NoTerminator => write!(f, "no NUL ends {path}"),
            ErrorKind::Overlong => write!(f, "number of more than 64 bits in {path}"),
            ErrorKind::Invalid { value, expected } => {
                write!(f, "invalid {path}: {value:#x}, expected {expected}")
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

/// A field with its record: `RECORD.field`.
struct FieldPath {
    record: Option<&'static str>,
    field: &'static str,
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.record {
            Some(record) => write!(f, "{record}.{}", self.field),
            None => f.write_str(self.field),
        }
    }
}

impl std::error::Error for ParseError {}
