//! Nests inlined calls as DWARF requires.

use super::image::InlinedRange;

/// An inlined call as it is written: inside its caller's range and apart from its siblings'.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InlineScope {
    /// Bytes from the start of the code.
    pub start: u64,
    /// First byte after it.
    pub end: u64,
    /// 0 for a call from the outer function; at most one more than the scope before.
    pub depth: u32,
    /// Index of the inlined call.
    pub index: usize,
}

/// Nests the inlined calls of code of `size` bytes, depth first, and fills `scopes` with them.
///
/// DWARF requires a call's range to be within its caller's and apart from its siblings'. Ranges are clipped to that; a call
/// with an empty range or without a caller is left out, with the calls inside it.
pub(super) fn nest(inlines: &[InlinedRange<'_>], size: u64, scopes: &mut Vec<InlineScope>) {
    scopes.clear();
    if inlines.is_sorted_by_key(|inline| (inline.start, inline.depth)) {
        place(inlines.iter().enumerate(), size, scopes);
    } else {
        let mut order: Vec<_> = inlines.iter().enumerate().collect();
        order.sort_by_key(|(_, inline)| (inline.start, inline.depth));
        place(order, size, scopes);
    }
}

fn place<'a>(
    inlines: impl IntoIterator<Item = (usize, &'a InlinedRange<'a>)>,
    size: u64,
    scopes: &mut Vec<InlineScope>,
) {
    // The scopes open at this point, outermost (the function itself) first: the end of each, and the end of its last call.
    let mut open = vec![(size, 0)];
    for (index, inline) in inlines {
        let callers = (inline.depth as usize).saturating_add(1);
        if open.len() < callers {
            continue;
        }
        open.truncate(callers);
        let Some((caller_end, taken)) = open.last_mut() else { continue };
        let start = inline.start.max(*taken);
        let end = inline.start.saturating_add(inline.size).min(*caller_end);
        if start < end {
            *taken = end;
            open.push((end, start));
            scopes.push(InlineScope { start, end, depth: inline.depth, index });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn inline(start: u64, size: u64, depth: u32) -> InlinedRange<'static> {
        InlinedRange { start, size, depth, name: "f", ..InlinedRange::default() }
    }

    fn nested(inlines: &[InlinedRange<'_>], size: u64) -> Vec<(u64, u64, u32)> {
        let mut scopes = Vec::new();
        nest(inlines, size, &mut scopes);
        scopes.iter().map(|scope| (scope.start, scope.end, scope.depth)).collect()
    }

    #[test]
    fn a_proper_tree_is_unchanged_in_any_order() {
        let tree = [inline(4, 20, 0), inline(4, 8, 1), inline(6, 2, 2), inline(12, 8, 1), inline(40, 4, 0)];
        let expected = [(4, 24, 0), (4, 12, 1), (6, 8, 2), (12, 20, 1), (40, 44, 0)];
        assert_eq!(nested(&tree, 64), expected);
        let mut shuffled = tree;
        shuffled.reverse();
        assert_eq!(nested(&shuffled, 64), expected);
    }

    #[test]
    fn ranges_are_clipped_and_calls_without_a_caller_are_left_out() {
        assert_eq!(nested(&[inline(8, u64::MAX, 0), inline(10, 100, 1)], 32), [(8, 32, 0), (10, 32, 1)]);
        assert_eq!(nested(&[inline(0, 8, 0), inline(4, 8, 0)], 32), [(0, 8, 0), (8, 12, 0)]);
        assert_eq!(nested(&[inline(0, 8, 0), inline(2, 2, 2), inline(40, 2, 0)], 32), [(0, 8, 0)]);
    }

    proptest! {
        #[test]
        fn scopes_always_nest(rows in prop::collection::vec((0u64..40, 0u64..40, 0u32..5), 0..40)) {
            let inlines: Vec<_> = rows.iter().map(|&(start, size, depth)| inline(start, size, depth)).collect();
            let mut path: Vec<(u64, u64)> = vec![(0, 32)];
            for (start, end, depth) in nested(&inlines, 32) {
                prop_assert!((depth as usize) < path.len());
                path.truncate(depth as usize + 2);
                let sibling = (path.len() > depth as usize + 1).then(|| path.pop()).flatten();
                let caller = path[depth as usize];
                prop_assert!(start < end && caller.0 <= start && end <= caller.1);
                prop_assert!(sibling.is_none_or(|sibling| sibling.1 <= start));
                path.push((start, end));
            }
        }
    }
}
