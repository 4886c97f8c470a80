//! Collapsed ("folded") stacks: `root;caller;callee COUNT` a line.

use std::ops::Range;

use perfuse_workers::install;
use rayon::slice::ParallelSliceMut;
use rustc_hash::FxHashMap;

use super::symbols::NO_STACK;
use super::tree::CallTree;
use crate::NONE;

/// The number of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineCount {
    /// Samples.
    Samples,
    /// Sum of their weights.
    Weight,
}

impl LineCount {
    /// The counts by name.
    pub const ALL: [(&'static str, Self); 2] = [("samples", Self::Samples), ("events", Self::Weight)];
}

impl CallTree {
    /// One line per distinct stack with the count of the samples that end there, sorted by text. `names` are those of the
    /// symbols; `roots` are the first frames of the stacks of a thread, or `None`.
    #[must_use]
    pub fn collapsed(
        &self,
        names: &[String],
        roots: &FxHashMap<u32, Option<String>>,
        counted: LineCount,
    ) -> Vec<u8> {
        // Nodes are in preorder: number and length of `stack` of each ancestor of the next node.
        let mut ancestors: Vec<(u32, usize)> = Vec::new();
        let mut stack = String::new();
        let mut text = String::new();
        let mut lines = Vec::new();
        for (number, node) in (0u32..).zip(self.nodes()) {
            perfuse_stopping::checkpoint();
            while ancestors.last().is_some_and(|(last, _)| *last != node.parent) {
                ancestors.pop();
            }
            stack.truncate(ancestors.last().map_or(0, |(_, len)| *len));
            if node.parent != NONE {
                stack.push(';');
            }
            stack.push_str(names.get(node.symbol as usize).map_or("", String::as_str));
            ancestors.push((number, stack.len()));
            let count = match counted {
                LineCount::Samples => node.self_samples,
                LineCount::Weight => node.self_weight,
            };
            if count == 0 {
                continue;
            }
            let start = text.len();
            match roots.get(&node.thread).and_then(Option::as_deref) {
                Some(root) if stack == NO_STACK => text.push_str(root),
                Some(root) => text.extend([root, ";", &stack]),
                None => text.push_str(&stack),
            }
            lines.push((start..text.len(), u128::from(count)));
        }
        let part = |range: &Range<usize>| text.get(range.clone()).unwrap_or_default();
        install(|| lines.par_sort_unstable_by(|(one, _), (other, _)| part(one).cmp(part(other))));
        lines.dedup_by(|(later, more), (first, count)| {
            let is_same = part(later) == part(first);
            *count = count.saturating_add(if is_same { *more } else { 0 });
            is_same
        });
        let mut out = Vec::with_capacity(text.len().saturating_add(lines.len().saturating_mul(8)));
        for (range, count) in lines {
            out.extend_from_slice(part(&range).as_bytes());
            out.extend_from_slice(format!(" {count}\n").as_bytes());
        }
        out
    }
}
