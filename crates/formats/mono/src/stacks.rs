//! The distinct stacks of a log. A backtrace is looked up as a whole, by its method addresses as stored; only a new
//! one is resolved to frames.

pub mod tree;

use std::hash::BuildHasher;

use perfuse_workers::{in_call, install, num_threads};
use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::consts::{EventByte, KindSet};
use crate::decode::backtraces::{KnownBacktraces, Meaning};
use crate::named_log::NamedLog;
use crate::names::LogNames;
use crate::open_calls::{self, KnownPaths, OpenCallsByBuffer};
use crate::ranges::MethodRanges;
use crate::reader::{EventBuffer, file_range};
use crate::records::{Event, EventBody};
use crate::survey::{LogSurvey, events};

pub use crate::stacks::tree::{NO_CALLER, StackFrame, StackTree};

/// Events that have a stack of their own.
const RECORDED: KindSet = KindSet::of(&[
    EventByte::ALLOC_BT,
    EventByte::SAMPLE_HIT,
    EventByte::GC_HANDLE_CREATED_BT,
    EventByte::GC_HANDLE_DESTROYED_BT,
    EventByte::THROW_BT,
    EventByte::MONITOR_BT,
    EventByte::MONITOR_CONTENTION_BT,
]);
/// Allocations.
pub const OF_ALLOCATIONS: KindSet = KindSet::of(&[EventByte::ALLOC, EventByte::ALLOC_BT]);
/// Events that may have a stack, except allocations.
pub const OF_EVENTS: KindSet =
    KindSet::of(&[EventByte::SAMPLE_HIT]).or(OF_HANDLES).or(OF_EXCEPTIONS).or(OF_LOCKS);
const OF_HANDLES: KindSet = KindSet::of(&[
    EventByte::GC_HANDLE_CREATED,
    EventByte::GC_HANDLE_CREATED_BT,
    EventByte::GC_HANDLE_DESTROYED,
    EventByte::GC_HANDLE_DESTROYED_BT,
]);
const OF_EXCEPTIONS: KindSet = KindSet::of(&[EventByte::THROW, EventByte::THROW_BT]);
const OF_LOCKS: KindSet = KindSet::of(&[
    EventByte::MONITOR,
    EventByte::MONITOR_BT,
    EventByte::MONITOR_CONTENTION,
    EventByte::MONITOR_DONE,
    EventByte::MONITOR_FAIL,
    EventByte::MONITOR_CONTENTION_BT,
]);

/// Events of a log with a stack: a recorded one, or that of the open calls.
#[must_use]
pub fn with_stack(survey: &LogSurvey) -> KindSet {
    RECORDED.or(open_calls::kinds(survey))
}

/// Tables whose stacks are available separately, and the events that have them.
pub const TABLES: [(&str, KindSet); 3] =
    [("exceptions", OF_EXCEPTIONS), ("lock_events", OF_LOCKS), ("gc_handles", OF_HANDLES)];

/// Parts of a log for each thread: each part gathers the stacks that occur in it anew, and the last one to end is waited for.
const PARTS_PER_THREAD: usize = 8;

/// The distinct stacks of a log.
#[derive(Clone, Debug, Default)]
pub struct LogStacks {
    /// The frames and the caller of each stack.
    pub tree: StackTree,
    /// Backtraces by hash: their range in `backtraces`, and their stack; [`NO_CALLER`] for those of calls of the runtime only.
    by_hash: FxHashMap<u64, (usize, usize, u32)>,
    /// Method addresses of the backtraces.
    backtraces: Vec<u64>,
}

