//! How heavy each function, module, tier, kind or thread is.

use arrow_array::RecordBatch;

use super::output::{WeightRow, weights_batch};
use super::tree::CallTree;
use super::{CallSymbol, NONE};

/// How weights are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightGrouping {
    /// Functions, all tiers together.
    Function,
    /// Functions, by tier.
    Tiered,
    /// Modules.
    Module,
    /// Tiers.
    Tier,
    /// Origins: interpreter, baseline, native, kernel and so on.
    Origin,
    /// Reasons why frames have no name.
    Reason,
    /// Threads, in a tree where each has roots of its own.
    Thread,
}

impl WeightGrouping {
    /// All groupings with their names.
    pub const ALL: [(&'static str, Self); 7] = [
        ("function", Self::Function),
        ("tiered", Self::Tiered),
        ("module", Self::Module),
        ("tier", Self::Tier),
        ("origin", Self::Origin),
        ("reason", Self::Reason),
        ("thread", Self::Thread),
    ];
}

impl CallTree {
    /// Self and total weight of each function, module and so on, the heaviest self weight first.
    ///
    /// The total of a row is the weight of all samples that have it anywhere in their stack: a function that calls
    /// itself counts once. Not for an inverted tree, where a node's weight is not its function's.
    #[must_use]
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "a node has a symbol of this tree, a slot below `slots.num`, and the path contains only nodes before it"
    )]
    pub fn weights(&self, by: WeightGrouping) -> RecordBatch {
        let nodes = self.nodes();
        let key_of = |symbol: usize| {
            let CallSymbol { group, module, tier, origin, unnamed_because, .. } =
                self.symbols.symbols[symbol];
            match by {
                WeightGrouping::Function => group,
                WeightGrouping::Tiered => symbol as u32,
                WeightGrouping::Module => module,
                WeightGrouping::Tier => tier,
                WeightGrouping::Origin => origin as u32,
                WeightGrouping::Reason => unnamed_because,
                WeightGrouping::Thread => NONE,
            }
        };
        let keys: Vec<u32> = (0..self.symbols.symbols.len()).map(key_of).collect();
        let slots =
            GroupOfNode::new(nodes.iter().map(|node| {
                if by == WeightGrouping::Thread { node.thread } else { keys[node.symbol as usize] }
            }));
        let mut rows = vec![WeightRow::default(); slots.num];
        let mut heaviest = vec![None; slots.num];
        let mut on_path = vec![0u32; slots.num];
        let mut path: Vec<u32> = Vec::new();
        for (number, node) in nodes.iter().enumerate() {
            while path.last().is_some_and(|&top| top != node.parent) {
                if let Some(left) = path.pop() {
                    on_path[slots.of_node[left as usize] as usize] -= 1;
                }
            }
            let slot = slots.of_node[number] as usize;
            rows[slot].add_self(node);
            if on_path[slot] == 0 {
                rows[slot].add_total(node);
            }
            on_path[slot] += 1;
            path.push(number as u32);
            // The tier and line shown for a function are those of its heaviest node.
            let weight = (node.self_weight, node.total_weight);
            if heaviest[slot].is_none_or(|(most, _)| weight > most) {
                heaviest[slot] = Some((weight, number as u32));
            }
        }
        for (row, heaviest) in rows.iter_mut().zip(heaviest) {
            row.example = heaviest.map_or(NONE, |(_, node)| node);
        }
        // Null is a row only where it means something: code of no module or tier, but not a named function's reason.
        if by == WeightGrouping::Reason {
            rows.retain(|row| {
                self.symbol_of(row.example).is_some_and(|symbol| symbol.unnamed_because != NONE)
            });
        }
        rows.sort_by_key(|row| std::cmp::Reverse((row.self_weight, row.total_weight)));
        weights_batch(self, &rows, by)
    }

    pub(super) fn symbol_of(&self, node: u32) -> Option<&CallSymbol> {
        let node = self.nodes().get(node as usize)?;
        self.symbols.symbols.get(node.symbol as usize)
    }
}

/// The group of each node, numbered in order of appearance.
struct GroupOfNode {
    of_node: Vec<u32>,
    num: usize,
}

impl GroupOfNode {
    fn new(keys: impl Iterator<Item = u32>) -> Self {
        let mut slots = rustc_hash::FxHashMap::default();
        let of_node = keys
            .map(|key| {
                let next = slots.len() as u32;
                *slots.entry(key).or_insert(next)
            })
            .collect();
        Self { of_node, num: slots.len() }
    }
}
