//! Calls added up by call path, the base of all figures of calls.
//!
//! A node is a path of one thread. It is looked up when a call begins and stored in the stack as its mark, so that the
//! end of a call is a few additions. Where calls are grouped by processor, so are nodes.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;

use super::events::Event;
use super::selection::{CallGrouping, Options, same_as};
use super::series::{EXCLUDED, EndCounts, SeriesList};
use super::visitor::{CallEntry, Leave, Level, OpenCall, Visitor};
use crate::NONE;

/// Calls of one function with the same calls around them, in one thread.
#[derive(Clone, Copy, Debug)]
pub struct PathNode {
    /// Node of the caller, always less than its own; that of the thread for the outermost calls.
    pub parent: u32,
    /// Function; `u32::MAX` for a thread.
    pub function_id: u32,
    /// Thread or processor, where calls are grouped by it; else `u32::MAX`.
    pub group: u32,
    /// Its series; see [`SeriesList`].
    pub(super) series: u32,
    /// Its series by caller, where requested.
    pub(super) edge: u32,
    /// Number of calls.
    pub num_calls: u64,
    /// Time in them; saturates.
    pub total_ns: u64,
    /// Part of it outside of the calls within them; saturates.
    pub self_ns: u64,
}

impl PathNode {
    #[inline]
    fn has_key(&self, child: NodeKey) -> bool {
        (self.parent, self.function_id, self.group) == (child.parent, child.function_id, child.group)
    }
}

/// Thread and depth of the calls of a node, and the first call.
#[derive(Clone, Copy, Debug)]
pub struct FirstCall {
    pub thread_id: u32,
    pub depth: u32,
    pub first_ns: i64,
    pub source_id: u32,
    pub record_offset: u64,
}

/// A node without a parent: the thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadNode {
    pub thread_id: u32,
    /// In a segment of the events: number of earlier calls that had ended in it by then.
    pub num_left: usize,
}

/// The key of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodeKey {
    parent: u32,
    function_id: u32,
    group: u32,
}

/// Number of nodes that are found without the hash map.
const NUM_RECENT: usize = 1 << 12;

impl NodeKey {
    /// Its slot among the recent nodes.
    #[inline]
    fn slot(self) -> usize {
        let mixed =
            self.parent.wrapping_mul(0x9e37_79b1) ^ self.function_id.wrapping_mul(0x85eb_ca6b) ^ self.group;
        (mixed ^ (mixed >> 15)) as usize % NUM_RECENT
    }
}

impl Hash for NodeKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As two numbers, which is faster than as three.
        state.write_u64(u64::from(self.parent) << 32 | u64::from(self.function_id));
        state.write_u32(self.group);
    }
}

/// Calls by path.
#[derive(Debug)]
pub struct CallPathTree {
    options: Options,
    pub(super) nodes: Vec<PathNode>,
    pub(super) places: Vec<FirstCall>,
    /// Node of each thread.
    threads: Vec<u32>,
    roots: Vec<ThreadNode>,
    /// Number of earlier calls that were left, by thread, in a segment of the events.
    left: FxHashMap<u32, usize>,
    children: FxHashMap<NodeKey, u32>,
    recent: Box<[u32; NUM_RECENT]>,
    pub(super) series: SeriesList,
    pub(super) edges: SeriesList,
    /// By node: durations of calls of which only their sum was recorded.
    pub(super) summed: FxHashMap<u32, u64>,
}

