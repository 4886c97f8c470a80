//! The augmentation letter `B` of aarch64, which states that return addresses are signed with key B. gimli rejects entries
//! that have it.

use std::borrow::Cow;

use gimli::Endianity;
use gimli::RunTimeEndian;
use rustc_hash::FxHashMap;

/// Common entries with the letter `B`, by their offsets in the section, and whether they are of signal frames.
#[derive(Debug, Default)]
pub(super) struct KeyBEntries {
    signals: FxHashMap<usize, bool>,
}

impl KeyBEntries {
    /// Finds the entries and replaces their letter `B` by `S`, which has no data either and which gimli accepts.
    pub(super) fn take_out(section: &[u8], endian: RunTimeEndian) -> (Cow<'_, [u8]>, Self) {
        let mut found = Self::default();
        let mut bytes = Cow::Borrowed(section);
        let mut at = 0;
        while let Some(entry) = read_entry(section, at, endian) {
            at = entry.next;
            let Some(letters) = entry.letters.filter(|letters| letters.contains(&b'B')) else { continue };
            let end = entry.letters_at.saturating_add(letters.len());
            let replaced = bytes.to_mut().get_mut(entry.letters_at..end).unwrap_or_default();
            replaced.iter_mut().filter(|letter| **letter == b'B').for_each(|letter| *letter = b'S');
            found.signals.insert(entry.offset, letters.contains(&b'S'));
        }
        (bytes, found)
    }

    /// Whether a common entry had the letter, and whether it is of a signal frame; `is_signal` is what gimli reports for it.
    pub(super) fn flags(&self, cie_offset: usize, is_signal: bool) -> (bool, bool) {
        match self.signals.get(&cie_offset) {
            Some(signal) => (true, *signal),
            None => (false, is_signal),
        }
    }
}

/// An entry of the section.
struct FrameEntry<'a> {
    /// Offset of its length field.
    offset: usize,
    /// Augmentation letters of a common entry; `None` for entries of functions.
    letters: Option<&'a [u8]>,
    /// Offset of the letters.
    letters_at: usize,
    /// Offset of the next entry.
    next: usize,
}

fn read_entry(section: &[u8], offset: usize, endian: RunTimeEndian) -> Option<FrameEntry<'_>> {
    let body = offset.checked_add(4)?;
    let length = endian.read_u32(section.get(offset..body)?);
    // Entries of 64-bit DWARF are read by gimli alone; a length of 0 ends the section, or a part of it.
    let next = body.checked_add(usize::try_from(length).ok()?).filter(|next| *next <= section.len())?;
    let identifier_end = body.checked_add(4)?;
    let is_common = section.get(body..identifier_end).is_some_and(|bytes| endian.read_u32(bytes) == 0);
    // The letters follow the identifier and the version, and end with NUL.
    let letters_at = identifier_end.checked_add(1)?;
    let rest = section.get(letters_at..next).filter(|_| length > 5 && is_common);
    let letters = rest.map(|rest| rest.get(..memchr::memchr(0, rest).unwrap_or(0)).unwrap_or_default());
    Some(FrameEntry { offset, letters, letters_at, next })
}
