//! Collapsed ("folded") stacks: `root;caller;callee COUNT` a line.

use rayon::slice::ParallelSliceMut;
use rustc_hash::FxHashMap;

use super::NONE;
use super::symbols::NO_STACK;
use super::tree::CallTree;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// Samples.
    Samples,
    /// What they stand for.
    Weight,
}

impl CallTree {
    /// Stacks with what ends there, sorted by text, one of a text. `names` are those of the symbols; `roots` say what comes
    /// first in stacks of a thread, which may be nothing.
    #[must_use]
    pub fn collapsed(
        &self,
        names: &[String],
        roots: &FxHashMap<u32, Option<String>>,
        counted: Counted,
    ) -> Vec<u8> {
        // Nodes are in preorder: of those above the next, the number and how much of `stack` is theirs.
        let mut above: Vec<(u32, usize)> = Vec::new();
        let mut stack = String::new();
        let mut text = String::new();
        let mut lines = Vec::new();
        for (number, node) in (0u32..).zip(self.nodes()) {
            while above.last().is_some_and(|(last, _)| *last != node.parent) {
                above.pop();
            }
            stack.truncate(above.last().map_or(0, |(_, len)| *len));
            if node.parent != NONE {
                stack.push(';');
            }
            stack.push_str(names.get(node.symbol as usize).map_or("", String::as_str));
            above.push((number, stack.len()));
            let count = match counted {
                Counted::Samples => node.self_samples,
                Counted::Weight => node.self_weight,
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
        lines.par_sort_unstable_by(|(one, _), (other, _)| text[one.clone()].cmp(&text[other.clone()]));
        lines.dedup_by(|(later, more), (first, count)| {
            let is_same = text[later.clone()] == text[first.clone()];
            *count += if is_same { *more } else { 0 };
            is_same
        });
        let mut out = Vec::with_capacity(text.len() + 8 * lines.len());
        for (range, count) in lines {
            out.extend_from_slice(text[range].as_bytes());
            out.extend_from_slice(format!(" {count}\n").as_bytes());
        }
        out
    }
}
