//! The tree of callers.

use super::layout::least_weight;
use super::tree::{CallNode, CallNodes};
use crate::NONE;

/// The position of a group of samples on its way to the root.
#[derive(Clone, Copy)]
struct CallerStep {
    at: u32,
    weight: u64,
    samples: u64,
}

/// Turns a tree of callees into one of callers: its roots are the functions that have weight of their own.
///
/// Callers of a node below the least share are left out, which keeps a tree of many light stacks small.
#[allow(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "nodes are numbered by their index, and a parent is `NONE` or the number of an earlier node"
)]
pub fn invert(forward: &CallNodes, min_share: f64) -> CallNodes {
    let least = least_weight(forward.weight, min_share);
    let mut out = CallNodes { nodes: Vec::new(), weight: forward.weight, samples: forward.samples };
    let leaves =
        forward.nodes.iter().enumerate().filter(|(_, node)| node.self_samples > 0 || node.self_weight > 0);
    let walks = leaves.map(|(at, node)| CallerStep {
        at: at as u32,
        weight: node.self_weight,
        samples: node.self_samples,
    });
    let mut open = vec![(NONE, walks.collect::<Vec<_>>())];
    while let Some((parent, mut walks)) = open.pop() {
        let key = |walk: &CallerStep| {
            (forward.nodes[walk.at as usize].thread, forward.nodes[walk.at as usize].symbol)
        };
        if walks.len() > 1 {
            walks.sort_unstable_by_key(key);
        }
        for group in walks.chunk_by(|a, b| key(a) == key(b)) {
            let (thread, symbol) = key(&group[0]);
            let mut node = CallNode::new(parent, symbol, thread);
            let mut callers = Vec::with_capacity(group.len());
            for walk in group {
                node.add_total(walk.weight, walk.samples);
                match forward.nodes[walk.at as usize].parent {
                    NONE => node.add_self(walk.weight, walk.samples),
                    caller => callers.push(CallerStep { at: caller, ..*walk }),
                }
            }
            if node.total_weight >= least {
                out.nodes.push(node);
                if !callers.is_empty() {
                    open.push((out.nodes.len() as u32 - 1, callers));
                }
            }
        }
    }
    out
}
