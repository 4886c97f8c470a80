//! Weights of functions, modules, tiers, origins or threads in a call tree, as a record batch.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};

use super::CallSymbol;
use super::output::numbers;
use super::tree::{CallNode, CallTree};
use crate::NONE;
use crate::batch;

/// How weights are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightGrouping {
    /// Functions, all tiers together.
    Function,
    /// Functions, by tier.
    Tiered,
    /// Modules.
    Module,
    /// Tiers; kinds of code without one.
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

/// One row of [`CallTree::weights`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WeightRow {
    pub(super) self_weight: u64,
    pub(super) total_weight: u64,
    pub(super) self_samples: u64,
    total_samples: u64,
    /// The node that the row's texts are taken from.
    pub(super) example: u32,
}

impl WeightRow {
    fn add_self(&mut self, node: &CallNode) {
        self.self_weight = self.self_weight.saturating_add(node.self_weight);
        self.self_samples = self.self_samples.saturating_add(node.self_samples);
    }

    fn add_total(&mut self, node: &CallNode) {
        self.total_weight = self.total_weight.saturating_add(node.total_weight);
        self.total_samples = self.total_samples.saturating_add(node.total_samples);
    }
}

impl CallTree {
    /// Self and total weight of each function, module and so on, the heaviest self weight first.
    ///
    /// The total of a row is the weight of all samples that have it anywhere in their stack: a function that calls
    /// itself counts once. Not for an inverted tree, where a node's weight is not its function's.
    #[must_use]
    pub fn weights(&self, by: WeightGrouping) -> RecordBatch {
        batch::of(weight_columns(self, &self.weight_rows(by), by))
    }

    /// The rows of [`weights`](Self::weights).
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "a node has a symbol of this tree, a slot below `slots.num`, and the path contains only nodes before it"
    )]
    pub(super) fn weight_rows(&self, by: WeightGrouping) -> Vec<WeightRow> {
        let nodes = self.nodes();
        let key_of = |symbol: usize| {
            let CallSymbol { group, module, kind, tier, origin, unnamed_because, .. } =
                self.symbols.symbols[symbol];
            match by {
                WeightGrouping::Function => group,
                WeightGrouping::Tiered => symbol as u32,
                WeightGrouping::Module => module,
                WeightGrouping::Tier if tier == NONE => kind,
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
            perfuse_stopping::checkpoint();
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
        // Null is a row only where it means something: code of no module, but not a named function's reason.
        if by == WeightGrouping::Reason {
            rows.retain(|row| {
                self.symbol_of(row.example).is_some_and(|symbol| symbol.unnamed_because != NONE)
            });
        }
        rows.sort_by_key(|row| std::cmp::Reverse((row.self_weight, row.total_weight)));
        rows
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

/// The result of [`CallTree::weights`]: `name` and the other columns that identify a row, then its weights.
pub(super) fn weight_columns(
    tree: &CallTree,
    rows: &[WeightRow],
    by: WeightGrouping,
) -> Vec<(&'static str, ArrayRef)> {
    let symbols: Vec<Option<&CallSymbol>> = rows.iter().map(|row| tree.symbol_of(row.example)).collect();
    // Only a function has one module, tier and so on.
    let function = |symbol: Option<&'_ CallSymbol>| {
        symbol.copied().filter(|_| matches!(by, WeightGrouping::Function | WeightGrouping::Tiered))
    };
    let id = |value: fn(&CallSymbol) -> u32| {
        symbols.iter().map(move |&symbol| function(symbol).as_ref().map_or(NONE, value))
    };
    let text = |value| -> ArrayRef {
        Arc::new(id(value).map(|id| tree.symbols.texts.get(id)).collect::<StringArray>())
    };
    let wide = |value: fn(&WeightRow) -> u64| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(value)))
    };
    let name = |symbol: &CallSymbol| match by {
        WeightGrouping::Function | WeightGrouping::Tiered => tree.symbols.texts.get(symbol.name),
        WeightGrouping::Module => tree.symbols.texts.get(symbol.module),
        WeightGrouping::Tier => tree.symbols.texts.get(symbol.tier).or(tree.symbols.texts.get(symbol.kind)),
        WeightGrouping::Origin => Some(symbol.origin.name()),
        WeightGrouping::Reason => tree.symbols.texts.get(symbol.unnamed_because),
        WeightGrouping::Thread => None,
    };
    let names: StringArray = symbols.iter().map(|symbol| symbol.and_then(name)).collect();
    let origins: StringArray =
        symbols.iter().map(|&symbol| function(symbol).map(|symbol| symbol.origin.name())).collect();
    let declared: BooleanArray =
        symbols.iter().map(|&symbol| function(symbol).map(|symbol| symbol.is_declaration)).collect();
    let threads =
        rows.iter().map(|row| tree.nodes().get(row.example as usize).map_or(NONE, |node| node.thread));
    vec![
        ("name", Arc::new(names)),
        ("function_id", numbers(id(|symbol| symbol.function_id))),
        (
            "thread_id",
            numbers(threads.map(|thread| if by == WeightGrouping::Thread { thread } else { NONE })),
        ),
        ("module", text(|symbol| symbol.module)),
        ("kind", text(|symbol| symbol.kind)),
        ("tier", text(|symbol| symbol.tier)),
        ("origin", Arc::new(origins)),
        ("path", text(|symbol| symbol.path)),
        ("line", numbers(id(|symbol| symbol.line))),
        ("column", numbers(id(|symbol| symbol.column))),
        ("is_declaration", Arc::new(declared)),
        ("unnamed_because", text(|symbol| symbol.unnamed_because)),
        ("self_weight", wide(|row| row.self_weight)),
        ("total_weight", wide(|row| row.total_weight)),
        ("self_samples", wide(|row| row.self_samples)),
        ("total_samples", wide(|row| row.total_samples)),
    ]
}
