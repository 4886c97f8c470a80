//! Calls added up by call path: what every account of calls is made of.
//!
//! A node is a path of one thread. It is looked up when a call begins and handed through the stack as its mark, so that the
//! end of a call is a few additions. Where calls are told apart by processor, so are nodes.

use std::hash::{Hash, Hasher};

use perfuse_tables::{EndReason, StartReason};
use rustc_hash::FxHashMap;

use super::durations::Durations;
use super::events::Event;
use super::statistics::By;
use super::visitor::{Entry, Frame, Leave, Level, Visitor};
use super::{NONE, Options};

/// Calls of one function with the same calls around them, in one thread.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// Node of the caller, always less than its own; that of the thread for the outermost calls.
    pub parent: u32,
    /// Function; `u32::MAX` for a thread.
    pub function_id: u32,
    /// Thread or processor, where calls are told apart by that; else `u32::MAX`.
    pub group: u32,
    /// What it is counted with; see [`SeriesList`].
    pub(super) series: u32,
    /// The same by caller, if that is wanted.
    pub(super) edge: u32,
    /// How many there were.
    pub num_calls: u64,
    /// Time in them; saturates.
    pub total_ns: u64,
    /// Part of it that is in no call within them; saturates.
    pub self_ns: u64,
}

impl Node {
    #[inline]
    fn is(&self, child: Child) -> bool {
        (self.parent, self.function_id, self.group) == (child.parent, child.function_id, child.group)
    }
}

/// Where the calls of a node are, and the first of them.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub thread_id: u32,
    pub depth: u32,
    pub first_ns: i64,
    pub source_id: u32,
    pub record_offset: u64,
}

/// What the calls of a node without a parent are in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub thread_id: u32,
    /// In a segment of the events: how many calls that began before it had ended in it by then.
    pub num_left: usize,
}

/// What a node is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Child {
    parent: u32,
    function_id: u32,
    group: u32,
}

/// How many nodes are found without a look into the map.
const NUM_RECENT: usize = 1 << 12;

impl Child {
    /// Where it is noted as one of the recent.
    #[inline]
    fn slot(self) -> usize {
        let mixed =
            self.parent.wrapping_mul(0x9e37_79b1) ^ self.function_id.wrapping_mul(0x85eb_ca6b) ^ self.group;
        (mixed ^ (mixed >> 15)) as usize % NUM_RECENT
    }
}

impl Hash for Child {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // As two numbers, which is faster than as three.
        state.write_u64(u64::from(self.parent) << 32 | u64::from(self.function_id));
        state.write_u32(self.group);
    }
}

/// Calls whose figures are told together.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    pub caller_id: u32,
    pub function_id: u32,
    pub group: u32,
    pub counts: Counts,
}

/// How many calls did not simply begin and end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Left without an exit, by an exception or `longjmp`.
    pub num_unwound: u64,
    /// Ended by jumping into the next function.
    pub num_tail_calls: u64,
    /// Still open at the end of the recording, or of the selected time.
    pub num_truncated: u64,
    /// Already open at its start.
    pub num_lost: u64,
    /// Exits in the middle of other calls that belong to no entry: not calls.
    pub num_orphans: u64,
}

impl Counts {
    fn add(&mut self, leave: &Leave) {
        match leave.reason {
            EndReason::Exit => {}
            EndReason::TailCall => self.num_tail_calls += 1,
            EndReason::Unwound => self.num_unwound += 1,
            EndReason::Truncated => self.num_truncated += 1,
        }
        self.num_lost += u64::from(leave.start_reason == StartReason::Lost);
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.num_unwound += other.num_unwound;
        self.num_tail_calls += other.num_tail_calls;
        self.num_truncated += other.num_truncated;
        self.num_lost += other.num_lost;
        self.num_orphans += other.num_orphans;
    }
}

/// Series, and the durations of each. A node has the number of its series, with [`UNWANTED`] added where only the other counts
/// of it are looked at: then there are no durations of that number.
#[derive(Debug, Default)]
pub struct SeriesList {
    pub list: Vec<Series>,
    /// By themselves, because they are needed for every call.
    pub durations: Vec<Durations>,
    known: FxHashMap<(u32, u32, u32), u32>,
}

