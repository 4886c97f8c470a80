use std::hash::{Hash, Hasher};
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHasher};

use crate::unwind::Mark;

/// Addresses kept at the most, of all chains; then it begins anew.
const MAX_ADDRESSES: usize = 4 << 20;

/// A chain as recorded or unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chain<'a> {
    pub process_id: u32,
    pub addresses: &'a [u64],
    pub marks: &'a [Option<Mark>],
}

/// Chains that were met, whole: samples of a loop have one and the same, which is found at once and not address by address.
#[derive(Debug, Default)]
pub struct ChainCache {
    /// By hash; of two chains with one hash the later is kept.
    known: FxHashMap<u64, Known>,
    addresses: Vec<u64>,
    marks: Vec<Option<Mark>>,
}

#[derive(Clone, Debug)]
struct Known {
    process_id: u32,
    addresses: Range<usize>,
    marks: Range<usize>,
    /// While nothing it runs through is replaced.
    holds: Range<i64>,
    node: u32,
}

impl ChainCache {
    /// The node of a chain that was met, if it holds at a time.
    pub fn get(&self, chain: Chain<'_>, at_ns: i64) -> Option<u32> {
        let known = self.known.get(&hash(chain)).filter(|known| known.holds.contains(&at_ns))?;
        (self.chain(known) == chain).then_some(known.node)
    }

    /// Keeps a chain.
    pub fn insert(&mut self, chain: Chain<'_>, holds: Range<i64>, node: u32) {
        let Chain { process_id, addresses, marks } = chain;
        if self.addresses.len() + addresses.len() > MAX_ADDRESSES {
            *self = Self::default();
        }
        let (at, marks_at) = (self.addresses.len(), self.marks.len());
        self.addresses.extend_from_slice(addresses);
        self.marks.extend_from_slice(marks);
        let (addresses, marks) = (at..self.addresses.len(), marks_at..self.marks.len());
        self.known.insert(hash(chain), Known { process_id, addresses, marks, holds, node });
    }

    fn chain(&self, known: &Known) -> Chain<'_> {
        Chain {
            process_id: known.process_id,
            addresses: &self.addresses[known.addresses.clone()],
            marks: &self.marks[known.marks.clone()],
        }
    }
}

/// Marks follow from addresses nearly always.
fn hash(chain: Chain<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    (chain.process_id, chain.addresses).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unwind::Origin;

    #[test]
    fn a_chain_is_known_while_it_holds_and_by_all_that_it_is() {
        let mut cache = ChainCache::default();
        let marks = [None, Some(Mark { origin: Origin::SFrame, is_return: true })];
        let chain = Chain { process_id: 1, addresses: &[16, 32], marks: &marks };
        cache.insert(chain, 5..9, 7);
        assert_eq!([4, 5, 8, 9].map(|at_ns| cache.get(chain, at_ns)), [None, Some(7), Some(7), None]);
        assert_eq!(cache.get(Chain { process_id: 2, ..chain }, 5), None);
        assert_eq!(cache.get(Chain { marks: &[], ..chain }, 5), None);
        assert_eq!(cache.get(Chain { addresses: &[16, 33], ..chain }, 5), None);
        cache.insert(chain, 9..10, 8);
        assert_eq!(cache.get(chain, 9), Some(8));
    }

    #[test]
    fn it_is_bounded() {
        let mut cache = ChainCache::default();
        let addresses = vec![1; MAX_ADDRESSES / 2];
        for process_id in 0..5 {
            cache.insert(Chain { process_id, addresses: &addresses, marks: &[] }, 0..1, 0);
            assert!(cache.addresses.len() <= MAX_ADDRESSES);
            assert_eq!(cache.get(Chain { process_id, addresses: &addresses, marks: &[] }, 0), Some(0));
        }
    }
}
