//! End times of code: no event reports them, but other code at the same addresses does.

use std::collections::BTreeMap;

/// A block of machine code with the time of its creation.
#[derive(Clone, Copy, Debug)]
pub struct CodeBlock {
    pub start: u64,
    pub size: u64,
    pub time: u64,
}

/// The time at which each block was overwritten by a later one; `None` if it was not.
pub fn overwrite_times(blocks: &[CodeBlock]) -> Vec<Option<u64>> {
    let mut times = vec![None; blocks.len()];
    let mut order: Vec<_> = blocks.iter().enumerate().collect();
    order.sort_by_key(|(_, block)| block.time);
    // Live blocks by address: they do not overlap.
    let mut live: BTreeMap<u64, (u64, usize)> = BTreeMap::new();
    for (at, block) in order {
        let end = block.start.saturating_add(block.size);
        while let Some((&start, &(until, other))) =
            live.range(..end.max(block.start.saturating_add(1))).next_back()
        {
            if until <= block.start && start != block.start {
                break;
            }
            live.remove(&start);
            if let Some(ended) = times.get_mut(other) {
                *ended = Some(block.time);
            }
        }
        live.insert(block.start, (end, at));
    }
    times
}

#[cfg(test)]
mod tests {
    use super::{CodeBlock, overwrite_times};

    fn block(start: u64, size: u64, time: u64) -> CodeBlock {
        CodeBlock { start, size, time }
    }

    #[test]
    fn code_ends_where_other_code_is_put_over_it() {
        let blocks =
            [block(100, 50, 1), block(150, 50, 2), block(120, 40, 7), block(300, 10, 3), block(100, 10, 9)];
        assert_eq!(overwrite_times(&blocks), [Some(7), Some(7), None, None, None]);
    }

    #[test]
    fn sizes_that_lie_end_nothing_twice() {
        let blocks = [block(8, u64::MAX, 1), block(8, 0, 2), block(8, 0, 3), block(0, u64::MAX, 4)];
        assert_eq!(overwrite_times(&blocks), [Some(2), Some(3), Some(4), None]);
    }
}
