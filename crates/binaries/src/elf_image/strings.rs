//! Sections of strings.

use std::borrow::Cow;
use std::hash::BuildHasher;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::image::Error;

/// A section of NUL-terminated strings, each written once.
///
/// Strings are found again by their 64-bit hash and compared with the bytes of the section, so that none is stored twice in
/// memory. Two that share a hash are both written: the section is larger, and never wrong.
#[derive(Debug)]
pub(super) struct StringSection {
    name: &'static str,
    pub bytes: Vec<u8>,
    by_hash: FxHashMap<u64, u32>,
}

impl StringSection {
    /// An empty table, whose offset 0 is the empty string, as ELF requires.
    pub fn new(name: &'static str) -> Self {
        Self { name, bytes: vec![0], by_hash: FxHashMap::default() }
    }

    /// Offset of the string in the section.
    ///
    /// # Errors
    /// [`Error::TooLarge`] past 4 GiB.
    pub fn intern(&mut self, text: &str) -> Result<u32, Error> {
        if text.is_empty() {
            return Ok(0);
        }
        let text = without_nul(text);
        let hash = FxBuildHasher.hash_one(&*text);
        if let Some(&offset) = self.by_hash.get(&hash)
            && self.contains_at(offset, text.as_bytes())
        {
            return Ok(offset);
        }
        let offset = u32::try_from(self.bytes.len()).map_err(|_| Error::TooLarge(self.name))?;
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
        self.by_hash.insert(hash, offset);
        Ok(offset)
    }

    fn contains_at(&self, offset: u32, text: &[u8]) -> bool {
        self.bytes
            .get(offset as usize..)
            .and_then(|tail| tail.strip_prefix(text))
            .is_some_and(|rest| rest.first() == Some(&0))
    }
}

/// A NUL would end the string for every reader and hide what follows it.
fn without_nul(text: &str) -> Cow<'_, str> {
    if text.as_bytes().contains(&0) {
        Cow::Owned(text.replace('\0', "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_written_once_and_a_prefix_is_another_string() {
        let mut table = StringSection::new(".debug_str");
        let long = table.intern("render frame").unwrap();
        let short = table.intern("render").unwrap();
        assert_ne!(long, short);
        assert_eq!(table.intern("render frame").unwrap(), long);
        assert_eq!(table.intern("").unwrap(), 0);
        assert_eq!(table.bytes, b"\0render frame\0render\0");
    }

    #[test]
    fn a_nul_inside_a_name_does_not_end_it() {
        let mut table = StringSection::new(".strtab");
        table.intern("a\0b").unwrap();
        assert_eq!(table.bytes, "\0a\u{fffd}b\0".as_bytes());
    }
}