impl LogStacks {
    /// Gathers the stacks of events of these kinds, in parallel: recorded ones, and those of the open calls if there are.
    #[must_use]
    pub fn gather(log: NamedLog<'_>, kinds: KindSet, open_calls: Option<&OpenCallsByBuffer>) -> Self {
        let recorded = kinds.and(RECORDED);
        let code = MethodRanges::new(log.survey, log.names);
        let with_recorded = Self::of_buffers(log, recorded, |part, (): &mut (), number| {
            let without_backtraces = KindSet::all().without(recorded);
            log.survey.for_each_event(log.source, number, recorded, without_backtraces, |at, event| {
                part.add_event(event, log.names, &code, at);
            });
        });
        with_recorded.with_open_calls(log, kinds, open_calls)
    }

    /// Adds the stacks of allocations, without changing the indices of others.
    #[must_use]
    pub fn with_allocations(self, log: NamedLog<'_>, open_calls: Option<&OpenCallsByBuffer>) -> Self {
        let NamedLog { source, survey, names } = log;
        let recorded = OF_ALLOCATIONS.and(RECORDED);
        let recorded = Self::of_buffers(log, recorded, |part, known: &mut KnownBacktraces<()>, number| {
            let add = |methods: &[u64], time: u64| {
                part.add_backtrace(methods, names, time);
                if names.are_constant(methods) { Meaning::Constant(()) } else { Meaning::AtThisTime(()) }
            };
            survey.for_each_alloc_and_backtrace(source, number, known, add, |_, ()| ());
        });
        self.merge(recorded).with_open_calls(log, OF_ALLOCATIONS, open_calls)
    }

    /// Adds the stacks of those events of these kinds that have the stack of the open calls.
    fn with_open_calls(
        self,
        log: NamedLog<'_>,
        kinds: KindSet,
        open_calls: Option<&OpenCallsByBuffer>,
    ) -> Self {
        let Some(open_calls) = open_calls else { return self };
        let kinds = kinds.and(open_calls::kinds(log.survey));
        self.merge(Self::of_buffers(log, kinds, |part, known: &mut KnownPaths, number| {
            open_calls.for_each_event(log, number, kinds, |_, _, calls| {
                calls.stack(known, |caller, function| part.tree.add_call(caller, function));
            });
        }))
    }

    /// What `add_buffer` adds for each buffer that has events of these kinds, in parallel. It gets what it stored for earlier
    /// buffers, such as backtraces that were added before.
    fn of_buffers<K: Default>(
        log: NamedLog<'_>,
        kinds: KindSet,
        add_buffer: impl Fn(&mut Self, &mut K, usize) + Sync,
    ) -> Self {
        let survey = log.survey;
        let tasks = events::tasks(&survey.buffers.list);
        let gather_part = |tasks: &[(usize, &[EventBuffer])]| {
            let (mut part, mut known) = (Self::default(), K::default());
            for &(first, buffers) in tasks {
                let has_events = |number: &usize| {
                    survey.events.kinds.get(*number).is_some_and(|in_buffer| in_buffer.meets(kinds))
                };
                let numbers = (first..).take(buffers.len());
                let bytes = file_range(buffers.first(), buffers.last());
                numbers.filter(has_events).for_each(|number| add_buffer(&mut part, &mut known, number));
                log.source.release(bytes);
            }
            part
        };
        let tasks_per_part = tasks.len().div_ceil(num_threads().saturating_mul(PARTS_PER_THREAD)).max(1);
        let parts = tasks.par_chunks(tasks_per_part);
        install(|| parts.map(in_call(gather_part)).reduce(Self::default, Self::merge))
    }

    /// Adds the stack of an event.
    fn add_event(&mut self, event: &Event<'_>, names: &LogNames, code: &MethodRanges, time: u64) {
        if event.byte == EventByte::SAMPLE_HIT {
            let frames = sample_frames(event, names, code, sample_time(event, time));
            self.tree.add(&frames);
        } else {
            self.add_backtrace(&event.frames, names, time);
        }
    }

    /// Adds a backtrace.
    fn add_backtrace(&mut self, methods: &[u64], names: &LogNames, time: u64) {
        if methods.is_empty() || self.find_stored(methods).is_some() {
            return;
        }
        let stack = self.tree.add(&backtrace_frames(methods, names, time));
        if names.are_constant(methods) {
            self.store_backtrace(methods, stack);
        }
    }

