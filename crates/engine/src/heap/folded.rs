//! A shot as stacks, for flame graphs: on a root lies what it keeps alive, on each object what that alone keeps alive.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use perfuse_tables::{frames, functions, samples, stacks};

use super::{Heap, NONE};

/// What lies where no single root or object keeps an object alive.
const SHARED: &str = "[several ways]";
const UNREACHABLE: &str = "[kept by no root]";
const ENTERED: &str = "[nothing refers to it]";
const UNKNOWN: &str = "[never described]";

/// A shot in the tables of samples: a stack a way down the tree of dominators by type, a sample a stack, weighing bytes.
#[derive(Debug)]
pub struct Folded {
    /// Types and roots, as if they were functions.
    pub functions: RecordBatch,
    /// One a function.
    pub frames: RecordBatch,
    /// Ways down the tree; an object below another of its type is counted with that.
    pub stacks: RecordBatch,
    /// Own sizes of the objects of each.
    pub samples: RecordBatch,
}

#[derive(Default)]
struct Nodes {
    /// Node below each, by the function on it.
    known: HashMap<(u32, u32), u32>,
    /// Node below it, function, depth, bytes.
    list: Vec<(u32, u32, u32, u64)>,
}

impl Nodes {
    fn on(&mut self, below: u32, function: u32) -> u32 {
        let next = self.list.len() as u32;
        let depth = self.list.get(below as usize).map_or(0, |(_, _, depth, _)| depth + 1);
        let node = *self.known.entry((below, function)).or_insert(next);
        if node == next {
            self.list.push((below, function, depth, 0));
        }
        node
    }
}

#[derive(Default)]
struct Names {
    known: HashMap<Box<str>, u32>,
    list: Vec<Box<str>>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.known.get(name) {
            return number;
        }
        let number = self.list.len() as u32;
        self.known.insert(name.into(), number);
        self.list.push(name.into());
        number
    }
}

impl Heap {
    /// Folds it by type. `types` are their names.
    pub fn folded(&self, types: &HashMap<u32, String>) -> Folded {
        let type_name = |of: Option<u32>| of.and_then(|of| types.get(&of)).map_or(UNKNOWN, String::as_str);
        let mut names = Names::default();
        let classes: Vec<_> = self.objects.types().iter().map(|of| names.number(type_name(*of))).collect();
        let mut kept = HashMap::new();
        for root in self.roots.list() {
            kept.entry(root.object).or_insert(root);
        }
        let mut nodes = Nodes::default();
        let tree = self.tree();
        // The node of the innermost object of each class on the way.
        let mut of_class = vec![NONE; classes.len()];
        for top in [0, self.walk.rest] {
            for &number in tree.below(top) {
                let object = self.walk.objects[number as usize];
                let begin = match kept.get(&object) {
                    Some(root) => match root.owner_type_id {
                        Some(of) => names.number(&format!("[static field of {}]", type_name(Some(of)))),
                        None => names.number(&format!("[{}]", self.roots.kind(root).replace('_', " "))),
                    },
                    None if top == 0 => names.number(SHARED),
                    None => names.number(if self.has_roots() { UNREACHABLE } else { ENTERED }),
                };
                let below = nodes.on(NONE, begin);
                self.pile(&mut nodes, &classes, &mut of_class, below, number);
            }
        }
        tables(&names, &nodes)
    }

    /// Puts an object and all below it on a node.
    fn pile(&self, nodes: &mut Nodes, classes: &[u32], of_class: &mut [u32], on: u32, number: u32) {
        let tree = self.tree();
        let mut enter = |number: u32, on: u32, of_class: &mut [u32]| {
            let object = self.walk.objects[number as usize];
            let class = self.objects.class(object) as usize;
            let before = of_class[class];
            let node = if before == NONE { nodes.on(on, classes[class]) } else { before };
            of_class[class] = node;
            let bytes = &mut nodes.list[node as usize].3;
            *bytes = bytes.saturating_add(self.objects.size(object));
            (node, class, before, tree.below(number).iter())
        };
        let mut open = vec![enter(number, on, of_class)];
        while let Some((node, class, before, rest)) = open.last_mut() {
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

fn tables(names: &Names, nodes: &Nodes) -> Folded {
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
    Folded {
        functions: functions.finish(),
        frames: frames.finish(),
        stacks: stacks.finish(),
        samples: samples.finish(),
    }
}
