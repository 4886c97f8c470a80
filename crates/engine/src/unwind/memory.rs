//! Recorded memory of a thread.

/// Copy of a thread's stack, from the stack pointer up.
#[derive(Clone, Copy, Debug)]
pub struct StackCopy<'a> {
    /// Address of the first byte.
    pub start: u64,
    /// Its content, the innermost frame first.
    pub bytes: &'a [u8],
    /// Whether numbers are big-endian.
    pub big_endian: bool,
}

/// Usual limit of a stack's size; addresses farther away are not on the stack.
const USUAL_STACK_BYTES: u64 = 8 << 20;

impl StackCopy<'_> {
    /// The word at an address.
    #[must_use]
    #[inline]
    pub fn word(&self, address: u64) -> Option<u64> {
        Some(self.number_of(self.range(address, 8)?.first_chunk()?))
    }

    /// The bytes from an address on; `None` where the copy lacks some of them.
    #[inline]
    pub(super) fn range(&self, address: u64, size: usize) -> Option<&[u8]> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        self.bytes.get(at..)?.get(..size)
    }

    /// The number that a word of the stack holds.
    #[inline]
    pub(super) fn number_of(&self, word: &[u8; 8]) -> u64 {
        if self.big_endian { u64::from_be_bytes(*word) } else { u64::from_le_bytes(*word) }
    }

    /// The number of up to eight bytes at an address.
    #[must_use]
    pub fn number(&self, address: u64, size: u8) -> Option<u64> {
        number(self.range(address, size.into())?, self.big_endian)
    }

    /// Whether an address is beyond the copied part but near enough to be on the same stack.
    #[must_use]
    pub fn is_cut_before(&self, address: u64) -> bool {
        if self.bytes.is_empty() {
            return false;
        }
        let end = self.start.saturating_add(self.bytes.len() as u64);
        // A word may begin before the end and reach over it.
        (end.saturating_sub(7)..end.saturating_add(USUAL_STACK_BYTES)).contains(&address)
    }
}

/// Up to eight bytes as a number.
pub(super) fn number(bytes: &[u8], big_endian: bool) -> Option<u64> {
    if bytes.len() > 8 {
        return None;
    }
    let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    Some(if big_endian { bytes.iter().fold(0, add) } else { bytes.iter().rev().fold(0, add) })
}
