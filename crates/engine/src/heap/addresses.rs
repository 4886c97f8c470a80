//! Hash maps by address, for millions of addresses.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// A hash map by address.
pub type AddressMap<V> = HashMap<u64, V, AddressHash>;

/// Hashes numbers by a multiplication with random keys, so that a file cannot be made with addresses that collide.
#[derive(Clone, Debug)]
pub struct AddressHash([u64; 2]);

impl Default for AddressHash {
    fn default() -> Self {
        let random = RandomState::new();
        // A multiplier is odd.
        Self([random.hash_one(0u8), random.hash_one(1u8) | 1])
    }
}

impl BuildHasher for AddressHash {
    type Hasher = AddressHasher;

    #[inline]
    fn build_hasher(&self) -> AddressHasher {
        AddressHasher { keys: self.0, hash: 0 }
    }
}

/// A hash during its computation.
#[derive(Debug)]
pub struct AddressHasher {
    keys: [u64; 2],
    hash: u64,
}

impl Hasher for AddressHasher {
    #[inline]
    fn write_u64(&mut self, number: u64) {
        let [key, multiplier] = self.keys;
        let product = u128::from(number ^ key ^ self.hash).wrapping_mul(multiplier.into());
        self.hash = (product as u64) ^ (product >> 64) as u64;
    }

    fn write(&mut self, bytes: &[u8]) {
        for eight in bytes.chunks(8) {
            let mut number = [0; 8];
            number.iter_mut().zip(eight).for_each(|(to, from)| *to = *from);
            self.write_u64(u64::from_le_bytes(number));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}
