//! SHA-1 (FIPS 180-4), the hash that linkers make build ids with. It identifies content and protects nothing.

/// A SHA-1 computation.
#[derive(Debug)]
pub(super) struct BuildIdHasher {
    state: [u32; 5],
    block: [u8; 64],
    len_block: usize,
    len: u64,
}

impl BuildIdHasher {
    pub fn new() -> Self {
        let state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
        Self { state, block: [0; 64], len_block: 0, len: 0 }
    }

    pub fn update(&mut self, mut bytes: &[u8]) {
        self.len = self.len.wrapping_add(bytes.len() as u64);
        if self.len_block > 0 {
            let (head, rest) = bytes.split_at(bytes.len().min(64_usize.saturating_sub(self.len_block)));
            self.append(head);
            bytes = rest;
            if self.len_block < 64 {
                return;
            }
            compress(&mut self.state, &self.block);
        }
        let (blocks, tail) = bytes.as_chunks::<64>();
        for block in blocks {
            compress(&mut self.state, block);
        }
        self.len_block = 0;
        self.append(tail);
    }

    /// Adds bytes to the block, which has room for them.
    fn append(&mut self, bytes: &[u8]) {
        let free = self.block.get_mut(self.len_block..).unwrap_or_default();
        free.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
        self.len_block = self.len_block.saturating_add(bytes.len());
    }

    pub fn finish(mut self) -> [u8; 20] {
        let bits = self.len.wrapping_mul(8);
        // One set bit, then zeros up to the length, which takes the last 8 bytes of a block.
        let zeros = 119_usize.saturating_sub(self.len_block) % 64;
        self.update(&[0x80]);
        self.update([0; 64].get(..zeros).unwrap_or_default());
        self.update(&bits.to_be_bytes());
        let mut id = [0; 20];
        for (bytes, word) in id.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        id
    }
}

fn compress(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut w = [0; 80];
    for (word, bytes) in w.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_be_bytes(*bytes);
    }
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`w` has 80 words, and `t` is 16 to 79"
    )]
    for t in 16..80 {
        w[t] = (w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16]).rotate_left(1);
    }
    let mut v = *state;
    rounds(&mut v, &w[..20], 0x5a82_7999, |b, c, d| d ^ (b & (c ^ d)));
    rounds(&mut v, &w[20..40], 0x6ed9_eba1, |b, c, d| b ^ c ^ d);
    rounds(&mut v, &w[40..60], 0x8f1b_bcdc, |b, c, d| (b & c) | (d & (b | c)));
    rounds(&mut v, &w[60..], 0xca62_c1d6, |b, c, d| b ^ c ^ d);
    for (sum, word) in state.iter_mut().zip(v) {
        *sum = sum.wrapping_add(word);
    }
}

#[inline(always)]
fn rounds([a, b, c, d, e]: &mut [u32; 5], words: &[u32], k: u32, f: impl Fn(u32, u32, u32) -> u32) {
    for word in words {
        let mixed = a.rotate_left(5).wrapping_add(f(*b, *c, *d)).wrapping_add(*e).wrapping_add(k);
        (*e, *d, *c, *b, *a) = (*d, *c, b.rotate_left(30), *a, mixed.wrapping_add(*word));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(id: [u8; 20]) -> String {
        id.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_standards_examples() {
        let mut hasher = BuildIdHasher::new();
        assert_eq!(hex(BuildIdHasher::new().finish()), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        hasher.update(b"abc");
        assert_eq!(hex(hasher.finish()), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let mut million = BuildIdHasher::new();
        for _ in 0..1000 {
            million.update(&[b'a'; 1000]);
        }
        assert_eq!(hex(million.finish()), "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }

    #[test]
    fn pieces_hash_like_the_whole() {
        let bytes: Vec<u8> = (0..=255).collect();
        for len in [55, 56, 63, 64, 65, 119, 120, 128] {
            let mut whole = BuildIdHasher::new();
            whole.update(&bytes[..len]);
            let mut pieces = BuildIdHasher::new();
            for piece in bytes[..len].chunks(7) {
                pieces.update(piece);
            }
            assert_eq!(whole.finish(), pieces.finish(), "{len} bytes");
        }
    }
}
