//! Words of bit fields: compilers for big-endian machines lay them from the top, others from the bottom.

/// A word with its fields laid from the bottom. `widths` are those of all fields, from the first to the last.
pub fn from_bottom(word: u64, widths: &[u32], big_endian: bool) -> u64 {
    if !big_endian {
        return word;
    }
    let (mut from_top, mut from_bottom, mut little) = (64u32, 0u32, 0u64);
    for &width in widths {
        from_top = from_top.saturating_sub(width);
        let mask = 1u64.wrapping_shl(width).wrapping_sub(1);
        little |= (word.wrapping_shr(from_top) & mask).wrapping_shl(from_bottom);
        from_bottom = from_bottom.saturating_add(width);
    }
    little
}
