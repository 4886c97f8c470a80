//! The open calls of a thread at an event. A log that records calls has no backtraces: the stack of an event is that of the
//! calls which its thread has entered and not left.
//!
//! Buffers are decoded in parallel, and each needs the open calls at its start. So each is first reduced to what it does to
//! the calls that are open before it, and the results are applied one after the other. A buffer's start is a path in a tree.
//! Enters and leaves mean what they mean in the engine's call tree.

mod entered_calls;
mod paths;
mod steps;

use perfuse_workers::{in_call, install};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::consts::{EventByte, KindSet};
use crate::named_log::NamedLog;
use crate::names::LogNames;
use crate::reader::{EventBuffer, file_range};
use crate::records::Event;
use crate::stacks::tree::NO_CALLER;
use crate::survey::{LogSurvey, events};

use entered_calls::EnteredCalls;
pub use paths::KnownPaths;
use paths::{NO_PATH, OpenPaths};
use steps::{CallStep, read_buffer, reduce};

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
/// Enters and leaves.
pub const CALLS: [EventByte; 3] =
    [EventByte::METHOD_ENTER, EventByte::METHOD_LEAVE, EventByte::METHOD_EXC_LEAVE];

/// The events of a log that have the stack of the open calls: none where it has no calls.
#[must_use]
pub fn kinds(survey: &LogSurvey) -> KindSet {
    let mut kinds = KindSet::default();
    if CALLS.into_iter().any(|byte| survey.count(byte) > 0) {
        WITHOUT_BACKTRACE.into_iter().filter(|byte| survey.count(*byte) > 0).for_each(|byte| kinds.add(byte));
    }
    kinds
}

/// What is known of a buffer before it is decoded.
#[derive(Clone, Copy, Debug)]
struct OpenAtStart {
    /// Path of the calls that are open at its start.
    path: u32,
    /// Index in `outer_leaves` of its first.
    first_leave: usize,
}

/// The open calls at the start of each buffer.
#[derive(Debug, Default)]
pub struct OpenCallsByBuffer {
    paths: OpenPaths,
    buffers: Vec<OpenAtStart>,
    /// Paths after leaves that no call of their buffer matches, in file order.
    outer_leaves: Vec<u32>,
}

impl OpenCallsByBuffer {
    /// Of all buffers of a log.
    #[must_use]
    pub fn new(log: NamedLog<'_>) -> Self {
        let NamedLog { survey, names, .. } = log;
        let tasks = events::tasks(&survey.buffers.list);
        let reduce_task = |(first, buffers): (usize, &[EventBuffer])| {
            let numbered = (first..).zip(buffers);
            let steps = numbered.map(|(number, _)| {
                let has_calls =
                    survey.events.kinds.get(number).is_some_and(|kinds| kinds.meets(KindSet::of(&CALLS)));
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
        let mut threads: FxHashMap<u32, EnteredCalls<u32>> = FxHashMap::default();
        for (buffer, steps) in steps.iter().enumerate() {
            perfuse_stopping::checkpoint();
            let thread = names.threads.of_buffer(buffer);
            let calls = threads.entry(thread).or_insert_with(|| {
                let mut calls = EnteredCalls::default();
                for function in open_first.remove(&thread).unwrap_or_default().into_iter().rev() {
                    calls.push_lost(function, all.paths.add(top(&calls), function, names));
                }
                calls
            });
            all.buffers.push(OpenAtStart { path: top(calls), first_leave: all.outer_leaves.len() });
            for step in steps {
                match *step {
                    CallStep::Enter(function) => {
                        calls.push(function, all.paths.add(top(calls), function, names))
                    }
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

    /// Passes each event of these kinds in a buffer to `each`, with its time or that of the previous timed event, and the calls that
    /// are open.
    pub fn for_each_event<'a>(
        &'a self,
        log: NamedLog<'a>,
        number: usize,
        kinds: KindSet,
        mut each: impl FnMut(u64, &Event<'a>, &mut OpenCallStack<'a>),
    ) {
        let Some(start) = self.buffers.get(number) else { return };
        let mut calls = OpenCallStack {
            paths: &self.paths,
            names: log.names,
            outer: start.path,
            outer_leaves: self.outer_leaves.get(start.first_leave..).unwrap_or_default().iter(),
            inner: EnteredCalls::default(),
        };
        read_buffer(log, number, &mut calls, OpenCallStack::step, |time, event, calls| {
            if kinds.has(event.byte) {
                each(time, event, calls);
            }
        });
    }
}

/// Path of the innermost call.
fn top(calls: &EnteredCalls<u32>) -> u32 {
    calls.last().map_or(NO_PATH, |(_, path)| path)
}

/// Calls whose enters were lost at the start, by thread, innermost first: their leaves have no enter, and come when no other call is
/// open.
type LostCalls = FxHashMap<u32, Vec<u32>>;

/// Stands for a stack that was not looked up yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// A call that began in the buffer, after the last leave that no such call matched.
#[derive(Clone, Copy, Debug)]
struct InnerCall {
    /// Number of these calls up to this one, without calls of the runtime at the end.
    num_own: usize,
    /// Its stack, if it was looked up.
    stack: u32,
}

/// The open calls at an event.
#[derive(Debug)]
pub struct OpenCallStack<'a> {
    paths: &'a OpenPaths,
    names: &'a LogNames,
    /// Path of the calls before those in `inner`.
    outer: u32,
    outer_leaves: std::slice::Iter<'a, u32>,
    inner: EnteredCalls<InnerCall>,
}

impl OpenCallStack<'_> {
    fn step(&mut self, step: CallStep) {
        match step {
            CallStep::Enter(function) => {
                let num = self.inner.calls_mut().len();
                let num_own = if self.names.is_runtime_call(function) {
                    self.inner.last().map_or(0, |(_, call)| call.num_own)
                } else {
                    num.saturating_add(1)
                };
                self.inner.push(function, InnerCall { num_own, stack: UNKNOWN });
            }
            CallStep::Leave(function) => {
                if !self.inner.leave(function) {
                    self.inner.clear();
                    self.outer = self.outer_leaves.next().copied().unwrap_or(NO_PATH);
                }
            }
        }
    }

    /// The stack of the open calls, without calls of the runtime at its end; `None` where no call is open. `on_top` returns the stack
    /// of a function that is called by another stack; `known` has those of paths.
    pub fn stack(&mut self, known: &mut KnownPaths, mut on_top: impl FnMut(u32, u32) -> u32) -> Option<u32> {
        let num_own = self.inner.last().map_or(0, |(_, call)| call.num_own);
        if num_own == 0 {
            let own = self.paths.own(self.outer);
            return Some(self.paths.stack(own, known, &mut on_top)).filter(|stack| *stack != NO_CALLER);
        }
        let calls = self.inner.calls_mut().get_mut(..num_own).unwrap_or_default();
        let num_known =
            calls.iter().rposition(|(_, call)| call.stack != UNKNOWN).map_or(0, |at| at.saturating_add(1));
        let (before, unknown) = calls.split_at_mut_checked(num_known).unwrap_or_default();
        let mut stack = match before.last() {
            Some((_, call)) => call.stack,
            None => self.paths.stack(self.outer, known, &mut on_top),
        };
        for (function, call) in unknown {
            stack = on_top(stack, *function);
            call.stack = stack;
        }
        Some(stack)
    }
}
