//! The distinct stacks of a log. A backtrace is looked up as a whole, by its method addresses as stored; only a new
//! one is resolved to frames.

use std::hash::BuildHasher;

use perfuse_workers::{in_call, install};
use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::consts::{EventByte, KindSet};
use crate::decode::backtraces::{KnownBacktraces, Meaning};
use crate::log::LogData;
use crate::names::LogNames;
use crate::open_calls::{self, KnownPaths};
use crate::ranges::MethodRanges;
use crate::reader::{EventBuffer, file_range};
use crate::records::{Event, EventBody};
use crate::survey::{LogSurvey, events};

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
const OF_EVENTS: KindSet =
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
    /// Gathers the stacks of all events except allocations.
    #[must_use]
    pub fn of_events(log: &LogData) -> Self {
        Self::gather(log, OF_EVENTS)
    }

    /// Adds the stacks of allocations to `others`, whose indices do not change.
    #[must_use]
    pub fn of_allocations(log: &LogData, others: Self) -> Self {
        let (survey, names) = (log.survey(), log.names());
        let with_allocations = Self::of_buffers(
            log,
            OF_ALLOCATIONS.and(RECORDED),
            |part, known: &mut KnownBacktraces<()>, number| {
                let add = |methods: &[u64], time: u64| {
                    part.add_backtrace(methods, names, time);
                    if names.are_constant(methods) { Meaning::Constant(()) } else { Meaning::AtThisTime(()) }
                };
                survey.for_each_alloc_and_backtrace(&log.source, number, known, add, |_, ()| ());
            },
        );
        others.merge(with_allocations).with_open_calls(log, OF_ALLOCATIONS)
    }

    /// Gathers the stacks of events of these kinds, in parallel.
    #[must_use]
    pub fn gather(log: &LogData, kinds: KindSet) -> Self {
        let (survey, names, recorded) = (log.survey(), log.names(), kinds.and(RECORDED));
        let code = MethodRanges::new(survey, names);
        let with_recorded = Self::of_buffers(log, recorded, |part, (): &mut (), number| {
            let without_backtraces = KindSet::all().without(recorded);
            survey.for_each_event(&log.source, number, recorded, without_backtraces, |at, event| {
                part.add_event(event, names, &code, at);
            });
        });
        with_recorded.with_open_calls(log, kinds)
    }

    /// Adds the stacks of those events of these kinds that have the stack of the open calls.
    fn with_open_calls(self, log: &LogData, kinds: KindSet) -> Self {
        let kinds = kinds.and(open_calls::kinds(log.survey()));
        if kinds == KindSet::default() {
            return self;
        }
        let open_calls = log.open_calls();
        self.merge(Self::of_buffers(log, kinds, |part, known: &mut KnownPaths, number| {
            open_calls.for_each_event(log, number, kinds, |_, _, calls| {
                calls.stack(known, |caller, function| part.tree.add_call(caller, function));
            });
        }))
    }

    /// What `add_buffer` adds for each buffer that has events of these kinds, in parallel. It gets what it stored for earlier
    /// buffers, such as backtraces that were added before.
    fn of_buffers<K: Default>(
        log: &LogData,
        kinds: KindSet,
        add_buffer: impl Fn(&mut Self, &mut K, usize) + Sync,
    ) -> Self {
        let survey = log.survey();
        let tasks = events::tasks(&survey.buffers.list);
        let gather_task = |(first, buffers): (usize, &[EventBuffer])| {
            let (mut part, mut known) = (Self::default(), K::default());
            for (_, number) in buffers.iter().zip(first..) {
                if survey.events.kinds.get(number).is_some_and(|kinds_in_buffer| kinds_in_buffer.meets(kinds))
                {
                    add_buffer(&mut part, &mut known, number);
                }
            }
            log.source.release(file_range(buffers.first(), buffers.last()));
            part
        };
        install(|| tasks.into_par_iter().map(in_call(gather_task)).reduce(Self::default, Self::merge))
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

/// A frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackFrame {
    /// Function, if known.
    pub function: Option<u32>,
    /// Address, if sampled.
    pub address: Option<u64>,
    /// Whether it is known from enters and leaves.
    pub is_traced: bool,
}

