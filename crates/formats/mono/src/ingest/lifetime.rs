//! End times of code: no event reports them, but other code at the same addresses does.

use std::collections::BTreeMap;

/// A block of machine code with the time of its creation.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub start: u64,
    pub size: u64,
    pub time: u64,
}

/// The time at which each block was overwritten by a later one; `None` if it was not.
pub fn ends(pieces: &[Piece]) -> Vec<Option<u64>> {
    let mut ends = vec![None; pieces.len()];
    let mut order: Vec<_> = pieces.iter().enumerate().collect();
    order.sort_by_key(|(_, piece)| piece.time);
    // Live blocks by address: they do not overlap.
    let mut there: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (at, piece) in order {
        let end = piece.start.saturating_add(piece.size);
        while let Some((&start, &(until, other))) =
            there.range(..end.max(piece.start.saturating_add(1))).next_back()
        {
            if until <= piece.start && start != piece.start {
                break;
            }
            there.remove(&start);
            if let Some(ended) = ends.get_mut(other) {
                *ended = Some(piece.time);
            }
        }
        there.insert(piece.start, (end, at));
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::{Piece, ends};

    fn piece(start: u64, size: u64, time: u64) -> Piece {
        Piece { start, size, time }
    }

    #[test]
    fn code_ends_where_other_code_is_put_over_it() {
        let pieces =
            [piece(100, 50, 1), piece(150, 50, 2), piece(120, 40, 7), piece(300, 10, 3), piece(100, 10, 9)];
        assert_eq!(ends(&pieces), [Some(7), Some(7), None, None, None]);
    }

    #[test]
    fn sizes_that_lie_end_nothing_twice() {
        let pieces = [piece(8, u64::MAX, 1), piece(8, 0, 2), piece(8, 0, 3), piece(0, u64::MAX, 4)];
        assert_eq!(ends(&pieces), [Some(2), Some(3), Some(4), None]);
    }
}
