//! The calls that are inlined at an offset of a piece of code, and the frames that they make.

use std::ops::Range;

/// A range of code that belongs to an inlined call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallExtent {
    /// Offset from the start of the code, in bytes.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// 0 for a call from the outer function.
    pub depth: u32,
}

/// The rows of `rows` whose range contains an offset, outermost call first. Of several calls with one depth the first counts.
#[must_use]
pub fn calls_at(rows: Range<usize>, code_offset: u64, range: impl Fn(usize) -> CallExtent) -> Vec<usize> {
    let contains = |&row: &usize| {
        let CallExtent { start, size, .. } = range(row);
        code_offset.checked_sub(start).is_some_and(|into| into < size)
    };
    let mut found: Vec<usize> = rows.filter(contains).collect();
    found.sort_by_key(|&row| range(row).depth);
    found.dedup_by_key(|row| range(*row).depth);
    found
}

/// The frames at an offset, outermost first: each function with its position. `calls` are the inlined functions with the
/// position of their call, outermost first; `position` is that of the innermost function.
#[must_use]
pub fn frames<F, P>(outer: F, calls: Vec<(F, P)>, position: P) -> Vec<(F, P)> {
    let mut position = position;
    let mut frames = Vec::with_capacity(calls.len().saturating_add(1));
    // Innermost first: the position of a function is where it called the next inner one.
    for (function, call) in calls.into_iter().rev() {
        frames.push((function, std::mem::replace(&mut position, call)));
    }
    frames.push((outer, position));
    frames.reverse();
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_in_order_of_their_depth_and_one_a_depth() {
        let ranges = [(0, 10, 1), (0, 20, 0), (5, 5, 1), (10, 5, 1)];
        let range = |row: usize| {
            let (start, size, depth) = ranges[row];
            CallExtent { start, size, depth }
        };
        assert_eq!(calls_at(0..4, 7, range), [1, 0]);
        assert_eq!(calls_at(0..4, 12, range), [1, 3]);
        assert_eq!(calls_at(0..4, 20, range), [0usize; 0]);
    }

    #[test]
    fn a_caller_is_where_it_calls() {
        let calls = vec![("middle", 10), ("inner", 20)];
        assert_eq!(frames("outer", calls, 30), [("outer", 10), ("middle", 20), ("inner", 30)]);
        assert_eq!(frames("outer", vec![], 30), [("outer", 30)]);
    }
}
