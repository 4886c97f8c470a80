//! Cache of the text after the address of a row's line. The text is determined by info byte, FDE type and words, and
//! there are few distinct ones.

use crate::row::FreInfo;

/// Size of the longest text that is cached, in bytes.
const MAX_TEXT_BYTES: usize = 48;
/// Size of what precedes the text: the address and blanks around it.
pub(super) const ADDRESS_BYTES: usize = 22;
/// Number of cached texts.
const SLOTS: usize = 256;

/// Info byte, FDE type and words of a row: rows with equal keys have equal text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowKey {
    kind: u32,
    words: u64,
}

/// A key that no row has.
const NO_KEY: RowKey = RowKey { kind: u32::MAX, words: 0 };

impl RowKey {
    /// The key and the size in bytes of the words of a row; `row_bytes` are the eight bytes after its info byte.
    /// `None` where the words take more than eight bytes, or their size is undefined.
    #[inline]
    pub(super) fn of(info: FreInfo, fde_type: u8, row_bytes: u64) -> Option<(Self, usize)> {
        let num_words = usize::from(info.num_words());
        let bytes = info.word_bytes()?.wrapping_mul(num_words);
        let bits = (bytes as u32).wrapping_mul(8);
        let words = match bytes {
            0 => 0,
            1..=8 => row_bytes & u64::MAX.wrapping_shr(64u32.wrapping_sub(bits)),
            _ => return None,
        };
        let kind = u32::from(fde_type) << 8 | u32::from(info.0);
        Some((Self { kind, words }, bytes))
    }

    /// The slot of the cache for this key.
    fn slot(self) -> usize {
        let mixed = (self.words ^ u64::from(self.kind).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed.wrapping_shr(32) as usize % SLOTS
    }
}

/// A cached text, padded to a fixed size.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedCells {
    key: RowKey,
    len: usize,
    text: [u8; MAX_TEXT_BYTES],
}

/// Direct-mapped cache of texts: a text replaces the one that has the same slot.
pub(super) struct CellCache {
    slots: Box<[CachedCells; SLOTS]>,
}

impl CellCache {
    pub(super) fn new() -> Self {
        Self { slots: Box::new([CachedCells { key: NO_KEY, len: 0, text: [0; MAX_TEXT_BYTES] }; SLOTS]) }
    }

    #[inline]
    pub(super) fn get(&self, key: RowKey) -> Option<&CachedCells> {
        self.slots.get(key.slot()).filter(|cells| cells.key == key)
    }

    /// Caches a text, unless it is too long.
    #[cold]
    pub(super) fn insert(&mut self, key: RowKey, text: &[u8]) {
        let mut cells = CachedCells { key, len: text.len(), text: [0; MAX_TEXT_BYTES] };
        if let (Some(buffer), Some(slot)) = (cells.text.get_mut(..text.len()), self.slots.get_mut(key.slot()))
        {
            buffer.copy_from_slice(text);
            *slot = cells;
        }
    }
}

impl CachedCells {
    /// Appends a line of an address and this text.
    #[inline]
    pub(super) fn write_line(&self, address: u64, text: &mut Vec<u8>) {
        // Copies of fixed size are a few instructions; the padding is cut off afterwards.
        let mut line = [b' '; ADDRESS_BYTES];
        if let Some(digits) = line.get_mut(4..20) {
            digits.copy_from_slice(&hexadecimal(address));
        }
        text.extend_from_slice(&line);
        text.extend_from_slice(&self.text);
        text.truncate(text.len().saturating_sub(MAX_TEXT_BYTES.saturating_sub(self.len)));
    }
}

/// The sixteen hexadecimal digits of a number.
#[inline]
pub(super) fn hexadecimal(number: u64) -> [u8; 16] {
    // The values of the digits, one per byte: halves of a word are moved apart until each byte contains four bits.
    let mut digits = u128::from(number);
    digits = (digits | digits << 32) & 0x0000_0000_ffff_ffff_0000_0000_ffff_ffff;
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff_0000_ffff_0000_ffff;
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff;
    digits = (digits | digits << 4) & ONE_IN_EACH_BYTE.wrapping_mul(0xf);
    // Adding 6 to a digit of 10 or more carries into its upper four bits.
    let letters = digits.wrapping_add(ONE_IN_EACH_BYTE.wrapping_mul(6)) >> 4 & ONE_IN_EACH_BYTE;
    let to_letter = u128::from(b'a'.wrapping_sub(b'0').wrapping_sub(10));
    digits
        .wrapping_add(ONE_IN_EACH_BYTE.wrapping_mul(b'0'.into()))
        .wrapping_add(letters.wrapping_mul(to_letter))
        .to_be_bytes()
}

/// The value 1 in each byte.
const ONE_IN_EACH_BYTE: u128 = u128::MAX / 0xff;

/// Appends a number in decimal.
pub(super) fn decimal(text: &mut Vec<u8>, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut len = 0usize;
    for digit in digits.iter_mut().rev() {
        *digit = b'0'.saturating_add((number % 10) as u8);
        number /= 10;
        len = len.saturating_add(1);
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(digits.get(20usize.saturating_sub(len)..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_formatter() {
        for number in [0, 1, 9, 10, 0xabc, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210, u64::MAX] {
            assert_eq!(hexadecimal(number).as_slice(), format!("{number:016x}").as_bytes());
            let mut text = Vec::new();
            decimal(&mut text, number);
            assert_eq!(text, number.to_string().as_bytes());
        }
    }

    #[test]
    fn only_words_of_a_row_are_its_key() {
        let two_bytes = FreInfo::new(true, 2, 0, false);
        let (key, bytes) = RowKey::of(two_bytes, 0, 0x1234_5678_9abc_def0).unwrap();
        assert_eq!((key, bytes), (RowKey { kind: two_bytes.0.into(), words: 0xdef0 }, 2));
        assert_eq!(RowKey::of(FreInfo::new(true, 15, 2, false), 0, 0), None);
        assert_eq!(RowKey::of(FreInfo::new(true, 2, 3, false), 0, 0), None);
        let mut cache = CellCache::new();
        cache.insert(key, b"sp+8\n");
        let mut line = Vec::new();
        cache.get(key).unwrap().write_line(0x10, &mut line);
        assert_eq!(line, b"    0000000000000010  sp+8\n");
    }
}
