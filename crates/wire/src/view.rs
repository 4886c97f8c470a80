//! Records and values as `perfuse records` prints them.

use std::borrow::Cow;

/// The value of a decoded field, ready to be printed or written as JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A count, size, line or id.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// An address, flag word or magic: printed in hexadecimal, a hexadecimal string in JSON.
    Hex(u64),
    /// Text; bytes that are not UTF-8 are replaced.
    Text(Cow<'a, str>),
    /// Bytes that are not text.
    Bytes(&'a [u8]),
    /// Entries, each a list of named fields.
    Entries(Vec<Vec<(&'static str, Value<'a>)>>),
}

impl<'a> Value<'a> {
    /// Text of a file; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn text(bytes: &'a [u8]) -> Self {
        Self::Text(String::from_utf8_lossy(bytes))
    }
}

/// A record of any format, as `perfuse records` prints it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordView<'a> {
    /// Zero-based index in the file.
    pub index: u64,
    /// Absolute offset of its first byte.
    pub offset: u64,
    /// Size in bytes, header included.
    pub size: u64,
    /// Name in the specification, or `Unknown RecordTag N`.
    pub name: Cow<'a, str>,
    /// Time stamp as written in the file; `None` where the record has none.
    pub timestamp: Option<u64>,
    /// Names and values of the decoded fields, in the order of the specification.
    pub fields: Vec<(&'static str, Value<'a>)>,
}
