//! Segments of the events, which are added up at the same time.
//!
//! The calls that are open at the start of a segment are not known at first. Its calls are added below roots that stand for
//! them: one for the calls around the first event, and another after each earlier call that ends in the segment. An exit
//! where no call of the segment is open must be of such an earlier call; it is stored. When all events before the segment are
//! added up, the stored exits are executed, and the nodes below each root are attached to their parent. Only an exit within
//! calls of the segment, of a function that is not among them, may be of an earlier call or of none: then the segment is read
//! again, after those before it.

use std::collections::VecDeque;

use perfuse_tables::CallRows;
use perfuse_tables::access::ColumnError;
use perfuse_workers::{in_call, install, num_threads, part};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::events::Event;
use super::machine::{Calls, EarlierExit, LostEntries};
use super::migrations::ThreadActivities;
use super::selection::Options;
use super::thread::ThreadStack;
use super::tree::CallPathTree;
use super::visitor::{CallEntry, Leave, Level, OpenCall, Visitor};

/// Adds up events in segments that follow each other, about as many at a time as there are threads.
///
/// # Errors
/// [`ColumnError`] when the batches are not of `call_events`.
pub(super) fn visit<B: Iterator<Item: Into<CallRows>> + Send>(
    segments: impl Fn() -> Vec<B>,
    options: &Options,
) -> Result<Accountant, ColumnError> {
    let (first, lost) = pass(&segments, options, LostEntries::default())?;
    if lost.is_empty() {
        return Ok(first);
    }
    drop(first);
    Ok(pass(&segments, options, lost)?.0)
}

fn pass<B: Iterator<Item: Into<CallRows>> + Send>(
    segments: &impl Fn() -> Vec<B>,
    options: &Options,
    lost: LostEntries,
) -> Result<(Accountant, LostEntries), ColumnError> {
    let mut calls = Calls::new(Accountant::new(options), options.selection.clone(), lost);
    let segments_in_turn = segments();
    let threads = num_threads();
    // Few segments are added up all at once, so that threads wait for each other only at the end.
    let are_few = segments_in_turn.len() <= threads.saturating_mul(2);
    let at_once = if are_few { segments_in_turn.len() } else { threads };
    let mut left = segments_in_turn.into_iter().enumerate();
    while let Some((_, next)) = left.next() {
        let later: Vec<_> = left.by_ref().take(at_once.saturating_sub(1)).collect();
        let add_up = |(index, batches)| {
            let mut calls = Calls::segment(Accountant::new(options), options.selection.clone());
            take(&mut calls, batches).map(|()| (index, calls))
        };
        let (first, later) = install(|| {
            rayon::join(
                part(|| take(&mut calls, next)),
                part(|| {
                    later.into_par_iter().with_max_len(1).map(in_call(add_up)).collect::<Result<Vec<_>, _>>()
                }),
            )
        });
        first?;
        for (index, segment) in later? {
            if segment.is_ambiguous() {
                let again = segments().into_iter().nth(index);
                again.into_iter().try_for_each(|batches| take(&mut calls, batches))?;
            } else {
                calls.append(segment);
            }
        }
    }
    Ok(calls.finish())
}

fn take(
    calls: &mut Calls<Accountant>,
    mut batches: impl Iterator<Item: Into<CallRows>>,
) -> Result<(), ColumnError> {
    // An ambiguous segment is read again: the rest of it is not needed.
    batches.try_for_each(|batch| if calls.is_ambiguous() { Ok(()) } else { calls.take(&batch.into()) })
}

impl Calls<Accountant> {
    fn is_ambiguous(&self) -> bool {
        self.before.as_ref().is_some_and(|before| before.is_ambiguous)
    }

