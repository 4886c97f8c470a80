//! Transformations of stacks: frames are taken out, merged or renamed, and samples selected, before stacks are folded.
//!
//! Each step sees the stacks that the steps before it have made. The semantics are those of the Firefox Profiler, where it
//! has the step: `docs/reference/stack_filters.md`.

mod tables;

use arrow_array::{RecordBatch, UInt32Array};
use rustc_hash::FxHashMap;

use super::columns::{Keys, column, numbers};
use super::{CallSymbols, StackError, StackTables};
use crate::NONE;

/// A step that depends on a set of symbols.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackStep {
    /// Only samples with one of them on their stack.
    Only,
    /// Only samples with none of them on their stack.
    Drop,
    /// Their frames leave every stack; what was measured in them is their caller's. A sample without any other frame is
    /// dropped.
    Hide,
    /// Stacks begin at the outermost of them; samples without one are dropped.
    Root,
    /// Stacks end at the outermost of them: what it called is its own.
    Leaf,
    /// Only samples whose innermost frame is one of them.
    Innermost,
}

impl StackStep {
    /// All steps with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("only", Self::Only),
        ("drop", Self::Drop),
        ("hide", Self::Hide),
        ("root", Self::Root),
        ("leaf", Self::Leaf),
        ("innermost", Self::Innermost),
    ];

    /// Whether samples without a stack remain.
    fn keeps_samples_without_stack(self) -> bool {
        matches!(self, Self::Drop | Self::Hide | Self::Leaf)
    }
}

/// A node of the transformed stacks; a parent precedes its children.
#[derive(Clone, Copy, Debug)]
struct StackNode {
    parent: u32,
    /// Number of the frame: a row of `frames`, or one that was added after them.
    frame: u32,
    /// The first row of `stacks` that became this node: no two nodes have the same, and a parent's is less than its children's.
    origin: u32,
}

/// A frame that stands for several.
#[derive(Clone, Debug)]
struct AddedFrame {
    name: String,
    /// The row of `frames` whose module and kind it has.
    like: u32,
}

/// Stacks of a profile on which steps are applied, one after the other.
#[derive(Clone, Debug)]
pub struct StackTransform {
    tables: StackTables,
    symbols: CallSymbols,
    stack_keys: Keys,
    nodes: Vec<StackNode>,
    /// Node of each row of `stacks`; [`NONE`] where all its frames were taken out.
    node_of_row: Vec<u32>,
    /// Whether a row of `stacks` has samples that are not dropped.
    live: Vec<bool>,
    /// Whether the innermost frame of a row of `stacks` was taken out: what was measured in it is its caller's.
    merged: Vec<bool>,
    /// Whether samples without a stack remain.
    keeps_no_stack: bool,
    added: Vec<AddedFrame>,
}

impl StackTransform {
    /// The stacks of some tables, of which those with samples count.
    ///
    /// # Errors
    /// As [`super::call_tree`].
    pub fn new(tables: StackTables) -> Result<Self, StackError> {
        let symbols = CallSymbols::of(&tables, false)?;
        let stack_keys = Keys::of(&numbers(&tables.stacks, "stacks", "stack_id")?);
        let parents = numbers(&tables.stacks, "stacks", "parent_stack_id")?;
        let frame_ids = numbers(&tables.stacks, "stacks", "frame_id")?;
        let mut nodes = Vec::with_capacity(parents.len());
        for (row, (&parent_key, &frame_key)) in parents.iter().zip(&frame_ids).enumerate() {
            let parent = if parent_key == NONE { NONE } else { stack_keys.row(parent_key) };
            if parent_key != NONE && parent as usize >= row {
                let key = parent_key;
                return Err(StackError::Reference { table: "stacks", column: "parent_stack_id", key });
            }
            let frame = symbols.frame_keys.as_ref().map_or(NONE, |keys| keys.row(frame_key));
            if frame == NONE {
                return Err(StackError::Reference { table: "stacks", column: "frame_id", key: frame_key });
            }
            nodes.push(StackNode { parent, frame, origin: row as u32 });
        }
        let node_of_row = (0..nodes.len() as u32).collect();
        let mut live = vec![false; nodes.len()];
        for batch in &tables.samples {
            let ids: &UInt32Array = column(batch, "samples", "stack_id")?;
            for key in ids.iter().flatten() {
                let row = stack_keys.row(key);
                match live.get_mut(row as usize) {
                    Some(live) => *live = true,
                    None => return Err(StackError::Reference { table: "samples", column: "stack_id", key }),
                }
            }
        }
        let tables = StackTables { samples: Vec::new(), ..tables };
        let merged = vec![false; nodes.len()];
        Ok(Self {
            tables,
            symbols,
            stack_keys,
            nodes,
            node_of_row,
            live,
            merged,
            keeps_no_stack: true,
            added: Vec::new(),
        })
    }