    /// Stores the stack of a backtrace.
    fn store_backtrace(&mut self, methods: &[u64], stack: u32) {
        let start = self.backtraces.len();
        self.backtraces.extend_from_slice(methods);
        self.by_hash.insert(hash_methods(methods), (start, self.backtraces.len(), stack));
    }

    /// The stack of a stored backtrace.
    #[inline]
    fn find_stored(&self, methods: &[u64]) -> Option<u32> {
        let (start, end, stack) = *self.by_hash.get(&hash_methods(methods))?;
        (self.backtraces.get(start..end)? == methods).then_some(stack)
    }

    /// Adds the stacks of `other`.
    fn merge(mut self, other: Self) -> Self {
        if self.tree.is_empty() {
            return other;
        }
        let numbers = self.tree.append(&other.tree);
        for (start, end, stack) in other.by_hash.into_values() {
            let methods = other.backtraces.get(start..end).unwrap_or_default();
            if self.find_stored(methods).is_none() {
                self.store_backtrace(methods, numbers.get(stack as usize).copied().unwrap_or(NO_CALLER));
            }
        }
        self
    }

    /// Index of the stack of a backtrace; `None` if it is unknown, empty, or has only calls of the runtime.
    #[must_use]
    #[inline]
    pub fn find_backtrace(&self, methods: &[u64], names: &LogNames, time: u64) -> Option<u32> {
        if methods.is_empty() {
            return None;
        }
        match self.find_stored(methods) {
            Some(stack) => Some(stack).filter(|stack| *stack != NO_CALLER),
            None => self.tree.find(&backtrace_frames(methods, names, time)),
        }
    }

    /// The same, and whether it is so at any time.
    #[must_use]
    pub fn meaning_of(&self, methods: &[u64], names: &LogNames, time: u64) -> Meaning<Option<u32>> {
        let stack = self.find_backtrace(methods, names, time);
        if names.are_constant(methods) { Meaning::Constant(stack) } else { Meaning::AtThisTime(stack) }
    }
}

/// The frames of a backtrace, outermost first, without calls of the runtime at its end.
fn backtrace_frames(methods: &[u64], names: &LogNames, time: u64) -> Vec<StackFrame> {
    let own = names.without_runtime_calls(methods, time);
    own.iter().map(|method| StackFrame::method(names.function(*method, time))).collect()
}

/// Hash of a backtrace.
#[inline]
fn hash_methods(methods: &[u64]) -> u64 {
    FxBuildHasher.hash_one(methods)
}

/// Time of a sample: its own time stamp until data version 12, the time of the event since.
#[must_use]
pub fn sample_time(event: &Event<'_>, time: u64) -> u64 {
    match event.body {
        EventBody::SampleHit { timestamp, .. } if event.time.is_none() => timestamp,
        _ => time,
    }
}

/// Frames of a sample, outermost first: the managed stack, and the innermost native address unless it is in managed
/// code.
#[must_use]
pub fn sample_frames(event: &Event<'_>, names: &LogNames, code: &MethodRanges, time: u64) -> Vec<StackFrame> {
    let managed = event.frames.iter().rev().map(|method| StackFrame::method(names.function(*method, time)));
    let mut frames: Vec<_> = managed.collect();
    let native = |ip: &u64| match code.function_at(*ip, time) {
        Some(function) => StackFrame { function: Some(function), address: Some(*ip), is_traced: false },
        None => StackFrame { function: names.symbol(*ip), address: Some(*ip), is_traced: false },
    };
    if frames.is_empty() {
        return event.addresses.iter().rev().map(native).collect();
    }
    let top = event.addresses.first().filter(|ip| code.function_at(**ip, time).is_none());
    frames.extend(top.map(native));
    frames
}
