//! Call trees as record batches, and as the bytes that the viewer reads.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt32Array, UInt64Array};

use super::CallSymbols;
use super::short_name::short_name;
use super::tree::{CallNode, CallTree};
use crate::NONE;
use crate::batch;

impl CallTree {
    /// One row per node: `node_id, parent_node_id, symbol_id, thread_id, stack_id, self_weight, total_weight, self_samples,
    /// total_samples`, in preorder.
    #[must_use]
    pub fn nodes_batch(&self) -> RecordBatch {
        let nodes = self.nodes();
        let wide = |value: fn(&CallNode) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(nodes.iter().map(value)))
        };
        batch::of(vec![
            ("node_id", Arc::new(UInt32Array::from_iter_values(0..nodes.len() as u32))),
            ("parent_node_id", numbers(nodes.iter().map(|node| node.parent))),
            ("symbol_id", numbers(nodes.iter().map(|node| node.symbol))),
            ("thread_id", numbers(nodes.iter().map(|node| node.thread))),
            ("stack_id", numbers(nodes.iter().map(|node| node.stack))),
            ("self_weight", wide(|node| node.self_weight)),
            ("total_weight", wide(|node| node.total_weight)),
            ("self_samples", wide(|node| node.self_samples)),
            ("total_samples", wide(|node| node.total_samples)),
        ])
    }

    /// One row per symbol: see [`CallSymbols::batch`].
    #[must_use]
    pub fn symbols_batch(&self) -> RecordBatch {
        self.symbols.batch()
    }

    /// The nodes as columns of little-endian numbers, one after the other: distance to the parent (0 at a root),
    /// symbol, thread and own samples as 32 bits each, own weight as a 64-bit float (last, 8-byte aligned by padding).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let nodes = self.nodes();
        let mut bytes = Vec::with_capacity(nodes.len().saturating_mul(24).saturating_add(8));
        for (number, node) in nodes.iter().enumerate() {
            let distance = if node.parent == NONE { 0 } else { (number as u32).saturating_sub(node.parent) };
            bytes.extend_from_slice(&distance.to_le_bytes());
        }
        nodes.iter().for_each(|node| bytes.extend_from_slice(&node.symbol.to_le_bytes()));
        nodes.iter().for_each(|node| bytes.extend_from_slice(&node.thread.to_le_bytes()));
        let samples = |node: &CallNode| u32::try_from(node.self_samples).unwrap_or(u32::MAX);
        nodes.iter().for_each(|node| bytes.extend_from_slice(&samples(node).to_le_bytes()));
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        nodes.iter().for_each(|node| bytes.extend_from_slice(&(node.self_weight as f64).to_le_bytes()));
        bytes
    }
}

impl CallSymbols {
    /// One row per symbol: `symbol_id, group_id, name, short_name, function_id, module, kind, tier, origin, path, line,
    /// column, is_declaration, unnamed_because`. `is_declaration` states whether path and line are those of the declaration. Symbols of one function in several tiers share a `group_id`.
    #[must_use]
    pub fn batch(&self) -> RecordBatch {
        let symbols = self.all();
        let names = symbols.iter().map(|symbol| self.texts.get(symbol.name).unwrap_or_default());
        let short_names = StringArray::from_iter_values(names.map(short_name));
        let text = |ids: Vec<u32>| -> ArrayRef {
            Arc::new(ids.into_iter().map(|id| self.texts.get(id)).collect::<StringArray>())
        };
        batch::of(vec![
            ("symbol_id", Arc::new(UInt32Array::from_iter_values(0..symbols.len() as u32))),
            ("group_id", numbers(symbols.iter().map(|symbol| symbol.group))),
            ("name", text(symbols.iter().map(|symbol| symbol.name).collect())),
            ("short_name", Arc::new(short_names)),
            ("function_id", numbers(symbols.iter().map(|symbol| symbol.function_id))),
            ("module", text(symbols.iter().map(|symbol| symbol.module).collect())),
            ("kind", text(symbols.iter().map(|symbol| symbol.kind).collect())),
            ("tier", text(symbols.iter().map(|symbol| symbol.tier).collect())),
            (
                "origin",
                Arc::new(StringArray::from_iter_values(symbols.iter().map(|symbol| symbol.origin.name()))),
            ),
            ("path", text(symbols.iter().map(|symbol| symbol.path).collect())),
            ("line", numbers(symbols.iter().map(|symbol| symbol.line))),
            ("column", numbers(symbols.iter().map(|symbol| symbol.column))),
            (
                "is_declaration",
                Arc::new(symbols.iter().map(|symbol| Some(symbol.is_declaration)).collect::<BooleanArray>()),
            ),
            ("unnamed_because", text(symbols.iter().map(|symbol| symbol.unnamed_because).collect())),
        ])
    }
}

/// A column of numbers; [`NONE`] is null.
pub(super) fn numbers(values: impl Iterator<Item = u32>) -> ArrayRef {
    Arc::new(values.map(|value| (value != NONE).then_some(value)).collect::<UInt32Array>())
}
