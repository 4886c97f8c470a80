//! The call tree: stacks with the same symbols, merged.

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::columns::{Keys, numbers};
use super::samples::StackSum;
use super::{CallSymbols, StackError, StackTables};
use crate::NONE;

/// A node of a call tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallNode {
    /// Node of its caller (in an inverted tree: its callee); `u32::MAX` at a root. Always less than its own number.
    pub parent: u32,
    /// Its symbol.
    pub symbol: u32,
    /// Thread, where each thread has roots of its own; else `u32::MAX`.
    pub thread: u32,
    /// Key of the first of its stacks in `stacks`; `u32::MAX` in an inverted tree, and for samples without a stack.
    pub stack: u32,
    /// Weight of samples that end here: in this function, or, in an inverted tree, with it as outermost caller.
    pub self_weight: u64,
    /// Weight of samples that have it in their stack.
    pub total_weight: u64,
    /// Samples that end here.
    pub self_samples: u64,
    /// Samples that have it in their stack.
    pub total_samples: u64,
}

impl CallNode {
    pub(super) fn new(parent: u32, symbol: u32, thread: u32) -> Self {
        Self {
            parent,
            symbol,
            thread,
            stack: NONE,
            self_weight: 0,
            total_weight: 0,
            self_samples: 0,
            total_samples: 0,
        }
    }

    pub(super) fn add_self(&mut self, weight: u64, samples: u64) {
        self.self_weight = self.self_weight.saturating_add(weight);
        self.self_samples = self.self_samples.saturating_add(samples);
    }

    pub(super) fn add_total(&mut self, weight: u64, samples: u64) {
        self.total_weight = self.total_weight.saturating_add(weight);
        self.total_samples = self.total_samples.saturating_add(samples);
    }
}

/// Samples folded by function.
#[derive(Clone, Debug)]
pub struct CallTree {
    pub(super) symbols: CallSymbols,
    pub(super) nodes: CallNodes,
}

impl CallTree {
    /// Nodes in preorder, the heaviest child first.
    #[must_use]
    pub fn nodes(&self) -> &[CallNode] {
        &self.nodes.nodes
    }

    /// The symbols of the nodes.
    #[must_use]
    pub fn symbols(&self) -> &CallSymbols {
        &self.symbols
    }

    /// Weight of the samples in the tree.
    #[must_use]
    pub fn total_weight(&self) -> u64 {
        self.nodes.weight
    }

    /// Number of samples in the tree.
    #[must_use]
    pub fn total_samples(&self) -> u64 {
        self.nodes.samples
    }
}

/// Nodes whose parents precede them, with their total weight.
#[derive(Clone, Debug, Default)]
pub struct CallNodes {
    pub nodes: Vec<CallNode>,
    pub weight: u64,
    pub samples: u64,
}

impl CallNodes {
    /// Totals from what each node has itself.
    fn add_up(&mut self) {
        // Parents precede their children.
        for number in (0..self.nodes.len()).rev() {
            let Some(node) = self.nodes.get_mut(number) else { continue };
            node.add_total(node.self_weight, node.self_samples);
            let CallNode { parent, total_weight, total_samples, .. } = *node;
            match self.nodes.get_mut(parent as usize) {
                Some(parent) => parent.add_total(total_weight, total_samples),
                None => {
                    self.weight = self.weight.saturating_add(total_weight);
                    self.samples = self.samples.saturating_add(total_samples);
                }
            }
        }
    }
}

/// The stacks, as symbols.
pub struct SymbolStacks {
    /// Numbering of `stacks`.
    pub keys: Keys,
    ids: Vec<u32>,
    parents: Vec<u32>,
    symbols: Vec<u32>,
    no_stack: u32,
}