impl CallPathTree {
    /// An empty tree for these options.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        Self {
            options: options.clone(),
            nodes: Vec::new(),
            places: Vec::new(),
            threads: Vec::new(),
            roots: Vec::new(),
            left: FxHashMap::default(),
            children: FxHashMap::default(),
            recent: Box::new([NONE; NUM_RECENT]),
            series: SeriesList::default(),
            edges: SeriesList::default(),
            summed: FxHashMap::default(),
        }
    }

    /// Node of a thread.
    #[inline]
    pub(super) fn thread(&mut self, thread_id: u32) -> u32 {
        match self.threads.get(thread_id as usize) {
            Some(&node) if node != NONE => node,
            _ => self.new_thread(thread_id),
        }
    }

    #[cold]
    fn new_thread(&mut self, thread_id: u32) -> u32 {
        let index = thread_id as usize;
        if index >= self.threads.len() {
            self.threads.resize(index.saturating_add(1), NONE);
        }
        let place = FirstCall { thread_id, depth: 0, first_ns: 0, source_id: 0, record_offset: 0 };
        self.roots
            .push(ThreadNode { thread_id, num_left: self.left.get(&thread_id).copied().unwrap_or_default() });
        let node = self.push(NONE, NONE, NONE, place);
        if let Some(slot) = self.threads.get_mut(index) {
            *slot = node;
        }
        node
    }

    /// Node of a call of a function within the calls of another node.
    #[inline(always)]
    pub(super) fn child(&mut self, parent: u32, function_id: u32, group: u32) -> u32 {
        let child = NodeKey { parent, function_id, group };
        let recent = self.recent.get(child.slot()).copied().unwrap_or(NONE);
        match self.nodes.get(recent as usize) {
            Some(node) if node.has_key(child) => recent,
            _ => self.other_child(child),
        }
    }

    #[inline(never)]
    fn other_child(&mut self, child: NodeKey) -> u32 {
        let next = self.nodes.len() as u32;
        let found = *self.children.entry(child).or_insert(next);
        if found == next {
            self.new_child(child);
        }
        if let Some(recent) = self.recent.get_mut(child.slot()) {
            *recent = found;
        }
        found
    }

    #[cold]
    fn new_child(&mut self, NodeKey { parent, function_id, group }: NodeKey) {
        let (thread_id, depth) =
            self.places.get(parent as usize).map_or((0, 0), |place| (place.thread_id, place.depth));
        let caller_id = self.nodes.get(parent as usize).map_or(NONE, |node| node.function_id);
        let depth = if caller_id == NONE { 0 } else { depth.saturating_add(1) };
        let place = FirstCall { thread_id, depth, first_ns: 0, source_id: 0, record_offset: 0 };
        let index = self.push(parent, function_id, group, place) as usize;
        let excluded = if self.options.has(function_id) { 0 } else { EXCLUDED };
        // Recursive nodes are only known at the end: until then each has its own durations, where these are requested.
        let series = if self.options.recursive_only { SeriesList::new_of } else { SeriesList::of };
        let Some(node) = self.nodes.get_mut(index) else { return };
        node.series = series(&mut self.series, NONE, function_id, group) | excluded;
        if self.options.edges {
            // In a segment of the events, the callers of nodes below a root may differ.
            let series = if caller_id == NONE { SeriesList::new_of } else { series };
            node.edge = series(&mut self.edges, caller_id, function_id, NONE) | excluded;
        }
    }

    fn push(&mut self, parent: u32, function_id: u32, group: u32, place: FirstCall) -> u32 {
        let number = self.nodes.len() as u32;
        self.nodes.push(PathNode {
            parent,
            function_id,
            group,
            series: NONE,
            edge: NONE,
            num_calls: 0,
            total_ns: 0,
            self_ns: 0,
        });
        self.places.push(place);
        number
    }

    #[inline]
    pub(super) fn group(&self, thread_id: u32, cpu: Option<u32>) -> u32 {
        match self.options.by {
            CallGrouping::Function => NONE,
            CallGrouping::Thread => thread_id,
            CallGrouping::Cpu => cpu.unwrap_or(NONE),
        }
    }

    /// All nodes; the node of a thread has no calls.
    #[must_use]
    pub fn nodes(&self) -> &[PathNode] {
        &self.nodes
    }

    /// The roots, in the order of their nodes.
    pub(super) fn roots(&self) -> &[ThreadNode] {
        &self.roots
    }

    /// Adds the figures of another tree; `nodes` contains the node here of each node there.
    pub(super) fn add(&mut self, mut other: Self, nodes: &[u32]) {
        for ((its, its_place), &index) in other.nodes.iter().zip(&other.places).zip(nodes) {
            if its.parent == NONE {
                continue;
            }
            let (Some(node), Some(place)) =
                (self.nodes.get_mut(index as usize), self.places.get_mut(index as usize))
            else {
                continue;
            };
            if node.num_calls == 0 {
                let FirstCall { first_ns, source_id, record_offset, .. } = *its_place;
                *place = FirstCall { first_ns, source_id, record_offset, ..*place };
            }
            node.num_calls = node.num_calls.saturating_add(its.num_calls);
            node.total_ns = node.total_ns.saturating_add(its.total_ns);
            node.self_ns = node.self_ns.saturating_add(its.self_ns);
            self.series.take(node.series, &mut other.series, its.series);
            if node.edge != NONE {
                self.edges.take(node.edge, &mut other.edges, its.edge);
            }
        }
    }

    /// Gives equal functions one key. No calls can be added afterwards.
    pub(super) fn merge_functions(&mut self, same: &[u32]) {
        for node in &mut self.nodes {
            node.function_id = same_as(same, node.function_id);
        }
        for series in self.series.list.iter_mut().chain(&mut self.edges.list) {
            series.caller_id = same_as(same, series.caller_id);
            series.function_id = same_as(same, series.function_id);
        }
    }

    /// Numbers of calls of all functions that did not simply begin and end.
    pub(super) fn counts(&self) -> EndCounts {
        let mut counts = EndCounts::default();
        self.series.list.iter().for_each(|series| counts.merge(series.counts));
        counts
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }
}

