//! Lists of NUL-terminated strings.

use std::borrow::Cow;

use perfuse_wire::{Cursor, ErrorKind, ParseError, Value};

/// Consecutive NUL-terminated strings, accessed by index.
///
/// Needs four bytes for each string in addition to the file's bytes, so that a region of NULs uses little memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StringList<'a> {
    bytes: Cow<'a, [u8]>,
    ends: Vec<u32>,
}

impl<'a> StringList<'a> {
    /// Reads `count` strings.
    ///
    /// # Errors
    /// When the bytes end before the last NUL.
    pub fn read(at: &mut Cursor<'a>, count: u64, field: &'static str) -> Result<Self, ParseError> {
        let region = at.rest();
        let have = region.len() as u64;
        if count > have {
            return Err(ParseError::new(ErrorKind::Short { need: count, have }, at.offset(), field));
        }
        let mut ends = Vec::with_capacity(count as usize);
        let mut end = 0u32;
        for _ in 0..count {
            let text = at.c_string(field)?;
            end = end.saturating_add(text.len() as u32).saturating_add(1);
            ends.push(end);
        }
        Ok(Self { bytes: Cow::Borrowed(region.get(..end as usize).unwrap_or_default()), ends })
    }

    /// Appends a string and returns its index. The string ends at its first NUL.
    pub fn push(&mut self, text: &[u8]) -> u32 {
        let number = self.ends.len() as u32;
        let bytes = self.bytes.to_mut();
        bytes.extend(text.iter().take_while(|&&byte| byte != 0));
        bytes.push(0);
        self.ends.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        number
    }

    /// The string with an index, without its NUL.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<&[u8]> {
        let at = number as usize;
        let end = (*self.ends.get(at)? as usize).checked_sub(1)?;
        let start = match at.checked_sub(1) {
            Some(previous) => *self.ends.get(previous)? as usize,
            None => 0,
        };
        self.bytes.get(start..end)
    }

    /// Number of strings.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.ends.len() as u32
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All strings, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// The strings as entries of one field each.
    pub(super) fn value<'v>(&self) -> Value<'v> {
        let entry = |string: &[u8]| {
            vec![("string", Value::Text(Cow::Owned(String::from_utf8_lossy(string).into_owned())))]
        };
        Value::Entries(self.iter().map(entry).collect())
    }

    /// The bytes as in a file, NULs included.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for StringList<'_> {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        let mut table = Self::default();
        for text in texts {
            table.push(text.as_ref());
        }
        table
    }
}
