//! The call tree: stacks that read the same, merged.

use rustc_hash::FxHashMap;

use super::columns::{Keys, numbers};
use super::samples::StackSum;
use super::{NONE, StackError, StackTables, Symbols};

/// A node of a call tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Node of its caller (in an inverted tree: its callee); `u32::MAX` at a root. Always less than its own number.
    pub parent: u32,
    /// What it is called.
    pub symbol: u32,
    /// Thread, where the tree tells threads apart; else `u32::MAX`.
    pub thread: u32,
    /// Weight of samples that end here: in this function, or, in an inverted tree, with it as outermost caller.
    pub self_weight: u64,
    /// Weight of samples that pass here.
    pub total_weight: u64,
    /// Samples that end here.
    pub self_samples: u64,
    /// Samples that pass here.
    pub total_samples: u64,
}

impl Node {
    pub(super) fn new(parent: u32, symbol: u32, thread: u32) -> Self {
        Self { parent, symbol, thread, self_weight: 0, total_weight: 0, self_samples: 0, total_samples: 0 }
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
    pub(super) symbols: Symbols,
    pub(super) nodes: Nodes,
}

impl CallTree {
    /// Nodes in preorder, the heaviest child first.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes.nodes
    }

    /// What the nodes are called.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
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

/// Nodes whose parents come before them, and what they weigh together.
#[derive(Clone, Debug, Default)]
pub struct Nodes {
    pub nodes: Vec<Node>,
    pub weight: u64,
    pub samples: u64,
}

impl Nodes {
    /// Totals from what each node has itself.
    fn add_up(&mut self) {
        for node in (0..self.nodes.len()).rev() {
            let Node { self_weight, self_samples, .. } = self.nodes[node];
            self.nodes[node].add_total(self_weight, self_samples);
            let Node { parent, total_weight, total_samples, .. } = self.nodes[node];
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
pub struct Stacks {
    /// Numbering of `stacks`.
    pub keys: Keys,
    parents: Vec<u32>,
    symbols: Vec<u32>,
    no_stack: u32,
}

impl Stacks {
    /// Resolves references once, so that folding need not look at keys.
    pub fn of(tables: &StackTables, symbols: &Symbols) -> Result<Self, StackError> {
        let table = &tables.stacks;
        let keys = Keys::of(&numbers(table, "stacks", "stack_id")?);
        let mut parents = numbers(table, "stacks", "parent_stack_id")?;
        for (row, parent) in parents.iter_mut().enumerate() {
            let key = *parent;
            if key != NONE {
                *parent = keys.row(key);
                // Also what keeps a damaged table from being a circle.
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
        Ok(Self { keys, parents, symbols: of_stack, no_stack: symbols.no_stack() })
    }
}

/// Merges stacks that read the same. `sums` are ordered by thread.
pub fn fold(stacks: &Stacks, sums: &[StackSum], merge_recursion: bool) -> Nodes {
    let mut out = Nodes::default();
    let mut node_of = vec![NONE; stacks.parents.len()];
    let mut used = Vec::new();
    for of_thread in sums.chunk_by(|a, b| a.thread == b.thread) {
        let thread = of_thread[0].thread;
        used.clear();
        for sum in of_thread {
            let mut stack = sum.stack;
            // A mark other than NONE ends the walk: the rest of this stack was seen.
            while let Some(mark) = node_of.get_mut(stack as usize)
                && *mark == NONE
            {
                *mark = 0;
                used.push(stack);
                stack = stacks.parents[stack as usize];
            }
        }
        used.sort_unstable();
        let mut children = FxHashMap::with_capacity_and_hasher(used.len(), rustc_hash::FxBuildHasher);
        let mut child = |nodes: &mut Vec<Node>, parent: u32, symbol: u32| {
            *children.entry((parent, symbol)).or_insert_with(|| {
                nodes.push(Node::new(parent, symbol, thread));
                nodes.len() as u32 - 1
            })
        };
        for &stack in &used {
            let symbol = stacks.symbols[stack as usize];
            let parent = node_of.get(stacks.parents[stack as usize] as usize).copied().unwrap_or(NONE);
            let recursive =
                merge_recursion && out.nodes.get(parent as usize).is_some_and(|node| node.symbol == symbol);
            node_of[stack as usize] = if recursive { parent } else { child(&mut out.nodes, parent, symbol) };
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