const UNWANTED: u32 = 1 << 31;

impl SeriesList {
    /// The series of a caller (or none), a function and a group.
    fn of(&mut self, caller_id: u32, function_id: u32, group: u32) -> u32 {
        let next = self.list.len() as u32;
        let found = *self.known.entry((caller_id, function_id, group)).or_insert(next);
        if found == next { self.new_of(caller_id, function_id, group) } else { found }
    }

    fn new_of(&mut self, caller_id: u32, function_id: u32, group: u32) -> u32 {
        self.list.push(Series { caller_id, function_id, group, counts: Counts::default() });
        self.durations.push(Durations::default());
        self.list.len() as u32 - 1
    }

    /// Moves what is counted in a series of another list to one of this.
    fn take(&mut self, series: u32, other: &mut Self, its: u32) {
        let (series, its) = ((series & !UNWANTED) as usize, (its & !UNWANTED) as usize);
        self.list[series].counts.merge(std::mem::take(&mut other.list[its].counts));
        self.durations[series].append(std::mem::take(&mut other.durations[its]));
    }

    /// A call of a series ends.
    #[inline(always)]
    fn add(&mut self, series: u32, leave: &Leave) {
        let was_begun = leave.start_reason == StartReason::Entry;
        if !(was_begun && leave.reason == EndReason::Exit)
            && let Some(series) = self.list.get_mut((series & !UNWANTED) as usize)
        {
            series.counts.add(leave);
        }
        // How long a call took is only known of one that was seen whole.
        if was_begun
            && leave.reason != EndReason::Truncated
            && let Some(durations) = self.durations.get_mut(series as usize)
        {
            durations.push(leave.duration_ns);
        }
    }
}

/// Calls by path.
#[derive(Debug)]
pub struct Tree {
    options: Options,
    pub(super) nodes: Vec<Node>,
    pub(super) places: Vec<Place>,
    /// Node of each thread.
    threads: Vec<u32>,
    roots: Vec<Root>,
    /// How many calls of before were left, by thread, in a segment of the events.
    left: FxHashMap<u32, usize>,
    children: FxHashMap<Child, u32>,
    recent: Box<[u32; NUM_RECENT]>,
    pub(super) series: SeriesList,
    pub(super) edges: SeriesList,
}

