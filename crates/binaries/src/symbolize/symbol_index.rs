//! Maps addresses to symbols whose ranges may overlap.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The range of addresses of one symbol; ranges may overlap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SymbolSpan {
    pub(crate) start: u64,
    /// First address after it.
    pub(crate) end: u64,
    /// Where spans overlap, an address belongs to the one with the highest rank.
    pub(crate) rank: u32,
    /// The caller's index of the symbol.
    pub(crate) symbol: u32,
}

/// Symbols by address, without overlaps: one binary search per look-up.
#[derive(Debug, Default)]
pub(crate) struct SymbolIndex {
    starts: Vec<u64>,
    /// Symbol from that start on, up to the next one.
    symbols: Vec<Option<u32>>,
}

impl SymbolIndex {
    /// Resolves overlaps; `spans` are sorted by their start.
    pub(crate) fn new(spans: impl IntoIterator<Item = SymbolSpan>) -> Self {
        let spans = spans.into_iter();
        let num_spans = spans.size_hint().1.unwrap_or(0);
        let mut index =
            Self { starts: Vec::with_capacity(num_spans), symbols: Vec::with_capacity(num_spans) };
        let mut open = OpenSpans::default();
        let mut at = 0;
        for span in spans.filter(|span| span.end > span.start) {
            open.close_until(at, span.start, &mut index);
            at = span.start;
            open.push(span);
        }
        open.close_until(at, u64::MAX, &mut index);
        index
    }

    pub(crate) fn find(&self, address: u64) -> Option<u32> {
        let after = self.starts.partition_point(|&start| start <= address);
        *self.symbols.get(after.checked_sub(1)?)?
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

/// Spans that may cover further addresses, the highest rank first; those that ended are dropped when they are on top.
#[derive(Default)]
struct OpenSpans {
    heap: BinaryHeap<(u32, u32, u64)>,
    /// The latest end of them.
    end: u64,
}

impl OpenSpans {
    fn push(&mut self, span: SymbolSpan) {
        // Most symbols overlap no other: without this the heap would fill up below the one with the highest rank.
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

/// Orders names of one address so that the preferred one is last: fewer leading underscores, then the longer one, as perf
/// does.
pub(crate) fn by_familiarity(left: &[u8], right: &[u8]) -> Ordering {
    let underscores = |name: &[u8]| name.iter().take_while(|&&byte| byte == b'_').count();
    let fewer_underscores = underscores(right).cmp(&underscores(left));
    fewer_underscores.then_with(|| left.len().cmp(&right.len())).then_with(|| right.cmp(left))
}

#[cfg(test)]
mod tests {
    use super::{SymbolIndex, SymbolSpan};

    fn index(spans: &[(u64, u64, u32)]) -> SymbolIndex {
        let spans = spans.iter().enumerate();
        SymbolIndex::new(spans.map(|(symbol, &(start, end, rank))| SymbolSpan {
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
