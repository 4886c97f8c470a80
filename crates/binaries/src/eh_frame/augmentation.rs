//! The letter `B` of aarch64, which says that return addresses are signed with key B. gimli refuses entries that have it.

use std::borrow::Cow;

use gimli::Endianity;
use gimli::RunTimeEndian;
use rustc_hash::FxHashMap;

/// Common entries with that letter, by their offsets in the section: whether they say that the kernel enters for signals.
#[derive(Debug, Default)]
pub(super) struct KeyB {
    signals: FxHashMap<usize, bool>,
}

impl KeyB {
    /// Finds them, and puts another letter in that place that has no data either.
    pub(super) fn take_out(section: &[u8], endian: RunTimeEndian) -> (Cow<'_, [u8]>, Self) {
        let mut found = Self::default();
        let mut bytes = Cow::Borrowed(section);
        let mut at = 0;
        while let Some((entry, body, next)) = entry(section, at, endian) {
            at = next;
            let Some(letters) = entry.filter(|letters| letters.contains(&b'B')) else { continue };
            // Behind the identifier and the version.
            let first = body + 5;
            for (place, _) in letters.iter().enumerate().filter(|(_, letter)| **letter == b'B') {
                bytes.to_mut()[first + place] = b'S';
            }
            found.signals.insert(body - 4, letters.contains(&b'S'));
        }
        (bytes, found)
    }

    /// Whether a common entry says that, and whether it is of a signal frame.
    pub(super) fn of(&self, cie_offset: usize, is_signal: bool) -> (bool, bool) {
        match self.signals.get(&cie_offset) {
            Some(signal) => (true, *signal),
            None => (false, is_signal),
        }
    }
}

/// An entry: the letters of a common one, where its body begins, and where the next one does.
fn entry(section: &[u8], at: usize, endian: RunTimeEndian) -> Option<(Option<&[u8]>, usize, usize)> {
    let length = endian.read_u32(section.get(at..at.checked_add(4)?)?);
    // Entries of 64-bit DWARF are gimli's alone; 0 ends the section, or a part of it.
    let body = at + 4;
    let next = body.checked_add(usize::try_from(length).ok()?).filter(|next| *next <= section.len())?;
    let identifier = section.get(body..body + 4).map(|bytes| endian.read_u32(bytes));
    let letters = section.get(body + 5..next.max(body + 5)).filter(|_| length > 5 && identifier == Some(0));
    let letters = letters.map(|rest| &rest[..memchr::memchr(0, rest).unwrap_or(0)]);
    Some((letters, body, next))
}