    /// The symbols, by which steps select frames; those that steps added are last.
    #[must_use]
    pub fn symbols(&self) -> &CallSymbols {
        &self.symbols
    }

    /// Applies a step.
    ///
    /// Returns the number of stacks, of those that still have samples, that contain one of the symbols; for
    /// [`StackStep::Innermost`], that end with one.
    pub fn apply(&mut self, step: StackStep, symbols: &[bool]) -> u64 {
        let matches: Vec<bool> = self.nodes.iter().map(|node| self.has(symbols, node.frame)).collect();
        let contains = self.inherited(&matches);
        let found = if step == StackStep::Innermost { &matches } else { &contains };
        let has = |of: &[bool], node: u32| of.get(node as usize).copied().unwrap_or_default();
        let num_found = self.live_nodes().filter(|&node| has(found, node)).count() as u64;
        self.keeps_no_stack &= step.keeps_samples_without_stack();
        match step {
            StackStep::Only => self.retain(|node| has(&contains, node)),
            StackStep::Drop => self.retain(|node| !has(&contains, node)),
            StackStep::Innermost => self.retain(|node| has(&matches, node)),
            StackStep::Hide => {
                self.merge(|node| has(&matches, node));
                self.rebuild(
                    |out, node, frame, parent| {
                        if has(&matches, node) { parent } else { out.child(parent, frame) }
                    },
                );
            }
            StackStep::Root => self.rebuild(|out, node, frame, parent| {
                if parent != NONE || has(&matches, node) { out.child(parent, frame) } else { NONE }
            }),
            StackStep::Leaf => {
                let parents: Vec<u32> = self.nodes.iter().map(|node| node.parent).collect();
                let caller_of = |node: u32| parents.get(node as usize).copied().unwrap_or(NONE);
                self.merge(|node| has(&contains, caller_of(node)));
                self.rebuild(|out, node, frame, parent| {
                    let caller = caller_of(node);
                    if has(&contains, caller) { parent } else { out.child(parent, frame) }
                });
            }
        }
        num_found
    }