impl Tree {
    /// No calls yet; of the options, those of figures count.
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
            self.threads.resize(index + 1, NONE);
        }
        let place = Place { thread_id, depth: 0, first_ns: 0, source_id: 0, record_offset: 0 };
        self.roots.push(Root { thread_id, num_left: self.left.get(&thread_id).copied().unwrap_or_default() });
        self.threads[index] = self.push(NONE, NONE, NONE, place);
        self.threads[index]
    }

    /// Node of a call of a function within the calls of another node.
    #[inline(always)]
    pub(super) fn child(&mut self, parent: u32, function_id: u32, group: u32) -> u32 {
        let child = Child { parent, function_id, group };
        let known = self.recent[child.slot()];
        match self.nodes.get(known as usize) {
            Some(node) if node.is(child) => known,
            _ => self.other_child(child),
        }
    }

    #[inline(never)]
    fn other_child(&mut self, child: Child) -> u32 {
        let next = self.nodes.len() as u32;
        let found = *self.children.entry(child).or_insert(next);
        if found == next {
            self.new_child(child);
        }
        self.recent[child.slot()] = found;
        found
    }

    #[cold]
    fn new_child(&mut self, Child { parent, function_id, group }: Child) {
        let Place { thread_id, depth, .. } = self.places[parent as usize];
        let is_outermost = self.nodes[parent as usize].function_id == NONE;
        let depth = if is_outermost { 0 } else { depth + 1 };
        let place = Place { thread_id, depth, first_ns: 0, source_id: 0, record_offset: 0 };
        let node = self.push(parent, function_id, group, place) as usize;
        let unwanted = if self.options.has(function_id) { 0 } else { UNWANTED };
        // Which nodes are recursive is only known in the end: until then each has its own durations, where that counts.
        let series = if self.options.recursive_only { SeriesList::new_of } else { SeriesList::of };
        self.nodes[node].series = series(&mut self.series, NONE, function_id, group) | unwanted;
        if self.options.edges {
            let caller_id = self.nodes[parent as usize].function_id;
            // In a segment of the events, who calls what is below a root may be another one for each.
            let series = if caller_id == NONE { SeriesList::new_of } else { series };
            self.nodes[node].edge = series(&mut self.edges, caller_id, function_id, NONE) | unwanted;
        }
    }

    fn push(&mut self, parent: u32, function_id: u32, group: u32, place: Place) -> u32 {
        self.nodes.push(Node {
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
        self.nodes.len() as u32 - 1
    }

    #[inline]
    pub(super) fn group(&self, thread_id: u32, cpu: Option<u32>) -> u32 {
        match self.options.by {
            By::Function => NONE,
            By::Thread => thread_id,
            By::Cpu => cpu.unwrap_or(NONE),
        }
    }

    /// Every node; that of a thread stands for no calls.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Of each node without a parent, in their order.
    pub(super) fn roots(&self) -> &[Root] {
        &self.roots
    }

    /// Adds the figures of another tree; `nodes` has the node here of each one there.
    pub(super) fn add(&mut self, mut other: Self, nodes: &[u32]) {
        for ((its, its_place), &index) in other.nodes.iter().zip(&other.places).zip(nodes) {
            if its.parent == NONE {
                continue;
            }
            let (node, place) = (&mut self.nodes[index as usize], &mut self.places[index as usize]);
            if node.num_calls == 0 {
                let Place { first_ns, source_id, record_offset, .. } = *its_place;
                *place = Place { first_ns, source_id, record_offset, ..*place };
            }
            node.num_calls += its.num_calls;
            node.total_ns = node.total_ns.saturating_add(its.total_ns);
            node.self_ns = node.self_ns.saturating_add(its.self_ns);
            self.series.take(node.series, &mut other.series, its.series);
            if node.edge != NONE {
                self.edges.take(node.edge, &mut other.edges, its.edge);
            }
        }
    }

    /// How many calls, of whatever function, did not simply begin and end.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.series.list.iter().for_each(|series| counts.merge(series.counts));
        counts
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }
}

impl Visitor for Tree {
    type Mark = u32;

    #[inline(always)]
    fn enter(&mut self, entry: &Entry, parent: Option<&Frame<u32>>) -> u32 {
        let group = self.group(entry.thread_id, entry.cpu);
        let parent = parent.map_or_else(|| self.thread(entry.thread_id), |parent| parent.mark);
        let node = self.child(parent, entry.function_id, group);
        if self.nodes[node as usize].num_calls == 0 {
            // One of them ends before the next begins: this is the first, unless it is not of the selected time.
            let place = &mut self.places[node as usize];
            (place.source_id, place.record_offset) = (entry.source_id, entry.record_offset);
        }
        node
    }

    #[inline(always)]
    fn leave(&mut self, call: &Frame<u32>, _level: Level, leave: &Leave, _parent: Option<&Frame<u32>>) {
        let index = call.mark as usize;
        let node = &mut self.nodes[index];
        if node.num_calls == 0 {
            self.places[index].first_ns = leave.start_ns;
        }
        node.num_calls += 1;
        node.total_ns = node.total_ns.saturating_add(leave.duration_ns);
        node.self_ns = node.self_ns.saturating_add(leave.self_ns);
        let Node { series, edge, .. } = *node;
        self.series.add(series, leave);
        if edge != NONE {
            self.edges.add(edge, leave);
        }
    }

    fn leave_earlier(&mut self, thread_id: u32) {
        *self.left.entry(thread_id).or_default() += 1;
        if let Some(node) = self.threads.get_mut(thread_id as usize) {
            *node = NONE;
        }
    }

    fn orphan(&mut self, event: &Event, cpu: Option<u32>, _depth: u32, _parent: Option<&Frame<u32>>) {
        if self.options.selection.time_ns.as_ref().is_some_and(|range| !range.contains(&event.ts_ns)) {
            return;
        }
        let group = self.group(event.thread_id, cpu);
        let series = self.series.of(NONE, event.function_id, group) as usize;
        self.series.list[series].counts.num_orphans += 1;
    }
}