impl CallPathTree {
    /// Node of a call that begins.
    #[inline(always)]
    fn node_of(&mut self, entry: &CallEntry, parent: Option<&OpenCall<u32>>) -> u32 {
        let group = self.group(entry.thread_id, entry.cpu);
        let parent = parent.map_or_else(|| self.thread(entry.thread_id), |parent| parent.mark);
        self.child(parent, entry.function_id, group)
    }

    /// Counts a call of a node at its end. `first` is called where it is the first one.
    #[inline(always)]
    fn count(&mut self, node: u32, leave: &Leave, first: impl FnOnce(&mut FirstCall)) {
        let index = node as usize;
        let Some(node) = self.nodes.get_mut(index) else { return };
        if node.num_calls == 0
            && let Some(place) = self.places.get_mut(index)
        {
            first(place);
        }
        node.num_calls = node.num_calls.wrapping_add(1);
        node.total_ns = node.total_ns.saturating_add(leave.duration_ns);
        node.self_ns = node.self_ns.saturating_add(leave.self_ns);
        let PathNode { series, edge, .. } = *node;
        self.series.add(series, leave);
        if edge != NONE {
            self.edges.add(edge, leave);
        }
    }
}

impl Visitor for CallPathTree {
    type CallData = u32;

    #[inline(always)]
    fn enter(&mut self, entry: &CallEntry, parent: Option<&OpenCall<u32>>) -> u32 {
        let node = self.node_of(entry, parent);
        if self.nodes.get(node as usize).is_some_and(|node| node.num_calls == 0)
            && let Some(place) = self.places.get_mut(node as usize)
        {
            // One of them ends before the next begins: this is the first, unless it is outside of the selected time.
            (place.source_id, place.record_offset) = (entry.source_id, entry.record_offset);
        }
        node
    }

    #[inline(always)]
    fn leave(&mut self, call: &OpenCall<u32>, _level: Level, leave: &Leave, _parent: Option<&OpenCall<u32>>) {
        self.count(call.mark, leave, |place| place.first_ns = leave.start_ns);
    }

    #[inline(always)]
    fn leaf(&mut self, entry: &CallEntry, leave: &Leave, parent: Option<&OpenCall<u32>>) {
        let node = self.node_of(entry, parent);
        let CallEntry { source_id, record_offset, start_ns: first_ns, .. } = *entry;
        self.count(node, leave, |place| *place = FirstCall { first_ns, source_id, record_offset, ..*place });
    }

    fn leave_earlier(&mut self, thread_id: u32) {
        let left = self.left.entry(thread_id).or_default();
        *left = left.saturating_add(1);
        if let Some(node) = self.threads.get_mut(thread_id as usize) {
            *node = NONE;
        }
    }

    fn orphan(&mut self, event: &Event, cpu: Option<u32>, _depth: u32, _parent: Option<&OpenCall<u32>>) {
        if self.options.selection.time_ns.as_ref().is_some_and(|range| !range.contains(&event.ts_ns)) {
            return;
        }
        let group = self.group(event.thread_id, cpu);
        let series = self.series.of(NONE, event.function_id, group) as usize;
        if let Some(series) = self.series.list.get_mut(series) {
            series.counts.num_orphans = series.counts.num_orphans.saturating_add(1);
        }
    }
}
