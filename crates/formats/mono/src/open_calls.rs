//! The open calls of a thread at an event. A log that records calls has no backtraces: the stack of an event is that of the
//! calls which its thread has entered and not left.
//!
//! Buffers are decoded in parallel, and each needs the open calls at its start. So each is first reduced to what it does to
//! the calls that are open before it, and the results are applied one after the other. A buffer's start is a path in a tree.
//! Enters and leaves mean what they mean in the engine's call tree.

mod call_stack;
mod walk;

use perfuse_workers::{in_call, install};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::consts::{EventByte, KindSet};
use crate::log::LogData;
use crate::names::LogNames;
use crate::reader::{EventBuffer, file_range};
use crate::survey::{LogSurvey, events};

use call_stack::CallStack;
pub use walk::KnownPaths;

/// Events that have the stack of the open calls of their thread: those without a backtrace.
const WITHOUT_BACKTRACE: [EventByte; 8] = [
    EventByte::ALLOC,
    EventByte::THROW,
    EventByte::MONITOR,
    EventByte::MONITOR_CONTENTION,
    EventByte::MONITOR_DONE,
    EventByte::MONITOR_FAIL,
    EventByte::GC_HANDLE_CREATED,
    EventByte::GC_HANDLE_DESTROYED,
];
const CALLS: KindSet =
    KindSet::of(&[EventByte::METHOD_ENTER, EventByte::METHOD_LEAVE, EventByte::METHOD_EXC_LEAVE]);

/// The events of a log that have the stack of the open calls: none where it has no calls.
#[must_use]
pub fn kinds(survey: &LogSurvey) -> KindSet {
    let mut kinds = KindSet::default();
    if survey.count(EventByte::METHOD_ENTER) > 0 {
        WITHOUT_BACKTRACE.into_iter().filter(|byte| survey.count(*byte) > 0).for_each(|byte| kinds.add(byte));
    }
    kinds
}

/// Stands for the path of no call.
const NO_PATH: u32 = u32::MAX;

/// An open call, with the one that it is in.
#[derive(Clone, Copy, Debug)]
struct PathNode {
    caller: u32,
    function: u32,
    /// The path without calls of the runtime at its end.
    own: u32,
}

/// What is known of a buffer before it is decoded.
#[derive(Clone, Copy, Debug, Default)]
struct BufferStart {
    path: u32,
    /// Index in `outer_leaves` of its first.
    first_leave: usize,
}

/// The open calls at the start of each buffer.
#[derive(Debug, Default)]
pub struct OpenCalls {
    paths: Vec<PathNode>,
    buffers: Vec<BufferStart>,
    /// Paths after leaves that no call of their buffer matches, in file order.
    outer_leaves: Vec<u32>,
}

impl OpenCalls {
    /// Of all buffers of a log.
    #[must_use]
    pub fn new(log: &LogData) -> Self {
        let (survey, names) = (log.survey(), log.names());
        let tasks = events::tasks(&survey.buffers.list);
        let reduce_task = |(first, buffers): (usize, &[EventBuffer])| {
            let numbered = (first..).zip(buffers);
            let steps = numbered.map(|(number, _)| {
                let has_calls = survey.events.kinds.get(number).is_some_and(|kinds| kinds.meets(CALLS));
                if has_calls { reduce(log, number) } else { Vec::new() }
            });
            let steps: Vec<_> = steps.collect();
            log.source.release(file_range(buffers.first(), buffers.last()));
            steps
        };
        let steps: Vec<_> = install(|| tasks.into_par_iter().map(in_call(reduce_task)).collect());
        let steps: Vec<_> = steps.into_iter().flatten().collect();
        let (open, lost) = Self::apply(&steps, names, LostCalls::default());
        if lost.is_empty() { open } else { Self::apply(&steps, names, lost).0 }
    }

    /// Applies the steps of all buffers, with calls that are open from the start. Returns the calls whose enters were lost.
    fn apply(steps: &[Vec<CallStep>], names: &LogNames, mut open_first: LostCalls) -> (Self, LostCalls) {
        let (mut all, mut lost) = (Self::default(), LostCalls::default());
        let mut threads: FxHashMap<u32, CallStack<u32>> = FxHashMap::default();
        for (buffer, steps) in steps.iter().enumerate() {
            perfuse_stopping::checkpoint();
            let thread = names.threads.of_buffer(buffer);
            let calls = threads.entry(thread).or_insert_with(|| {
                let mut calls = CallStack::default();
                for function in open_first.remove(&thread).unwrap_or_default().into_iter().rev() {
                    calls.push_lost(function, all.add(top(&calls), function, names));
                }
                calls
            });
            all.buffers.push(BufferStart { path: top(calls), first_leave: all.outer_leaves.len() });
            for step in steps {
                match *step {
                    CallStep::Enter(function) => calls.push(function, all.add(top(calls), function, names)),
                    CallStep::Leave(function) => {
                        if calls.is_empty() {
                            lost.entry(thread).or_default().push(function);
                        }
                        calls.leave(function);
                        all.outer_leaves.push(top(calls));
                    }
                }
            }
        }
        (all, lost)
    }

    /// Adds a call within a path; returns its path.
    fn add(&mut self, caller: u32, function: u32, names: &LogNames) -> u32 {
        let path = self.paths.len() as u32;
        let own = if names.is_runtime_call(function) { self.own(caller) } else { path };
        self.paths.push(PathNode { caller, function, own });
        path
    }

    /// A path without calls of the runtime at its end.
    fn own(&self, path: u32) -> u32 {
        self.paths.get(path as usize).map_or(NO_PATH, |node| node.own)
    }
}

/// Path of the innermost call.
fn top(calls: &CallStack<u32>) -> u32 {
    calls.last().map_or(NO_PATH, |(_, path)| path)
}

/// Calls whose enters were lost at the start, by thread, innermost first: their leaves have no enter, and come when no other call is
/// open.
type LostCalls = FxHashMap<u32, Vec<u32>>;

/// What an enter or leave does to the calls that are open before its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStep {
    /// Opens a call of a function.
    Enter(u32),
    /// Ends the nearest open call of a function, and those within.
    Leave(u32),
}

/// The enters and leaves of a buffer without the calls that begin and end in it.
fn reduce(log: &LogData, number: usize) -> Vec<CallStep> {
    let mut reduced = (Vec::new(), CallStack::<()>::default());
    let add = |(steps, inner): &mut (Vec<CallStep>, CallStack<()>), step| match step {
        CallStep::Enter(function) => inner.push(function, ()),
        CallStep::Leave(function) => {
            if !inner.leave(function) {
                steps.extend(inner.take_functions().map(CallStep::Enter));
                steps.push(step);
            }
        }
    };
    walk::read_buffer(log, number, &mut reduced, add, |_, _, _| ());
    let (mut steps, mut inner) = reduced;
    steps.extend(inner.take_functions().map(CallStep::Enter));
    steps
}
