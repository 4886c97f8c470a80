//! The cost of calls, by caller and callee.

use arrow_array::RecordBatch;

use super::durations::Rank;
use super::statistics::{figures, keys, recursion, rows};
use super::tree::CallPathTree;
use crate::batch;

/// One row per caller and callee, the caller null for outermost calls: the cost of these calls, in nanoseconds.
/// `recursive_calls` and `total_ns` refer to this pair: a call is recursive where another from the same caller is open.
pub fn edges(tree: &mut CallPathTree, rank: Rank) -> RecordBatch {
    let series = std::mem::take(&mut tree.edges);
    let nodes = &tree.nodes;
    let caller = |parent: u32| nodes.get(parent as usize).map_or(0, |parent| u64::from(parent.function_id));
    let is_recursive = recursion(nodes, |node| caller(node.parent) << 32 | u64::from(node.function_id));
    let rows = rows(tree, series, |node| node.edge, &is_recursive, rank);
    let mut columns = vec![
        ("caller_id", keys(rows.iter().map(|row| row.caller_id))),
        ("function_id", keys(rows.iter().map(|row| row.function_id))),
    ];
    columns.extend(figures(&rows));
    batch::of(columns)
}
