//! Collapsed ("folded") stacks: `root;caller;callee COUNT` a line.

use std::cmp::Ordering;
use std::io::{self, BufWriter, Write};
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::symbols::NO_STACK;
use super::tree::{CallNode, CallTree};
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

    fn of(self, node: &CallNode) -> u64 {
        match self {
            Self::Samples => node.self_samples,
            Self::Weight => node.self_weight,
        }
    }
}

/// Bytes that are written at a time.
const BUFFER: usize = 1 << 20;

impl CallTree {
    /// Writes one line per distinct stack with the count of the samples that end there, sorted by text. `names` are those of the
    /// symbols; `roots` are the first frames of the stacks of a thread, or `None`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_collapsed(
        &self,
        names: &[String],
        roots: &FxHashMap<u32, Option<String>>,
        counted: LineCount,
        out: impl Write,
    ) -> io::Result<()> {
        let nodes = self.nodes();
        let ends = ends_of_subtrees(nodes);
        let (callees, open, level) = Default::default();
        let mut folding = Folding { nodes, names, roots, counted, ends, callees, open, level };
        folding.add_roots();
        let mut out = BufWriter::with_capacity(BUFFER, out);
        let mut stack = String::new();
        while let Some(step) = folding.open.pop() {
            perfuse_stopping::checkpoint();
            stack.truncate(step.len_before);
            stack.push_str(step.text);
            match step.then {
                Then::End(count) => writeln!(out, "{stack} {count}")?,
                Then::Callees(callees) => {
                    folding.callees.truncate(step.num_callees);
                    stack.push(';');
                    folding.add_callees(callees, stack.len());
                }
            }
        }
        out.flush()
    }
}

/// Number of the node after the subtree of each node. Nodes are in preorder.
fn ends_of_subtrees(nodes: &[CallNode]) -> Vec<u32> {
    let mut ends: Vec<u32> = (1..).take(nodes.len()).collect();
    for (number, node) in nodes.iter().enumerate().rev() {
        let end = ends.get(number).copied().unwrap_or_default();
        if let Some(of_caller) = ends.get_mut(node.parent as usize) {
            *of_caller = end.max(*of_caller);
        }
    }
    ends
}

/// The lines that are left to write, as the steps of a walk over the tree: nodes whose stacks have the same text are one.
struct Folding<'a> {
    nodes: &'a [CallNode],
    names: &'a [String],
    roots: &'a FxHashMap<u32, Option<String>>,
    counted: LineCount,
    ends: Vec<u32>,
    /// Nodes that steps refer to.
    callees: Vec<u32>,
    /// The last is the next one.
    open: Vec<LineStep<'a>>,
    /// Frames that follow the same text: memory that is used again.
    level: Vec<FoldedFrame<'a>>,
}

/// A frame of the stacks of one node.
struct FoldedFrame<'a> {
    text: &'a str,
    /// What is counted of the samples that end here.
    count: u64,
    /// Nodes that its callees and their subtrees are.
    callees: Range<u32>,
}

/// The text of a frame, and what is written of stacks that begin like this.
struct LineStep<'a> {
    text: &'a str,
    /// Length of the stack's text before the frame.
    len_before: usize,
    /// Length of `callees` when the step was added: what was added to it since belongs to steps that are done.
    num_callees: usize,
    then: Then,
}

/// What follows a frame.
enum Then {
    /// The stack ends, in so many samples.
    End(u128),
    /// Frames of the nodes in a part of `callees`.
    Callees(Range<usize>),
}

impl<'a> LineStep<'a> {
    /// By the text of the lines.
    fn compare(&self, other: &Self) -> Ordering {
        let len = self.text.len().min(other.text.len());
        let parts = |step: &Self| step.text.as_bytes().split_at_checked(len).unwrap_or_default();
        let semicolon = |step: &Self| if matches!(step.then, Then::End(_)) { None } else { Some(&b';') };
        let ((start, rest), (other_start, other_rest)) = (parts(self), parts(other));
        let rests = || rest.iter().chain(semicolon(self)).cmp(other_rest.iter().chain(semicolon(other)));
        start.cmp(other_start).then_with(rests)
    }
}

impl<'a> Folding<'a> {
    /// Adds the first frames of all stacks.
    fn add_roots(&mut self) {
        let mut number = 0;
        while let Some(&end) = self.ends.get(number as usize) {
            let frame = match self.root(number) {
                Some(text) => {
                    let count = if self.is_without_stack(number) { self.recorded(number) } else { 0 };
                    FoldedFrame { text, count, callees: number..end }
                }
                None => self.frame(number),
            };
            self.level.push(frame);
            number = end;
        }
        self.add_level(0);
    }

    /// Adds the frames of nodes in a part of `callees`, which follow a text of this length.
    fn add_callees(&mut self, callees: Range<usize>, len_before: usize) {
        let mut level = std::mem::take(&mut self.level);
        let nodes = self.callees.get(callees).unwrap_or_default();
        level.extend(nodes.iter().map(|&number| self.frame(number)));
        self.level = level;
        self.add_level(len_before);
    }

