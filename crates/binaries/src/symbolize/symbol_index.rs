use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// A range of addresses under one symbol, before overlaps are settled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) start: u64,
    /// First address after it.
    pub(crate) end: u64,
    /// Where spans overlap, the one of the highest rank has the address.
    pub(crate) rank: u32,
    /// What the caller knows it by.
    pub(crate) symbol: u32,
}

/// Addresses to symbols, without overlaps: one binary search a look-up.
#[derive(Debug, Default)]
pub(crate) struct SymbolIndex {
    starts: Vec<u64>,
    /// Symbol from that start on, up to the next one.
    symbols: Vec<Option<u32>>,
}

impl SymbolIndex {
    /// Settles overlaps; `spans` are sorted by their start.
    pub(crate) fn new(spans: impl IntoIterator<Item = Span>) -> Self {
        let mut index = Self::default();
        let mut open = Open::default();
        let mut at = 0;
        for span in spans.into_iter().filter(|span| span.end > span.start) {
            open.close_until(at, span.start, &mut index);
            at = span.start;
            open.push(span);
        }
        open.close_until(at, u64::MAX, &mut index);
        index
    }

    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let after = self.starts.partition_point(|&start| start <= address);
        self.symbols[after.checked_sub(1)?]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    fn push(&mut self, start: u64, symbol: Option<u32>) {
        if self.starts.last() == Some(&start) {
            self.starts.pop();
            self.symbols.pop();
        }
        if self.symbols.last().copied().flatten() != symbol {
            self.starts.push(start);
            self.symbols.push(symbol);
        }
    }
}

/// Spans that may still hold addresses, best first; those that ended are dropped when they come to the top.
#[derive(Default)]
struct Open {
    heap: BinaryHeap<(u32, u32, u64)>,
    /// Where the last of them ends.
    end: u64,
}

impl Open {
    fn push(&mut self, span: Span) {
        // Most symbols overlap none: without this all would pile up below the one of the highest rank.
        if self.end <= span.start {
            self.heap.clear();
        }
        self.end = self.end.max(span.end);
        self.heap.push((span.rank, span.symbol, span.end));
    }

    fn close_until(&mut self, mut at: u64, limit: u64, index: &mut SymbolIndex) {
        while at < limit {
            while self.heap.peek().is_some_and(|&(_, _, end)| end <= at) {
                self.heap.pop();
            }
            let Some(&(_, symbol, end)) = self.heap.peek() else {
                index.push(at, None);
                return;
            };
            index.push(at, Some(symbol));
            at = end;
        }
    }
}

/// Orders names of one address so that the one people call it by comes last: fewer leading underscores, then the longer
/// one, as perf chooses.
pub(crate) fn by_familiarity(left: &[u8], right: &[u8]) -> Ordering {
    let underscores = |name: &[u8]| name.iter().take_while(|&&byte| byte == b'_').count();
    let fewer_underscores = underscores(right).cmp(&underscores(left));
    fewer_underscores.then_with(|| left.len().cmp(&right.len())).then_with(|| right.cmp(left))
}

#[cfg(test)]
mod tests {
    use super::{Span, SymbolIndex};

    fn index(spans: &[(u64, u64, u32)]) -> SymbolIndex {
        let spans = spans.iter().enumerate();
        SymbolIndex::new(spans.map(|(symbol, &(start, end, rank))| Span {
            start,
            end,
            rank,
            symbol: symbol as u32,
        }))
    }

    #[test]
    fn the_highest_rank_has_an_address() {
        let spans = [(10, 50, 1), (10, 20, 3), (15, 30, 2), (40, 60, 0), (60, 60, 9), (70, 80, 0)];
        let index = index(&spans);
        for address in 0..100 {
            let covering = spans.iter().enumerate().filter(|(_, span)| (span.0..span.1).contains(&address));
            let best = covering.max_by_key(|(_, span)| span.2).map(|(symbol, _)| symbol as u32);
            assert_eq!(index.find(address), best, "{address}");
        }
    }

    #[test]
    fn the_ends_of_the_address_space() {
        assert_eq!(index(&[]).find(0), None);
        let whole = index(&[(0, u64::MAX, 0)]);
        assert_eq!((whole.find(0), whole.find(u64::MAX - 1)), (Some(0), Some(0)));
    }
}
