//! The order of nodes: preorder, the heaviest first.

use super::NONE;
use super::tree::{Node, Nodes};

impl Nodes {
    /// Puts nodes into preorder with the heaviest child first, and leaves out those below a share of the whole.
    pub(super) fn order(&mut self, min_share: f64) {
        let least = least_weight(self.weight, min_share);
        let Children { starts, children } = self.children(least);
        let of = |node: usize| &children[starts[node] as usize..starts[node + 1] as usize];
        let mut ordered: Vec<Node> = Vec::with_capacity(children.len());
        // Nodes to emit with the new number of their parent; roots are the children of the node past the last.
        let mut open: Vec<(u32, u32)> = of(self.nodes.len()).iter().rev().map(|&root| (root, NONE)).collect();
        while let Some((node, parent)) = open.pop() {
            let number = ordered.len() as u32;
            ordered.push(Node { parent, ..self.nodes[node as usize] });
            open.extend(of(node as usize).iter().rev().map(|&child| (child, number)));
        }
        self.nodes = ordered;
    }

    fn children(&self, least: u64) -> Children {
        let root = self.nodes.len();
        let slot = |node: &Node| if node.parent == NONE { root } else { node.parent as usize };
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
        Children { starts, children }
    }
}

/// The children of node `n` are `children[starts[n]..starts[n + 1]]`.
struct Children {
    starts: Vec<u32>,
    children: Vec<u32>,
}

/// The weight that is this share of the whole. A share that is no number asks for nothing to be left out.
pub fn least_weight(whole: u64, share: f64) -> u64 {
    (whole as f64 * share.clamp(0.0, 1.0)) as u64
}