    /// Adds the frames in `level`.
    fn add_level(&mut self, len_before: usize) {
        let mut level = std::mem::take(&mut self.level);
        let first_step = self.open.len();
        level.sort_unstable_by_key(|frame| frame.text);
        for same in level.chunk_by(|one, other| one.text == other.text) {
            let Some(FoldedFrame { text, .. }) = same.first() else { continue };
            let count = same.iter().map(|frame| u128::from(frame.count)).sum();
            let first = self.callees.len();
            for Range { start, end } in same.iter().map(|frame| frame.callees.clone()) {
                let next = |&callee: &u32| self.ends.get(callee as usize).copied();
                let callees = std::iter::successors(Some(start), next).take_while(|callee| *callee < end);
                self.callees.extend(callees);
            }
            let callees = first..self.callees.len();
            let end = Some(Then::End(count)).filter(|_| count > 0);
            let more = Some(callees).filter(|callees| !callees.is_empty()).map(Then::Callees);
            let steps = end.into_iter().chain(more);
            self.open.extend(steps.map(|then| LineStep { text, len_before, num_callees: 0, then }));
        }
        level.clear();
        self.level = level;
        let steps = self.open.get_mut(first_step..).unwrap_or_default();
        steps.sort_by(|one, other| other.compare(one));
        for step in steps {
            step.num_callees = self.callees.len();
        }
    }

    /// The frame of a node.
    fn frame(&self, number: u32) -> FoldedFrame<'a> {
        // What has no stack is counted for the root.
        let is_counted = !(self.is_without_stack(number) && self.root(number).is_some());
        let count = if is_counted { self.recorded(number) } else { 0 };
        let end = self.ends.get(number as usize).copied().unwrap_or_default();
        FoldedFrame { text: self.text(number), count, callees: number.saturating_add(1)..end }
    }

    fn text(&self, number: u32) -> &'a str {
        let symbol = self.nodes.get(number as usize).map_or(NONE, |node| node.symbol);
        self.names.get(symbol as usize).map_or("", String::as_str)
    }

    /// The first frame of the stacks of a node's thread.
    fn root(&self, number: u32) -> Option<&'a str> {
        self.roots.get(&self.nodes.get(number as usize)?.thread)?.as_deref()
    }

    /// Whether a node stands for samples without a stack.
    fn is_without_stack(&self, number: u32) -> bool {
        let is_root = self.nodes.get(number as usize).is_some_and(|node| node.parent == NONE);
        is_root && self.text(number) == NO_STACK
    }

    /// The count of the samples that end at a node.
    fn recorded(&self, number: u32) -> u64 {
        self.nodes.get(number as usize).map_or(0, |node| self.counted.of(node))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::super::tree::CallNodes;
    use super::super::{CallSymbols, CallTree};
    use super::*;

    /// Some are the start of others, and two are equal.
    const NAMES: [&str; 6] = ["a", "a(int)", "a b", "b", "a", NO_STACK];

    /// A tree in preorder: of each node its depth, name, thread of a root, and samples.
    fn tree(rows: &[(usize, u32, u32, u64)]) -> CallTree {
        let mut path: Vec<u32> = Vec::new();
        let mut nodes: Vec<CallNode> = Vec::new();
        for (number, &(depth, symbol, thread, samples)) in (0..).zip(rows) {
            path.truncate(depth);
            let parent = path.last().copied().unwrap_or(NONE);
            let thread = nodes.get(parent as usize).map_or(thread, |node| node.thread);
            let mut node = CallNode::new(parent, symbol, thread);
            node.add_self(samples, samples);
            nodes.push(node);
            path.push(number);
        }
        CallTree { symbols: CallSymbols::default(), nodes: CallNodes { nodes, weight: 0, samples: 0 } }
    }

    fn lines(tree: &CallTree, names: &[String], roots: &FxHashMap<u32, Option<String>>) -> Vec<String> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for node in tree.nodes().iter().filter(|node| node.self_samples > 0) {
            let ancestors = std::iter::successors(Some(node), |node| tree.nodes().get(node.parent as usize));
            let mut stack: Vec<&str> = ancestors.map(|node| names[node.symbol as usize].as_str()).collect();
            if let Some(Some(root)) = roots.get(&node.thread) {
                if stack == [NO_STACK] {
                    stack.clear();
                }
                stack.push(root);
            }
            stack.reverse();
            *counts.entry(stack.join(";")).or_default() += node.self_samples;
        }
        counts.into_iter().map(|(stack, count)| format!("{stack} {count}\n")).collect()
    }

    proptest! {
        #[test]
        fn a_line_for_each_text_in_the_order_of_texts(
            rows in prop::collection::vec((0..5_usize, 0..6_u32, 0..4_u32, 0..3_u64), 0..40),
        ) {
            let (tree, names) = (tree(&rows), NAMES.map(str::to_owned));
            let roots = [(0, Some("a".to_owned())), (1, Some("a".to_owned())), (2, None)].into_iter().collect();
            let mut out = Vec::new();
            tree.write_collapsed(&names, &roots, LineCount::Samples, &mut out).unwrap();
            prop_assert_eq!(String::from_utf8(out).unwrap(), lines(&tree, &names, &roots).concat());
        }
    }
}
