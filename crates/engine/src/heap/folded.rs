//! A heap snapshot as stacks, for flame graphs: above a root the objects it retains, above each object those it dominates.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use perfuse_tables::{frames, functions, samples, stacks};

use super::Heap;
use crate::NONE;

/// Frame of objects that no single root or object retains.
const SHARED: &str = "[several ways]";
const UNREACHABLE: &str = "[kept by no root]";
const ENTERED: &str = "[nothing refers to it]";
const UNKNOWN: &str = "[never described]";

/// A snapshot in the tables of samples: one stack per path of types in the tree of dominators, one sample per stack, with its
/// weight in bytes.
#[derive(Debug)]
pub struct FoldedHeap {
    /// Types and roots, in the form of functions.
    pub functions: RecordBatch,
    /// One per function.
    pub frames: RecordBatch,
    /// Paths in the tree; an object below another of its type is counted with that one.
    pub stacks: RecordBatch,
    /// Sizes of the objects of each stack.
    pub samples: RecordBatch,
}

/// The nodes of the folded tree.
#[derive(Default)]
struct FoldedNodes {
    /// Node by its parent and function.
    by_key: HashMap<(u32, u32), u32>,
    /// Parent, function, depth and bytes of each node.
    list: Vec<(u32, u32, u32, u64)>,
}

impl FoldedNodes {
    /// The node of a function above another node.
    fn child(&mut self, below: u32, function: u32) -> u32 {
        let next = self.list.len() as u32;
        let depth = self.list.get(below as usize).map_or(0, |(_, _, depth, _)| depth.saturating_add(1));
        let node = *self.by_key.entry((below, function)).or_insert(next);
        if node == next {
            self.list.push((below, function, depth, 0));
        }
        node
    }
}

/// Names, each once.
#[derive(Default)]
struct FrameNames {
    numbers: HashMap<Box<str>, u32>,
    list: Vec<Box<str>>,
}

impl FrameNames {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.list.len() as u32;
        self.numbers.insert(name.into(), number);
        self.list.push(name.into());
        number
    }
}

impl Heap {
    /// Folds the snapshot by type; `types` contains their names.
    pub fn folded(&self, types: &HashMap<u32, String>) -> FoldedHeap {
        let type_name = |of: Option<u32>| of.and_then(|of| types.get(&of)).map_or(UNKNOWN, String::as_str);
        let mut names = FrameNames::default();
        let classes: Vec<_> = self.objects.types().iter().map(|of| names.number(type_name(*of))).collect();
        let mut root_of = HashMap::new();
        for root in self.roots.list() {
            root_of.entry(root.object).or_insert(root);
        }
        let mut nodes = FoldedNodes::default();
        let tree = self.tree();
        // The node of the innermost object of each class on the path.
        let mut of_class = vec![NONE; classes.len()];
        for top in [0, self.walk.rest] {
            for &number in tree.below(top) {
                let object = self.walk.object(number);
                let begin = match root_of.get(&object) {
                    Some(root) => match root.owner_type_id {
                        Some(of) => names.number(&format!("[static field of {}]", type_name(Some(of)))),
                        None => names.number(&format!("[{}]", self.roots.kind(root).replace('_', " "))),
                    },
                    None if top == 0 => names.number(SHARED),
                    None => names.number(if self.has_roots() { UNREACHABLE } else { ENTERED }),
                };
                let below = nodes.child(NONE, begin);
                self.add_dominated(&mut nodes, &classes, &mut of_class, below, number);
            }
        }
        tables(&names, &nodes)
    }

    /// Adds an object and all objects that it dominates to a node.
    #[allow(
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "`number` and the numbers below it are of objects, `of_class` and `classes` have an entry for each class, and nodes are numbered by their index"
    )]
    fn add_dominated(
        &self,
        nodes: &mut FoldedNodes,
        classes: &[u32],
        of_class: &mut [u32],
        on: u32,
        number: u32,
    ) {
        let tree = self.tree();
        let mut enter = |number: u32, on: u32, of_class: &mut [u32]| {
            let object = self.walk.objects[number as usize];
            let class = self.objects.class(object) as usize;
            let before = of_class[class];
            let node = if before == NONE { nodes.child(on, classes[class]) } else { before };
            of_class[class] = node;
            let bytes = &mut nodes.list[node as usize].3;
            *bytes = bytes.saturating_add(self.objects.size(object));
            (node, class, before, tree.below(number).iter())
        };
        let mut open = vec![enter(number, on, of_class)];
        while let Some((node, class, before, rest)) = open.last_mut() {
            perfuse_stopping::checkpoint();
            match rest.next() {
                Some(&below) => {
                    let node = *node;
                    open.push(enter(below, node, of_class));
                }
                None => {
                    of_class[*class] = *before;
                    open.pop();
                }
            }
        }
    }
}

fn tables(names: &FrameNames, nodes: &FoldedNodes) -> FoldedHeap {
    let (mut functions, mut frames) = (functions::Builder::new(), frames::Builder::new());
    for (id, name) in (0u32..).zip(&names.list) {
        functions.push(id, None, name, name, None, None, None, None);
        frames.push(id, Some(id), None, None, None, None, None, None, None, 0, "traced", "trace", None);
    }
    let (mut stacks, mut samples) = (stacks::Builder::new(), samples::Builder::new());
    for (id, &(below, function, depth, bytes)) in (0u32..).zip(&nodes.list) {
        stacks.push(id, Some(below).filter(|below| *below != NONE), function, depth);
        if bytes > 0 {
            samples.push(id.into(), 0, 0, None, Some(id), bytes, "bytes", "retained", 0, 0);
        }
    }
    FoldedHeap {
        functions: functions.finish(),
        frames: frames.finish(),
        stacks: stacks.finish(),
        samples: samples.finish(),
    }
}