    /// Adds a segment of the events after those that were added.
    fn append(&mut self, segment: Self) {
        let Self { visitor: Accountant { tree, threads }, threads: stacks, source_id, before, .. } = segment;
        let stacks: Vec<_> = stacks.into_iter().flatten().collect();
        if stacks.is_empty() {
            return;
        }
        self.enter_source(source_id);
        self.visitor.threads.append(threads);
        for ThreadStack { first: (event, cpu), .. } in &stacks {
            let thread = self.take_thread(event, *cpu);
            self.put_thread(thread);
        }
        let mut exits = before.unwrap_or_default().exits;
        let nodes = self.attach(&tree, &mut exits);
        self.visitor.tree.add(tree, &nodes);
        for segment in stacks {
            let (event, cpu) = &segment.first;
            let mut thread = self.take_thread(event, *cpu);
            self.leave(&mut thread, &mut exits, usize::MAX);
            for call in segment.stack {
                // Every call of a segment has a node in its tree.
                let Some(&mark) = nodes.get(call.mark as usize) else { continue };
                thread.push(OpenCall { mark, ..call });
            }
            thread.last_ns = thread.last_ns.max(segment.last_ns);
            thread.last_offset = segment.last_offset;
            self.put_thread(thread);
        }
    }

    /// Returns the node here of each node of a segment, and ends earlier calls where they end.
    fn attach(&mut self, tree: &CallPathTree, exits: &mut FxHashMap<u32, VecDeque<EarlierExit>>) -> Vec<u32> {
        let mut inner_ns = vec![0u64; tree.nodes().len()];
        for node in tree.nodes() {
            if let Some(inner) = inner_ns.get_mut(node.parent as usize) {
                *inner = inner.saturating_add(node.total_ns);
            }
        }
        let mut roots = tree.roots().iter();
        let mut nodes: Vec<u32> = Vec::with_capacity(tree.nodes().len());
        for (node, inner_ns) in tree.nodes().iter().zip(inner_ns) {
            if let Some(&parent) = nodes.get(node.parent as usize) {
                nodes.push(self.visitor.tree.child(parent, node.function_id, node.group));
                continue;
            }
            let Some(root) = roots.next() else { break };
            let Some(mut thread) = self.threads.get_mut(root.thread_id as usize).and_then(Option::take)
            else {
                break;
            };
            self.leave(&mut thread, exits, root.num_left);
            nodes.push(match thread.stack.last_mut() {
                Some(around) => {
                    around.children_ns = around.children_ns.saturating_add(inner_ns);
                    around.mark
                }
                None => self.visitor.tree.thread(root.thread_id),
            });
            self.put_thread(thread);
        }
        nodes
    }

    /// Executes the first exits of earlier calls, up to `num_left` in all.
    fn leave(
        &mut self,
        thread: &mut ThreadStack<u32>,
        exits: &mut FxHashMap<u32, VecDeque<EarlierExit>>,
        num_left: usize,
    ) {
        let Some(exits) = exits.get_mut(&thread.first.0.thread_id) else { return };
        while exits.front().is_some_and(|exit| exit.index < num_left)
            && let Some(EarlierExit { event, cpu, .. }) = exits.pop_front()
        {
            self.exit(thread, &event, cpu, event.end_reason());
        }
    }
}

/// Adds up calls, and the activity of threads.
#[derive(Debug)]
pub(super) struct Accountant {
    pub tree: CallPathTree,
    pub threads: ThreadActivities,
}

impl Accountant {
    pub fn new(options: &Options) -> Self {
        Self {
            tree: CallPathTree::new(options),
            threads: ThreadActivities::new(options.selection.time_ns.clone()),
        }
    }
}

impl Visitor for Accountant {
    type CallData = u32;

    #[inline(always)]
    fn enter(&mut self, entry: &CallEntry, parent: Option<&OpenCall<u32>>) -> u32 {
        self.tree.enter(entry, parent)
    }

    #[inline(always)]
    fn leave(&mut self, call: &OpenCall<u32>, level: Level, leave: &Leave, parent: Option<&OpenCall<u32>>) {
        self.tree.leave(call, level, leave, parent);
    }

    #[inline(always)]
    fn leaf(&mut self, entry: &CallEntry, leave: &Leave, parent: Option<&OpenCall<u32>>) {
        self.tree.leaf(entry, leave, parent);
    }

    fn orphan(&mut self, event: &Event, cpu: Option<u32>, depth: u32, parent: Option<&OpenCall<u32>>) {
        self.tree.orphan(event, cpu, depth, parent);
    }

    fn leave_earlier(&mut self, thread_id: u32) {
        self.tree.leave_earlier(thread_id);
    }

    fn rows(
        &mut self,
        thread_id: u32,
        cpu: Option<u32>,
        num_rows: usize,
        times: impl DoubleEndedIterator<Item = i64>,
    ) {
        self.threads.rows(thread_id, cpu, num_rows, times);
    }
}
