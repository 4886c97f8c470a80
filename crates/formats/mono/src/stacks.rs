//! The distinct stacks of a log. A backtrace is looked up as a whole, by its method addresses as stored; only a new
//! one is resolved to frames.

mod code;
mod tree;

use rayon::prelude::*;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher;

pub use self::code::CodeRanges;
pub use self::tree::{Frame, Tree};
use super::consts::{EventByte, KindSet};
use super::names::Names;
use super::recording::Shared;
use super::records::{Body, Event};
use super::survey;

/// Events with a stack.
pub const WITH_STACK: KindSet = KindSet::of(&[EventByte::ALLOC_BT]).or(OF_EVENTS);
/// Events with a stack, except allocations.
const OF_EVENTS: KindSet = KindSet::of(&[EventByte::SAMPLE_HIT]).or(OF_HANDLES).or(OF_THROWS).or(OF_LOCKS);
const OF_HANDLES: KindSet =
    KindSet::of(&[EventByte::GC_HANDLE_CREATED_BT, EventByte::GC_HANDLE_DESTROYED_BT]);
const OF_THROWS: KindSet = KindSet::of(&[EventByte::THROW_BT]);
const OF_LOCKS: KindSet = KindSet::of(&[EventByte::MONITOR_BT, EventByte::MONITOR_CONTENTION_BT]);

/// Tables whose stacks are available separately, and the events that have them.
pub const TABLES: [(&str, KindSet); 3] =
    [("exceptions", OF_THROWS), ("lock_events", OF_LOCKS), ("gc_handles", OF_HANDLES)];

/// The distinct stacks of a log.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    /// The frames and the caller of each stack.
    pub tree: Tree,
    /// Backtraces by hash: their range in `words`, and their stack.
    known: FxHashMap<u64, (usize, usize, u32)>,
    /// Method addresses of the backtraces.
    words: Vec<u64>,
}

impl Stacks {
    /// Gathers the stacks of all events except allocations.
    #[must_use]
    pub fn of_events(log: &Shared, names: &Names) -> Self {
        Self::gather(log, names, OF_EVENTS)
    }

    /// Adds the stacks of allocations to `others`, whose indices do not change.
    #[must_use]
    pub fn of_allocations(log: &Shared, names: &Names, others: Self) -> Self {
        others.merge(Self::gather(log, names, KindSet::of(&[EventByte::ALLOC_BT])))
    }

    /// Gathers the stacks of events of these kinds, in parallel.
    #[must_use]
    pub fn gather(log: &Shared, names: &Names, kinds: KindSet) -> Self {
        let found = log.survey();
        let code = CodeRanges::new(found, names);
        let tasks = survey::tasks(&found.buffers.list);
        let parts = tasks.into_par_iter().map(|(first, buffers)| {
            let mut part = Self::default();
            for (_, number) in buffers.iter().zip(first..) {
                if found.kinds.get(number).is_some_and(|held| held.meets(kinds)) {
                    found.each(&log.source, number, kinds, KindSet::all().without(kinds), |at, event| {
                        part.take(event, names, &code, at);
                    });
                }
            }
            part
        });
        parts.reduce(Self::default, Self::merge)
    }

    /// Adds the stack of an event.
    fn take(&mut self, event: &Event<'_>, names: &Names, code: &CodeRanges, time: u64) {
        if event.byte == EventByte::SAMPLE_HIT {
            let frames = sample_frames(event, names, code, sample_time(event, time));
            self.tree.add(&frames);
        } else {
            self.backtrace(&event.frames, names, time);
        }
    }

    /// Adds a backtrace.
    fn backtrace(&mut self, methods: &[u64], names: &Names, time: u64) {
        if methods.is_empty() || self.find(methods).is_some() {
            return;
        }
        let frames: Vec<_> =
            methods.iter().map(|method| Frame::method(names.function(*method, time))).collect();
        let stack = self.tree.add(&frames);
        if methods.iter().all(|method| names.is_constant(*method)) {
            self.remember(methods, stack);
        }
    }

    /// Stores the stack of a backtrace.
    fn remember(&mut self, methods: &[u64], stack: u32) {
        let start = self.words.len();
        self.words.extend_from_slice(methods);
        self.known.insert(hash(methods), (start, self.words.len(), stack));
    }

    /// The stack of a stored backtrace.
    #[inline]
    fn find(&self, methods: &[u64]) -> Option<u32> {
        let (start, end, stack) = *self.known.get(&hash(methods))?;
        (self.words.get(start..end)? == methods).then_some(stack)
    }

    /// Adds the stacks of `other`.
    fn merge(mut self, other: Self) -> Self {
        if self.tree.is_empty() {
            return other;
        }
        let numbers = self.tree.append(&other.tree);
        for (start, end, stack) in other.known.into_values() {
            let methods = other.words.get(start..end).unwrap_or_default();
            if let Some(stack) = numbers.get(stack as usize).filter(|_| self.find(methods).is_none()) {
                self.remember(methods, *stack);
            }
        }
        self
    }

    /// Index of the stack of a backtrace; `None` if it is empty or unknown.
    #[must_use]
    #[inline]
    pub fn of_backtrace(&self, methods: &[u64], names: &Names, time: u64) -> Option<u32> {
        if methods.is_empty() {
            return None;
        }
        self.find(methods).or_else(|| {
            let frames: Vec<_> =
                methods.iter().map(|method| Frame::method(names.function(*method, time))).collect();
            self.tree.find(&frames)
        })
    }
}

#[inline]
fn hash(methods: &[u64]) -> u64 {
    FxBuildHasher.hash_one(methods)
}

/// Time of a sample: its own time stamp until data version 12, the time of the event since.
#[must_use]
pub fn sample_time(event: &Event<'_>, time: u64) -> u64 {
    match event.body {
        Body::SampleHit { stamp, .. } if event.time.is_none() => stamp,
        _ => time,
    }
}

/// Frames of a sample, outermost first: the managed stack, and the innermost native address unless it is in managed
/// code.
#[must_use]
pub fn sample_frames(event: &Event<'_>, names: &Names, code: &CodeRanges, time: u64) -> Vec<Frame> {
    let managed = event.frames.iter().rev().map(|method| Frame::method(names.function(*method, time)));
    let mut frames: Vec<_> = managed.collect();
    let native = |ip: &u64| match code.function(*ip, time) {
        Some(function) => Frame { function: Some(function), address: Some(*ip) },
        None => Frame { function: names.symbol(*ip), address: Some(*ip) },
    };
    if frames.is_empty() {
        return event.addresses.iter().rev().map(native).collect();
    }
    let top = event.addresses.first().filter(|ip| code.function(**ip, time).is_none());
    frames.extend(top.map(native));
    frames
}
