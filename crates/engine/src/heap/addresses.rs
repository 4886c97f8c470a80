//! Maps by address, for millions of them.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// What is known by address.
pub type AddressMap<V> = HashMap<u64, V, Keyed>;

/// Hashes numbers by a multiplication with keys that nobody knows: nobody can choose addresses that it mistakes.
#[derive(Clone, Debug)]
pub struct Keyed([u64; 2]);

impl Default for Keyed {
    fn default() -> Self {
        let random = RandomState::new();
        // A multiplier is odd.
        Self([random.hash_one(0u8), random.hash_one(1u8) | 1])
    }
}

impl BuildHasher for Keyed {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded { keys: self.0, hash: 0 }
    }
}

/// A hash at work.
#[derive(Debug)]
pub struct Folded {
    keys: [u64; 2],
    hash: u64,
}

impl Hasher for Folded {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let [key, multiplier] = self.keys;
        let product = u128::from(number ^ key ^ self.hash) * u128::from(multiplier);
        self.hash = (product as u64) ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for eight in bytes.chunks(8) {
            let mut number = [0; 8];
            number[..eight.len()].copy_from_slice(eight);
            self.write_u64(u64::from_le_bytes(number));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}
