//! Call paths: the call tree of all threads, and the calls and time of each thread in it.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::call_paths;
use rustc_hash::FxHashMap;

use super::statistics::keys;
use super::tree::{CallPathTree, FirstCall, PathNode};
use crate::NONE;

/// A function with the functions that called it, up to the outermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallPath {
    /// Path of the caller, which has a lower number; `u32::MAX` where it is outermost.
    pub parent: u32,
    /// Function.
    pub function_id: u32,
    /// Number of callers.
    pub depth: u32,
}

/// The calls and time of a thread in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathRow {
    /// Number of the path.
    pub path: u32,
    /// Thread.
    pub thread_id: u32,
    /// Number of calls.
    pub num_calls: u64,
    /// Time in them.
    pub total_ns: u64,
    /// Part of it outside of the calls within them.
    pub self_ns: u64,
    /// Start of the first.
    pub first_ns: i64,
    /// File of the first.
    pub source_id: u32,
    /// Offset of its record.
    pub record_offset: u64,
}

/// Every call path, once.
#[derive(Clone, Debug, Default)]
pub struct CallPaths {
    all: Vec<CallPath>,
    numbers: FxHashMap<(u32, u32), u32>,
}

impl CallPaths {
    /// Paths by number; `None` where a parent does not precede its children, or a path occurs twice.
    #[must_use]
    pub fn of(all: Vec<CallPath>) -> Option<Self> {
        let mut numbers = FxHashMap::default();
        for (number, path) in (0u32..).zip(&all) {
            let is_first = numbers.insert((path.parent, path.function_id), number).is_none();
            if !is_first || (path.parent != NONE && path.parent >= number) {
                return None;
            }
        }
        Some(Self { all, numbers })
    }

    /// Adds the paths of a tree; returns the calls and time of its threads in each, by path, then thread.
    pub fn add(&mut self, tree: &CallPathTree) -> Vec<PathRow> {
        rows(tree, |parent, function_id, depth| {
            let next = self.all.len() as u32;
            *self.numbers.entry((parent, function_id)).or_insert_with(|| {
                self.all.push(CallPath { parent, function_id, depth });
                next
            })
        })
    }

    /// The calls and time of the threads of a tree in each path. The tree must be of a selection of the same calls.
    #[must_use]
    pub fn rows(&self, tree: &CallPathTree) -> Vec<PathRow> {
        rows(tree, |parent, function_id, _| self.numbers.get(&(parent, function_id)).copied().unwrap_or(NONE))
    }

    /// All paths, by number.
    #[must_use]
    pub fn all(&self) -> &[CallPath] {
        &self.all
    }

    /// Table `call_paths`. The number of a parent is lower than those of its children.
    #[must_use]
    pub fn batch(&self, rows: &[PathRow]) -> RecordBatch {
        let none = CallPath { parent: NONE, function_id: NONE, depth: 0 };
        let path = |row: &PathRow| self.all.get(row.path as usize).copied().unwrap_or(none);
        let number = |value: fn(&PathRow) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(value)))
        };
        call_paths::batch(vec![
            keys(rows.iter().map(|row| row.path)),
            keys(rows.iter().map(|row| path(row).parent)),
            keys(rows.iter().map(|row| path(row).function_id)),
            Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| path(row).depth))),
            keys(rows.iter().map(|row| row.thread_id)),
            number(|row| row.num_calls),
            number(|row| row.total_ns),
            number(|row| row.self_ns),
            Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.first_ns))),
        ])
    }
}

/// The nodes with calls in the order in which their paths are numbered: that in which they were found, or, of a selected time,
/// that of the first calls in it, which calls outside of it do not change. Parents precede their children.
fn numbering(tree: &CallPathTree, has_calls: &[bool]) -> Vec<usize> {
    let nodes = tree.nodes.iter().zip(has_calls).enumerate();
    let have_calls = nodes.filter(|(_, (node, has_calls))| **has_calls && node.parent != NONE);
    let mut order: Vec<usize> = have_calls.map(|(index, _)| index).collect();
    if tree.options().selection.time_ns.is_none() {
        return order;
    }
    let first = |node: &PathNode, place: &FirstCall| {
        let FirstCall { thread_id, first_ns, source_id, record_offset, .. } = *place;
        (node.num_calls > 0).then_some((first_ns, thread_id, source_id, record_offset))
    };
    let mut firsts: Vec<_> =
        tree.nodes.iter().zip(&tree.places).map(|(node, place)| first(node, place)).collect();
    for (index, node) in tree.nodes.iter().enumerate().rev() {
        let own = firsts.get(index).copied().flatten();
        if let (Some(own), Some(parent)) = (own, firsts.get_mut(node.parent as usize)) {
            *parent = Some(parent.map_or(own, |first| first.min(own)));
        }
    }
    let depth = |index: usize| tree.places.get(index).map_or(0, |place| place.depth);
    order.sort_by_key(|&index| (firsts.get(index).copied().flatten(), depth(index)));
    order
}

/// Rows of a tree, whose paths are numbered by parent, function and depth.
fn rows(tree: &CallPathTree, mut number: impl FnMut(u32, u32, u32) -> u32) -> Vec<PathRow> {
    // Nodes outside of the selected time have no calls, and neither do their children.
    let mut has_calls: Vec<bool> = tree.nodes.iter().map(|node| node.num_calls > 0).collect();
    for (index, node) in tree.nodes.iter().enumerate().rev() {
        if has_calls.get(index) == Some(&true)
            && let Some(parent) = has_calls.get_mut(node.parent as usize)
        {
            *parent = true;
        }
    }
    let mut path_of = vec![NONE; tree.nodes.len()];
    let mut rows = Vec::new();
    for index in numbering(tree, &has_calls) {
        let (Some(node), Some(place)) = (tree.nodes.get(index), tree.places.get(index)) else { continue };
        // Parents precede their children.
        let parent = path_of.get(node.parent as usize).copied().unwrap_or(NONE);
        let path = number(parent, node.function_id, place.depth);
        if let Some(slot) = path_of.get_mut(index) {
            *slot = path;
        }
        if node.num_calls == 0 || path == NONE {
            continue;
        }
        let PathNode { num_calls, total_ns, self_ns, .. } = *node;
        let FirstCall { thread_id, first_ns, source_id, record_offset, .. } = *place;
        rows.push(PathRow {
            path,
            thread_id,
            num_calls,
            total_ns,
            self_ns,
            first_ns,
            source_id,
            record_offset,
        });
    }
    rows.sort_by_key(|row| (row.path, row.thread_id, row.first_ns));
    // Nodes of several processors are one path.
    rows.dedup_by(|row, sum| {
        let is_same = (row.path, row.thread_id) == (sum.path, sum.thread_id);
        if is_same {
            sum.num_calls = sum.num_calls.saturating_add(row.num_calls);
            sum.total_ns = sum.total_ns.saturating_add(row.total_ns);
            sum.self_ns = sum.self_ns.saturating_add(row.self_ns);
        }
        is_same
    });
    rows
}
