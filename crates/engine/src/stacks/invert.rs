//! The tree of callers.

use super::NONE;
use super::layout::least_weight;
use super::tree::{Node, Nodes};

/// Where a group of samples has got to on its way to the root.
#[derive(Clone, Copy)]
struct Walk {
    at: u32,
    weight: u64,
    samples: u64,
}

/// Turns a tree of callees into one of callers: its roots are the functions that have weight of their own.
///
/// A node below the least share is not followed further, which keeps a tree of many light stacks small.
pub fn invert(forward: &Nodes, min_share: f64) -> Nodes {
    let least = least_weight(forward.weight, min_share);
    let mut out = Nodes { nodes: Vec::new(), weight: forward.weight, samples: forward.samples };
    let leaves = forward.nodes.iter().enumerate().filter(|(_, node)| node.self_samples > 0);
    let walks =
        leaves.map(|(at, node)| Walk { at: at as u32, weight: node.self_weight, samples: node.self_samples });
    let mut open = vec![(NONE, walks.collect::<Vec<_>>())];
    while let Some((parent, mut walks)) = open.pop() {
        let key =
            |walk: &Walk| (forward.nodes[walk.at as usize].thread, forward.nodes[walk.at as usize].symbol);
        if walks.len() > 1 {
            walks.sort_unstable_by_key(key);
        }
        for group in walks.chunk_by(|a, b| key(a) == key(b)) {
            let (thread, symbol) = key(&group[0]);
            let mut node = Node::new(parent, symbol, thread);
            let mut callers = Vec::with_capacity(group.len());
            for walk in group {
                node.add_total(walk.weight, walk.samples);
                match forward.nodes[walk.at as usize].parent {
                    NONE => node.add_self(walk.weight, walk.samples),
                    caller => callers.push(Walk { at: caller, ..*walk }),
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
