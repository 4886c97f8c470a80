//! Finds addresses in a sorted list by small pieces of memory, without a search or a hash.

/// Number of address bits within a piece: few objects begin in one.
const PIECE_BITS: u32 = 8;

/// Number of empty pieces that a region may span, where that takes little memory, and otherwise.
const GAPS: [u64; 2] = [1 << 14, 16];

/// A range of memory.
#[derive(Debug)]
struct MemoryRegion {
    /// Its first piece.
    first: u64,
    /// Index of its first piece in `starts`.
    at: usize,
    /// Number of its pieces.
    len: u64,
}

/// The index of a sorted list.
#[derive(Debug, Default)]
pub struct AddressIndex {
    regions: Vec<MemoryRegion>,
    /// The index of the first address of each piece of each region, and for each region the end of its last piece.
    starts: Vec<u32>,
}

impl AddressIndex {
    /// The index of addresses in ascending order.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "the addresses are sorted, and `windows(2)` yields pairs"
    )]
    pub fn new(addresses: &[u64]) -> Self {
        let [far, near] = GAPS;
        let num = |gap| {
            let steps = addresses.windows(2).map(|pair| (pair[1] >> PIECE_BITS) - (pair[0] >> PIECE_BITS));
            steps.fold(0u64, |sum, step| sum.saturating_add(if step > gap { 1 } else { step }))
        };
        let is_dense = num(far) <= (addresses.len() as u64).saturating_mul(4);
        Self::with(addresses, if is_dense { far } else { near })
    }

    /// The index with regions that end at gaps of more than `gap` pieces.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "the addresses are sorted, pieces are shorter than addresses, and there are less than 2^32 addresses"
    )]
    fn with(addresses: &[u64], gap: u64) -> Self {
        let mut pages = Self::default();
        let mut next = 0u32;
        for region in addresses.chunk_by(|a, b| (b >> PIECE_BITS) - (a >> PIECE_BITS) <= gap) {
            let (Some(first), Some(last)) = (region.first(), region.last()) else { continue };
            let (first, last) = (first >> PIECE_BITS, last >> PIECE_BITS);
            pages.regions.push(MemoryRegion { first, at: pages.starts.len(), len: last - first + 1 });
            let mut piece = first;
            for &address in region {
                // Pieces up to that of the address begin with it, unless an earlier address is in them.
                while piece <= address >> PIECE_BITS {
                    pages.starts.push(next);
                    piece += 1;
                }
                next += 1;
            }
            pages.starts.push(next);
        }
        pages
    }

    /// Indices of the addresses in the piece of an address; empty where there are none.
    #[inline]
    pub fn around(&self, address: u64) -> std::ops::Range<usize> {
        let piece = address >> PIECE_BITS;
        let num_before = self.regions.partition_point(|region| region.first <= piece);
        let Some(region) = num_before.checked_sub(1).and_then(|at| self.regions.get(at)) else { return 0..0 };
        let within = piece.saturating_sub(region.first);
        if within >= region.len {
            return 0..0;
        }
        let at = region.at.saturating_add(within as usize);
        match self.starts.get(at..).and_then(<[u32]>::first_chunk) {
            Some(&[start, end]) => start as usize..end as usize,
            None => 0..0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_in_its_piece_and_no_other() {
        let mut addresses: Vec<u64> = (0..200u64).map(|n| 0x7f00_0000_0000 + n * n * 24).collect();
        addresses.extend([0, 8, 0x400, u64::MAX - 7, u64::MAX]);
        addresses.sort_unstable();
        for gap in [0, 1, 16, 1 << 14] {
            let pages = AddressIndex::with(&addresses, gap);
            for address in
                addresses.iter().flat_map(|it| [it.saturating_sub(300), *it, it.saturating_add(300)])
            {
                let found = &addresses[pages.around(address)];
                let piece = addresses.iter().filter(|it| *it >> PIECE_BITS == address >> PIECE_BITS);
                assert!(found.iter().eq(piece), "{address:#x}, gap {gap}");
            }
        }
        assert_eq!(AddressIndex::new(&[]).around(5), 0..0);
    }
}