impl StackFrame {
    /// The frame of a method.
    #[must_use]
    pub fn method(function: u32) -> Self {
        Self { function: Some(function), address: None, is_traced: false }
    }

    /// The frame of an open call.
    fn open_call(function: u32) -> Self {
        Self { is_traced: true, ..Self::method(function) }
    }
}

/// Stands for the caller of an outermost frame.
pub const NO_CALLER: u32 = u32::MAX;

/// Distinct frames, and stacks as a frame on top of the caller's stack.
#[derive(Clone, Debug, Default)]
pub struct StackTree {
    frames: Vec<StackFrame>,
    frame_numbers: FxHashMap<StackFrame, u32>,
    /// Caller's stack and frame of each stack.
    stacks: Vec<(u32, u32)>,
    stack_numbers: FxHashMap<(u32, u32), u32>,
}

impl StackTree {
    /// Whether there are no stacks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }

    /// The distinct frames.
    #[must_use]
    pub fn frames(&self) -> &[StackFrame] {
        &self.frames
    }

    /// Caller's stack and frame of each stack. A caller precedes the stacks on top of it.
    pub fn stacks(&self) -> impl Iterator<Item = (Option<u32>, u32)> {
        self.stacks
            .iter()
            .map(|(caller, frame)| (Some(*caller).filter(|caller| *caller != NO_CALLER), *frame))
    }

    /// Adds a stack of frames, outermost first; returns its index, [`NO_CALLER`] for none.
    pub fn add(&mut self, frames: &[StackFrame]) -> u32 {
        frames.iter().fold(NO_CALLER, |caller, frame| {
            let frame = self.add_frame(*frame);
            self.add_stack(caller, frame)
        })
    }

    /// Adds a stack: an open call of a function, called by another stack. Returns its index.
    fn add_call(&mut self, caller: u32, function: u32) -> u32 {
        let frame = self.add_frame(StackFrame::open_call(function));
        self.add_stack(caller, frame)
    }

    /// Index of a known stack that [`add_call`](Self::add_call) added.
    #[must_use]
    pub fn find_call(&self, caller: u32, function: u32) -> u32 {
        let frame = self.frame_numbers.get(&StackFrame::open_call(function));
        let stack = frame.and_then(|frame| self.stack_numbers.get(&(caller, *frame)));
        stack.copied().unwrap_or(NO_CALLER)
    }

    /// Index of a frame, which is added if new.
    fn add_frame(&mut self, frame: StackFrame) -> u32 {
        *self.frame_numbers.entry(frame).or_insert_with(|| {
            self.frames.push(frame);
            (self.frames.len() as u32).wrapping_sub(1)
        })
    }

    /// Index of a stack, which is added if new.
    fn add_stack(&mut self, caller: u32, frame: u32) -> u32 {
        *self.stack_numbers.entry((caller, frame)).or_insert_with(|| {
            self.stacks.push((caller, frame));
            (self.stacks.len() as u32).wrapping_sub(1)
        })
    }

    /// Index of a known stack.
    #[must_use]
    pub fn find(&self, frames: &[StackFrame]) -> Option<u32> {
        let found = frames.iter().try_fold(NO_CALLER, |caller, frame| {
            let frame = self.frame_numbers.get(frame)?;
            self.stack_numbers.get(&(caller, *frame)).copied()
        });
        found.filter(|stack| *stack != NO_CALLER)
    }

    /// Adds the stacks of `other`; returns their new indices by their old ones.
    pub fn append(&mut self, other: &Self) -> Vec<u32> {
        let frames: Vec<_> = other.frames.iter().map(|frame| self.add_frame(*frame)).collect();
        let mut numbers: Vec<u32> = Vec::with_capacity(other.stacks.len());
        for (caller, frame) in &other.stacks {
            let caller = numbers.get(*caller as usize).copied().unwrap_or(NO_CALLER);
            let frame = frames.get(*frame as usize).copied().unwrap_or(0);
            let number = self.add_stack(caller, frame);
            numbers.push(number);
        }
        numbers
    }
}
