//! Where in a sorted list of addresses those of each small piece of memory are, without a search or a hash.

/// Bits of the addresses in a piece: few objects begin in it.
const PIECE_BITS: u32 = 8;

/// Pieces without an address that a region goes on over, where that takes little memory; else as many as take next to none.
const GAPS: [u64; 2] = [1 << 14, 16];

/// A stretch of memory.
#[derive(Debug)]
struct Region {
    /// Its first piece.
    first: u64,
    /// Its first place in `starts`.
    at: usize,
    /// How many pieces it has.
    len: u64,
}

/// The index of a sorted list.
#[derive(Debug, Default)]
pub struct Pages {
    regions: Vec<Region>,
    /// Of each piece of each region the number of its first address, and where those of the last end.
    starts: Vec<u32>,
}

impl Pages {
    /// Of addresses in ascending order.
    pub fn new(addresses: &[u64]) -> Self {
        let [far, near] = GAPS;
        let num = |gap| {
            let steps = addresses.windows(2).map(|pair| (pair[1] >> PIECE_BITS) - (pair[0] >> PIECE_BITS));
            steps.fold(0u64, |sum, step| sum.saturating_add(if step > gap { 1 } else { step }))
        };
        let is_dense = num(far) <= (addresses.len() as u64).saturating_mul(4);
        Self::with(addresses, if is_dense { far } else { near })
    }

    fn with(addresses: &[u64], gap: u64) -> Self {
        let mut pages = Self::default();
        let mut next = 0u32;
        for region in addresses.chunk_by(|a, b| (b >> PIECE_BITS) - (a >> PIECE_BITS) <= gap) {
            let (Some(first), Some(last)) = (region.first(), region.last()) else { continue };
            let (first, last) = (first >> PIECE_BITS, last >> PIECE_BITS);
            pages.regions.push(Region { first, at: pages.starts.len(), len: last - first + 1 });
            let mut piece = first;
            for &address in region {
                // Pieces up to its own begin with it, if nothing before did.
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

    /// Numbers of the addresses that begin in the piece of one; none where there are none.
    #[inline]
    pub fn around(&self, address: u64) -> std::ops::Range<usize> {
        let piece = address >> PIECE_BITS;
        let behind = self.regions.partition_point(|region| region.first <= piece);
        let Some(region) = behind.checked_sub(1).and_then(|at| self.regions.get(at)) else { return 0..0 };
        let within = piece - region.first;
        if within >= region.len {
            return 0..0;
        }
        let at = region.at + within as usize;
        self.starts[at] as usize..self.starts[at + 1] as usize
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
            let pages = Pages::with(&addresses, gap);
            for address in
                addresses.iter().flat_map(|it| [it.saturating_sub(300), *it, it.saturating_add(300)])
            {
                let found = &addresses[pages.around(address)];
                let piece = addresses.iter().filter(|it| *it >> PIECE_BITS == address >> PIECE_BITS);
                assert!(found.iter().eq(piece), "{address:#x}, gap {gap}");
            }
        }
        assert_eq!(Pages::new(&[]).around(5), 0..0);
    }
}