    /// Keeps ([`StackStep::Only`]) or drops the samples whose stack begins with the functions of a stack, given by its key.
    ///
    /// Returns the number of such stacks with samples; 0 if no stack matches.
    pub fn apply_to_stack(&mut self, keep: bool, key: u32) -> u64 {
        let first = self.first_id(true).unwrap_or(u32::MAX);
        let row = self.stack_keys.row(if key >= first { key.saturating_sub(first) } else { key });
        let mut path = Vec::new();
        let mut at = self.node_of_row.get(row as usize).copied().unwrap_or(NONE);
        while let Some(node) = self.nodes.get(at as usize) {
            path.push(self.symbol(node.frame));
            at = node.parent;
        }
        path.reverse();
        // By node: number of functions that it has in common with the path; NONE where another precedes them.
        let mut common: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let above = if node.parent == NONE {
                0
            } else {
                common.get(node.parent as usize).copied().unwrap_or(NONE)
            };
            let expected = path.get(above as usize).copied();
            let is_within = above as usize >= path.len() && above != NONE;
            common.push(match expected {
                _ if is_within => above,
                Some(symbol) if symbol == self.symbol(node.frame) => above.saturating_add(1),
                _ => NONE,
            });
        }
        let has = |node: u32| {
            !path.is_empty() && common.get(node as usize).is_some_and(|&common| common as usize == path.len())
        };
        let num_found = self.live_nodes().filter(|&node| has(node)).count() as u64;
        self.keeps_no_stack &= !keep;
        self.retain(|node| has(node) == keep);
        num_found
    }

    /// Cuts stacks back where a function is entered that is on them already: each is on a stack once, with the line and
    /// address of its innermost frame. Frames without a name remain.
    ///
    /// Returns the number of stacks with samples that contain a recursive call.
    pub fn collapse_recursion(&mut self) -> u64 {
        let groups: Vec<u32> = self.nodes.iter().map(|node| self.group(node.frame)).collect();
        // By new node: its group, and the nearest node at or above it that has one.
        let mut of_node: Vec<(u32, u32)> = Vec::new();
        let mut recursive = vec![false; self.nodes.len()];
        let parents: Vec<u32> = self.nodes.iter().map(|node| node.parent).collect();
        let before: Vec<u32> = self.live_nodes().collect();
        self.rebuild(|out, node, frame, parent| {
            let group = groups.get(node as usize).copied().unwrap_or(NONE);
            let caller = parents.get(node as usize).copied().unwrap_or(NONE);
            let mut is_recursive = recursive.get(caller as usize).copied().unwrap_or_default();
            let mut on = parent;
            let mut at = parent;
            while group != NONE && at != NONE {
                let Some(&(above, next)) = of_node.get(at as usize) else { break };
                let beyond = out.nodes.get(at as usize).map_or(NONE, |node| node.parent);
                if above == group {
                    on = beyond;
                    is_recursive = true;
                    break;
                }
                at = next;
            }
            if let Some(mark) = recursive.get_mut(node as usize) {
                *mark = is_recursive;
            }
            let made = out.child(on, frame);
            if made as usize == of_node.len() {
                // The next node above it with a group: unnamed frames are not searched.
                let next = match of_node.get(on as usize) {
                    Some(&(NONE, next)) => next,
                    _ => on,
                };
                of_node.push((group, next));
            }
            made
        });
        let is_recursive = |node: u32| recursive.get(node as usize).copied().unwrap_or_default();
        before.into_iter().filter(|&node| is_recursive(node)).count() as u64
    }

    /// Makes one frame of consecutive frames of a group; `groups` has the group of each symbol, or `u32::MAX`, and
    /// `names` the name of each group.
    ///
    /// Returns the number of stacks with samples that contain a frame of a group.
    pub fn collapse(&mut self, groups: &[u32], names: &[String]) -> u64 {
        let group_of = |of: &Self, frame: u32| groups.get(of.symbol(frame) as usize).copied().unwrap_or(NONE);
        let of_node: Vec<u32> = self.nodes.iter().map(|node| group_of(self, node.frame)).collect();
        let is_grouped: Vec<bool> = of_node.iter().map(|group| (*group as usize) < names.len()).collect();
        let contains = self.inherited(&is_grouped);
        let has = |node: u32| contains.get(node as usize).copied().unwrap_or_default();
        let num_found = self.live_nodes().filter(|&node| has(node)).count() as u64;
        let mut frames = vec![NONE; names.len()];
        for (node, &group) in self.nodes.iter().zip(&of_node) {
            if let (Some(frame), Some(name)) = (frames.get_mut(group as usize), names.get(group as usize))
                && *frame == NONE
            {
                let like = self.original(node.frame);
                let symbol = self.symbols.of_frame.get(like as usize).copied().unwrap_or(NONE);
                *frame = self.num_frames().saturating_add(self.added.len() as u32);
                self.added.push(AddedFrame { name: name.clone(), like });
                self.symbols.add(name, symbol);
            }
        }
        let parents: Vec<u32> = self.nodes.iter().map(|node| node.parent).collect();
        self.merge(|node| {
            let group_at = |node: u32| {
                of_node.get(node as usize).copied().filter(|group| (*group as usize) < names.len())
            };
            let caller = parents.get(node as usize).copied().unwrap_or(NONE);
            group_at(node).is_some() && group_at(node) == group_at(caller)
        });
        self.rebuild(|out, node, frame, parent| {
            let group = of_node.get(node as usize).copied().unwrap_or(NONE);
            let Some(&merged) = frames.get(group as usize) else { return out.child(parent, frame) };
            let continues = out.nodes.get(parent as usize).is_some_and(|above| above.frame == merged);
            if continues { parent } else { out.child(parent, merged) }
        });
        num_found
    }

    /// The keys of new stacks by the rows of the original ones.
    ///
    /// # Errors
    /// When a key of the original cannot be read.
    pub fn ids(&self, appended: bool) -> Result<StackIds, StackError> {
        let ids = self.new_ids(appended)?;
        let rows = self.node_of_row.iter().zip(&self.live);
        let id = |(&node, &live): (&u32, &bool)| {
            if live { ids.get(node as usize).copied().unwrap_or(NONE) } else { NONE }
        };
        Ok(StackIds { of_row: rows.map(id).collect() })
    }

    /// Key of each node among those that samples are in; [`NONE`] for others.
    fn new_ids(&self, appended: bool) -> Result<Vec<u32>, StackError> {
        let first = self.first_id(appended)?;
        let keys = numbers(&self.tables.stacks, "stacks", "stack_id")?;
        let mut used = vec![false; self.nodes.len()];
        for node in self.live_nodes() {
            if let Some(used) = used.get_mut(node as usize) {
                *used = true;
            }
        }
        // Parents precede their children.
        for number in (0..self.nodes.len()).rev() {
            if used.get(number) == Some(&true) {
                let parent = self.nodes.get(number).map_or(NONE, |node| node.parent);
                if let Some(parent) = used.get_mut(parent as usize) {
                    *parent = true;
                }
            }
        }
        let id = |(used, node): (bool, &StackNode)| {
            if used {
                keys.get(node.origin as usize).map_or(NONE, |key| key.saturating_add(first))
            } else {
                NONE
            }
        };
        Ok(used.into_iter().zip(&self.nodes).map(id).collect())
    }

    /// The nodes of stacks with samples, once for each such stack.
    fn live_nodes(&self) -> impl Iterator<Item = u32> {
        self.node_of_row.iter().zip(&self.live).filter(|(_, live)| **live).map(|(&node, _)| node)
    }

    /// The first key of new rows of `stacks`.
    fn first_id(&self, appended: bool) -> Result<u32, StackError> {
        if !appended {
            return Ok(0);
        }
        let keys = numbers(&self.tables.stacks, "stacks", "stack_id")?;
        Ok(keys.into_iter().max().map_or(0, |key| key.saturating_add(1)))
    }

    fn first_added_function(&self) -> Result<u32, StackError> {
        let keys = numbers(&self.tables.functions, "functions", "function_id")?;
        Ok(keys.into_iter().max().map_or(0, |key| key.saturating_add(1)))
    }

    /// The key of an added frame.
    fn added_frame_id(&self, frame_ids: &[u32], frame: u32) -> u32 {
        let first = frame_ids.iter().max().map_or(0, |key| key.saturating_add(1));
        first.saturating_add(frame.saturating_sub(self.num_frames()))
    }

    /// Number of rows of `frames`.
    fn num_frames(&self) -> u32 {
        self.tables.frames.iter().map(RecordBatch::num_rows).sum::<usize>() as u32
    }

    /// The row of `frames` that a frame is, or that it was added for.
    fn original(&self, frame: u32) -> u32 {
        match frame.checked_sub(self.num_frames()) {
            Some(added) => self.added.get(added as usize).map_or(NONE, |added| added.like),
            None => frame,
        }
    }

    fn symbol(&self, frame: u32) -> u32 {
        let row = match frame.checked_sub(self.num_frames()) {
            // After the rows of `frames` is the symbol of samples without a stack.
            Some(_) => frame.saturating_add(1),
            None => frame,
        };
        self.symbols.of_frame.get(row as usize).copied().unwrap_or(NONE)
    }

    /// The function of a frame, all tiers together; [`NONE`] where it has no name.
    fn group(&self, frame: u32) -> u32 {
        let symbol = self.symbols.symbols.get(self.symbol(frame) as usize);
        symbol.filter(|symbol| symbol.unnamed_because == NONE).map_or(NONE, |symbol| symbol.group)
    }

    fn has(&self, symbols: &[bool], frame: u32) -> bool {
        symbols.get(self.symbol(frame) as usize).copied().unwrap_or_default()
    }

    /// Whether a node or one above it is marked.
    fn inherited(&self, marks: &[bool]) -> Vec<bool> {
        let mut out: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for (node, mark) in self.nodes.iter().zip(marks) {
            let above = out.get(node.parent as usize).copied().unwrap_or_default();
            out.push(*mark || above);
        }
        out
    }

    /// Drops samples of the nodes that do not satisfy a condition.
    fn retain(&mut self, keeps: impl Fn(u32) -> bool) {
        for (node, live) in self.node_of_row.iter().zip(&mut self.live) {
            *live = *live && keeps(*node);
        }
    }

    /// Marks the rows of `stacks` whose innermost frame a step takes out.
    fn merge(&mut self, takes_out: impl Fn(u32) -> bool) {
        for (node, merged) in self.node_of_row.iter().zip(&mut self.merged) {
            *merged = *merged || takes_out(*node);
        }
    }

    /// Makes new nodes: `make` gets each node, its frame and the new node of its parent, and returns its new node.
    fn rebuild(&mut self, mut make: impl FnMut(&mut NewNodes, u32, u32, u32) -> u32) {
        let mut out = NewNodes::default();
        let mut new_of: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for (number, node) in (0u32..).zip(&self.nodes) {
            let parent = new_of.get(node.parent as usize).copied().unwrap_or(NONE);
            out.origin = node.origin;
            let made = make(&mut out, number, node.frame, parent);
            new_of.push(made);
        }
        for (node, live) in self.node_of_row.iter_mut().zip(&mut self.live) {
            *node = new_of.get(*node as usize).copied().unwrap_or(NONE);
            *live = *live && *node != NONE;
        }
        self.nodes = out.nodes;
    }
}

/// Keys of transformed stacks.
#[derive(Clone, Debug)]
pub struct StackIds {
    of_row: Vec<u32>,
}

/// Nodes that a step makes: one for each frame on a node.
#[derive(Default)]
struct NewNodes {
    /// The origin of a node that is made.
    origin: u32,
    nodes: Vec<StackNode>,
    by_key: FxHashMap<(u32, u32), u32>,
}

impl NewNodes {
    fn child(&mut self, parent: u32, frame: u32) -> u32 {
        let next = self.nodes.len() as u32;
        let number = *self.by_key.entry((parent, frame)).or_insert(next);
        if number == next {
            self.nodes.push(StackNode { parent, frame, origin: self.origin });
        }
        number
    }
}
