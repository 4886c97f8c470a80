//! Sets of function ids, and the table keys of functions.

use rustc_hash::{FxHashMap, FxHashSet};

/// Ids below this are stored in a bitmap; ids written by a runtime are.
const LOW_IDS: usize = 1 << 20;

/// A set of function ids.
#[derive(Clone, Debug, Default)]
pub struct FunctionIds {
    low: Vec<u64>,
    high: FxHashSet<u32>,
}

impl FunctionIds {
    /// Adds an id.
    #[inline]
    pub fn insert(&mut self, id: u32) {
        let word = (id >> 6) as usize;
        if let Some(bits) = self.low.get_mut(word) {
            *bits |= 1 << (id & 63);
        } else {
            self.grow_and_insert(id, word);
        }
    }

    #[cold]
    fn grow_and_insert(&mut self, id: u32, word: usize) {
        if (id as usize) < LOW_IDS {
            let words = word.saturating_add(1).next_power_of_two();
            self.low.resize(words, 0);
            self.insert(id);
        } else {
            self.high.insert(id);
        }
    }

    /// Adds the ids of another set.
    #[must_use]
    pub fn union(mut self, other: Self) -> Self {
        if self.low.len() < other.low.len() {
            self.low.resize(other.low.len(), 0);
        }
        self.low.iter_mut().zip(&other.low).for_each(|(own_bits, other_bits)| *own_bits |= other_bits);
        self.high.extend(other.high);
        self
    }

    /// All ids, ascending.
    #[must_use]
    pub fn sorted(&self) -> Vec<u32> {
        let of_word = |(word, &bits): (u32, &u64)| {
            // Without its lowest bit, again and again: an id that is high leaves most words empty.
            let rest = |bits: &u64| Some(bits & bits.wrapping_sub(1)).filter(|&rest| rest != 0);
            let bits = std::iter::successors(Some(bits).filter(|&bits| bits != 0), rest);
            bits.map(move |bits| (word << 6) | bits.trailing_zeros())
        };
        let mut all: Vec<u32> = (0u32..).zip(&self.low).flat_map(of_word).collect();
        let mut high: Vec<u32> = self.high.iter().copied().collect();
        high.sort_unstable();
        all.extend(high);
        all
    }
}

/// The key of each function id.
#[derive(Clone, Debug, Default)]
pub struct FunctionKeys {
    low: Vec<u32>,
    high: FxHashMap<u32, u32>,
}

impl FunctionKeys {
    /// Consecutive keys from `first` on, for ids in ascending order.
    #[must_use]
    pub fn new(ids: &[u32], first: u32) -> Self {
        let lows = ids.iter().copied().filter(|&id| (id as usize) < LOW_IDS);
        let len = lows.max().map_or(0, |id| (id as usize).saturating_add(1));
        let mut keys = Self { low: vec![0; len], high: FxHashMap::default() };
        for (index, &id) in (0u32..).zip(ids) {
            let key = first.saturating_add(index);
            match keys.low.get_mut(id as usize) {
                Some(slot) => *slot = key,
                None => {
                    keys.high.insert(id, key);
                }
            }
        }
        keys
    }

    /// The key of an id, which must occur in the log.
    #[must_use]
    #[inline]
    pub fn get(&self, id: u32) -> u32 {
        match self.low.get(id as usize) {
            Some(&key) => key,
            None => self.high.get(&id).copied().unwrap_or(0),
        }
    }
}
