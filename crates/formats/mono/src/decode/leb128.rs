//! LEB128 numbers, eight bytes at a time.

/// The highest bit of each byte: clear in the last byte of a number.
const HIGHEST: u64 = 0x8080_8080_8080_8080;
/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// The five lowest bytes of a word, and the five highest.
const FIRST_FIVE: u64 = 0x0000_00ff_ffff_ffff;
const LAST_FIVE: u64 = !0x00ff_ffff;
/// Maximum number of bytes of a number before its last.
const MAX_BEFORE_LAST: u32 = 9;

/// Reads a number of at most eight bytes; returns it and its length in bytes. `None` if it is longer or fewer than
/// eight bytes are left. The length is found from the clear highest bit of the last byte, then the seven low bits of
/// each byte are joined.
#[inline]
pub(super) fn read_short(bytes: &[u8]) -> Option<(u64, u32)> {
    let word = u64::from_le_bytes(*bytes.first_chunk::<8>()?);
    let ends = !word & HIGHEST;
    if ends == 0 {
        return None;
    }
    let last_bit = ends.trailing_zeros();
    let word = word & (u64::MAX >> 63u32.wrapping_sub(last_bit));
    let word = word & !HIGHEST;
    let word = (word & 0x007f_007f_007f_007f) | ((word & 0x7f00_7f00_7f00_7f00) >> 1);
    let word = (word & 0x0000_3fff_0000_3fff) | ((word & 0x3fff_0000_3fff_0000) >> 2);
    let word = (word & 0x0000_0000_0fff_ffff) | ((word & 0x0fff_ffff_0000_0000) >> 4);
    Some((word, last_bit.wrapping_add(1) >> 3))
}

/// Sign-extends a number of the given count of bits.
#[inline]
pub(super) fn sign_extend((value, bits): (u64, u32)) -> i64 {
    let unused = 64u32.saturating_sub(bits);
    (value.wrapping_shl(unused) as i64).wrapping_shr(unused)
}

/// Splits a signed number off; `None` if it is longer than eight bytes or does not end.
#[inline]
pub(super) fn split(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let mut padded = [0; 8];
    let (value, num_bytes) = match bytes.first_chunk::<8>() {
        Some(word) => read_short(word)?,
        None => {
            // Zeros are appended. A number that ends in them is incomplete.
            padded.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            read_short(&padded).filter(|(_, num_bytes)| *num_bytes as usize <= bytes.len())?
        }
    };
    let (_, rest) = bytes.split_at_checked(num_bytes as usize)?;
    Some((sign_extend((value, num_bytes.wrapping_mul(7))), rest))
}

/// Length in bytes of `num` numbers; `None` near the end of the data, or if a number may not end.
#[inline]
pub(super) fn skip(bytes: &[u8], num: u64) -> Option<usize> {
    let (mut at, mut left) = (0usize, num);
    while let Some(block) = bytes.get(at..).and_then(|rest| rest.first_chunk::<32>()) {
        let mut ends = 0u64;
        let mut is_plain = true;
        for eight in block.as_chunks::<8>().0 {
            let here = !u64::from_le_bytes(*eight) & HIGHEST;
            // A number that does not end has five bytes or more in one word.
            is_plain &= here & FIRST_FIVE != 0 && here & LAST_FIVE != 0;
            ends = ends.wrapping_add(here >> 7);
        }
        let here = ends.wrapping_mul(ONES) >> 56;
        if here >= left || !is_plain {
            break;
        }
        left = left.wrapping_sub(here);
        at = at.wrapping_add(32);
    }
    let num_begun = bytes.get(..at)?.iter().rev().take_while(|byte| **byte >= 0x80).count();
    skip_by_words(bytes, at, left, num_begun as u32)
}

/// Continues at a position where a number has already had `num_begun` bytes.
#[inline]
fn skip_by_words(bytes: &[u8], mut at: usize, mut left: u64, mut num_begun: u32) -> Option<usize> {
    while left > 0 {
        let word = u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?);
        let ends = !word & HIGHEST;
        // In each byte, the number of numbers that end up to there.
        let up_to = (ends >> 7).wrapping_mul(ONES);
        if num_begun.wrapping_add(ends.trailing_zeros() >> 3) > MAX_BEFORE_LAST {
            return None;
        }
        let here = up_to >> 56;
        if here >= left {
            // The first byte up to which `left` numbers end.
            let enough = (up_to | HIGHEST).wrapping_sub(left.wrapping_mul(ONES));
            let more = ((enough & HIGHEST).trailing_zeros() >> 3).wrapping_add(1);
            return Some(at.wrapping_add(more as usize));
        }
        left = left.wrapping_sub(here);
        num_begun = if ends == 0 { num_begun.wrapping_add(8) } else { ends.leading_zeros() >> 3 };
        at = at.wrapping_add(8);
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Length in bytes of `num` numbers, read one by one.
    fn skip_one_by_one(bytes: &[u8], num: u64) -> Option<usize> {
        let (mut at, mut num_begun) = (0, 0);
        let mut left = num;
        while left > 0 {
            let byte = *bytes.get(at)?;
            at += 1;
            num_begun = if byte < 0x80 { 0 } else { num_begun + 1 };
            left -= u64::from(byte < 0x80);
            if num_begun > MAX_BEFORE_LAST {
                return None;
            }
        }
        Some(at)
    }

    #[test]
    fn numbers_are_skipped_as_they_are_read() {
        let mut state = 7u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..20_000u64 {
            let longest = [1, 2, 4, 6, 9, 10, 11, 13][(round % 8) as usize];
            let mut bytes = Vec::new();
            for _ in 0..random(60) {
                bytes.extend((0..random(longest)).map(|_| 0x80 + random(0x80) as u8));
                bytes.push(random(0x80) as u8);
            }
            let num = random(64);
            let (skipped, plain) = (skip(&bytes, num), skip_one_by_one(&bytes, num));
            // Near the end of the data `skip` may return `None`.
            if skipped.is_some() || plain.is_some_and(|end| end + 40 < bytes.len()) {
                assert_eq!(skipped, plain, "{num} of {bytes:02x?}");
            }
        }
    }
}
