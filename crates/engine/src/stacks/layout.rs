//! The order of nodes: preorder, the heaviest first.

use super::tree::{CallNode, CallNodes};
use crate::NONE;

impl CallNodes {
    /// Puts nodes into preorder with the heaviest child first, and leaves out those below a share of the whole.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`starts` has a start for each node and for the root, and one more; it counts `children`"
    )]
    pub(super) fn order(&mut self, min_share: f64) {
        let least = least_weight(self.weight, min_share);
        let ChildrenOfNodes { starts, children } = self.children(least);
        let of = |node: usize| &children[starts[node] as usize..starts[node + 1] as usize];
        let mut ordered: Vec<CallNode> = Vec::with_capacity(children.len());
        // Nodes to emit with the new number of their parent; roots are the children of the node past the last.
        let mut open: Vec<(u32, u32)> = of(self.nodes.len()).iter().rev().map(|&root| (root, NONE)).collect();
        while let Some((node, parent)) = open.pop() {
            let number = ordered.len() as u32;
            ordered.push(CallNode { parent, ..self.nodes[node as usize] });
            open.extend(of(node as usize).iter().rev().map(|&child| (child, number)));
        }
        self.nodes = ordered;
    }

    /// Sorts the nodes of at least a weight by parent.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "a slot is the number of a node or `root`; `starts` has two more, and ends with the number of children"
    )]
    fn children(&self, least: u64) -> ChildrenOfNodes {
        let root = self.nodes.len();
        let slot = |node: &CallNode| if node.parent == NONE { root } else { node.parent as usize };
        let mut starts = vec![0u32; root + 2];
        for node in self.nodes.iter().filter(|node| node.total_weight >= least) {
            starts[slot(node) + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut children = vec![0u32; starts[root + 1] as usize];
        for (number, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.total_weight >= least) {
            let at = &mut next[slot(node)];
            children[*at as usize] = number as u32;
            *at += 1;
        }
        let weight = |&child: &u32| {
            let node = &self.nodes[child as usize];
            (std::cmp::Reverse(node.total_weight), node.thread, node.symbol)
        };
        for node in 0..=root {
            children[starts[node] as usize..starts[node + 1] as usize].sort_unstable_by_key(weight);
        }
        ChildrenOfNodes { starts, children }
    }
}

/// The children of node `n` are `children[starts[n]..starts[n + 1]]`.
struct ChildrenOfNodes {
    starts: Vec<u32>,
    children: Vec<u32>,
}

/// The weight that is this share of the whole. NaN leaves nothing out.
pub fn least_weight(whole: u64, share: f64) -> u64 {
    (whole as f64 * share.clamp(0.0, 1.0)) as u64
}