impl SymbolStacks {
    /// Resolves references once, so that folding need not look at keys.
    pub fn of(tables: &StackTables, symbols: &CallSymbols) -> Result<Self, StackError> {
        let table = &tables.stacks;
        let ids = numbers(table, "stacks", "stack_id")?;
        let keys = Keys::of(&ids);
        let mut parents = numbers(table, "stacks", "parent_stack_id")?;
        for (row, parent) in parents.iter_mut().enumerate() {
            perfuse_stopping::checkpoint();
            let key = *parent;
            if key != NONE {
                *parent = keys.row(key);
                // Parents precede their children, so that a damaged table has no cycle.
                if *parent as usize >= row {
                    return Err(StackError::Reference { table: "stacks", column: "parent_stack_id", key });
                }
            }
        }
        let mut of_stack = numbers(table, "stacks", "frame_id")?;
        for frame in &mut of_stack {
            let key = *frame;
            let row = symbols.frame_keys.as_ref().map_or(NONE, |keys| keys.row(key));
            let symbol = symbols.of_frame.get(row as usize);
            *frame = *symbol.ok_or(StackError::Reference { table: "stacks", column: "frame_id", key })?;
        }
        Ok(Self { keys, ids, parents, symbols: of_stack, no_stack: symbols.no_stack() })
    }

    /// Symbol of a row of `stacks`; of any other number, the one of samples without a stack.
    pub fn symbol(&self, stack: u32) -> u32 {
        self.symbols.get(stack as usize).copied().unwrap_or(self.no_stack)
    }

    /// The row of the caller's stack.
    pub fn parent(&self, stack: u32) -> Option<u32> {
        self.parents.get(stack as usize).copied().filter(|&parent| parent != NONE)
    }
}

/// Merges stacks with the same symbols. `sums` are ordered by thread.
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "`node_of`, `ids`, `parents` and `symbols` have an entry for each row of `stacks`; `used` and `children` contain only numbers of such rows and of nodes of `out`"
)]
pub fn fold(stacks: &SymbolStacks, sums: &[StackSum], merge_recursion: bool) -> CallNodes {
    let mut out = CallNodes::default();
    let mut node_of = vec![NONE; stacks.parents.len()];
    let mut used = Vec::with_capacity(stacks.parents.len());
    for of_thread in sums.chunk_by(|a, b| a.thread == b.thread) {
        let thread = of_thread[0].thread;
        used.clear();
        for sum in of_thread {
            let mut stack = sum.stack;
            // A mark other than NONE: the rest of this stack was visited before.
            while let Some(mark) = node_of.get_mut(stack as usize)
                && *mark == NONE
            {
                *mark = 0;
                used.push(stack);
                stack = stacks.parents[stack as usize];
            }
        }
        used.sort_unstable();
        out.nodes.reserve(used.len());
        let mut children = FxHashMap::with_capacity_and_hasher(used.len(), FxBuildHasher);
        let mut child = |nodes: &mut Vec<CallNode>, parent: u32, symbol: u32| {
            *children.entry((parent, symbol)).or_insert_with(|| {
                nodes.push(CallNode::new(parent, symbol, thread));
                nodes.len() as u32 - 1
            })
        };
        for &stack in perfuse_stopping::checked(&used) {
            let symbol = stacks.symbols[stack as usize];
            let parent = node_of.get(stacks.parents[stack as usize] as usize).copied().unwrap_or(NONE);
            let recursive =
                merge_recursion && out.nodes.get(parent as usize).is_some_and(|node| node.symbol == symbol);
            let node = if recursive { parent } else { child(&mut out.nodes, parent, symbol) };
            node_of[stack as usize] = node;
            // Stacks are in the order of their rows: the first stays.
            let first = &mut out.nodes[node as usize].stack;
            if *first == NONE {
                *first = stacks.ids[stack as usize];
            }
        }
        for sum in of_thread {
            let node = match node_of.get(sum.stack as usize) {
                Some(&node) => node,
                None => child(&mut out.nodes, NONE, stacks.no_stack),
            };
            out.nodes[node as usize].add_self(sum.weight, sum.samples);
        }
        for &stack in &used {
            node_of[stack as usize] = NONE;
        }
    }
    out.add_up();
    out
}
