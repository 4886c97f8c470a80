//! LEB128 numbers, eight bytes at a time.

/// The highest bit of each byte: clear in the last byte of a number.
const HIGHEST: u64 = 0x8080_8080_8080_8080;
/// One in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// A number's bytes but the last, at most.
const MOST_BEFORE_LAST: u32 = 9;

/// A number of at most eight bytes and how many they are; `None` where it is longer, or there are no eight bytes.
///
/// The bit that is clear in the last byte says how many there are, then seven bits of each are pushed together.
#[inline]
pub(super) fn short(bytes: &[u8]) -> Option<(u64, u32)> {
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

/// A number of so many bits, as a signed one.
#[inline]
pub(super) fn signed((value, bits): (u64, u32)) -> i64 {
    let unused = 64u32.saturating_sub(bits);
    (value.wrapping_shl(unused) as i64).wrapping_shr(unused)
}

/// Bytes that so many numbers take; `None` where there are no eight bytes to look at, or one of them may have no end.
#[inline]
pub(super) fn skip(bytes: &[u8], num: u64) -> Option<usize> {
    let (mut at, mut left) = (0usize, num);
    // Bytes of a number that began in the words before.
    let mut begun = 0u32;
    while left > 0 {
        let word = u64::from_le_bytes(*bytes.get(at..)?.first_chunk::<8>()?);
        let ends = !word & HIGHEST;
        // In each byte, how many numbers end up to there.
        let up_to = (ends >> 7).wrapping_mul(ONES);
        if begun.wrapping_add(ends.trailing_zeros() >> 3) > MOST_BEFORE_LAST {
            return None;
        }
        let here = up_to >> 56;
        if here >= left {
            // The first byte up to which that many end.
            let enough = (up_to | HIGHEST).wrapping_sub(left.wrapping_mul(ONES));
            let more = ((enough & HIGHEST).trailing_zeros() >> 3).wrapping_add(1);
            return Some(at.wrapping_add(more as usize));
        }
        left = left.wrapping_sub(here);
        begun = if ends == 0 { begun.wrapping_add(8) } else { ends.leading_zeros() >> 3 };
        at = at.wrapping_add(8);
    }
    Some(at)
}
