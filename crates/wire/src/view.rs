use std::borrow::Cow;

/// A decoded field, ready to be shown or written as JSON.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// A count, size, line or id.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// An address, flag word or magic: shown in hexadecimal, a hex string in JSON.
    Hex(u64),
    /// Text, lossy where the file's is not UTF-8.
    Text(Cow<'a, str>),
    /// Bytes that are not text.
    Bytes(&'a [u8]),
    /// Entries, each a list of named fields.
    Entries(Vec<Vec<(&'static str, Value<'a>)>>),
}

/// Any record of any format, as `perfuse records` shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordView<'a> {
    /// Zero-based index in the file.
    pub index: u64,
    /// Absolute offset of its first byte.
    pub offset: u64,
    /// Whole size in bytes, header included.
    pub size: u64,
    /// The specification's name, or `Unknown RecordTag N`.
    pub name: Cow<'a, str>,
    /// Time stamp as the file has it, where the record has one.
    pub timestamp: Option<u64>,
    /// Decoded fields, in the order of the specification.
    pub fields: Vec<(&'static str, Value<'a>)>,
}
