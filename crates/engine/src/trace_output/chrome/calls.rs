//! Calls as events: each is written once something else happens in its thread.
//!
//! A call is one event (`X`) with a time and a length. Where another call of its thread begins or ends in the very moment
//! it ends, viewers that add time and length up may get a sum that is a little off, and nest it wrongly. Such calls are
//! told as two events (`B` and `E`), whose times are the same to them.

use std::ops::Range;

use perfuse_tables::{EndReason, StartReason};

use super::super::arguments::Arguments;
use super::super::{Trace, end_reason};
use super::event::{About, Events};
use crate::calls::{Entry, Event, Frame, Leave, Visitor};

/// Tells of calls as they end.
#[derive(Debug)]
pub struct ChromeCalls {
    events: Events,
    threads: Vec<Thread>,
    time_ns: Option<Range<i64>>,
}

/// A thread, and the calls that ended last in it.
#[derive(Clone, Debug, Default)]
struct Thread {
    arguments: Arguments,
    /// They ended in the same moment, innermost first, each within the next.
    ended: Vec<Ended>,
}

#[derive(Clone, Debug)]
struct Ended {
    function_id: u32,
    start_ns: i64,
    end_ns: i64,
    start_reason: StartReason,
    end_reason: EndReason,
    arguments: Vec<u64>,
}

impl Ended {
    fn about(&self) -> About<'_> {
        let Self { start_reason, end_reason, .. } = *self;
        About { arguments: &self.arguments, start_reason, end_reason }
    }
}

impl ChromeCalls {
    /// No calls yet.
    pub fn new(events: Events, trace: &Trace<'_>) -> Self {
        Self { events, threads: Vec::new(), time_ns: trace.selection.time_ns.clone() }
    }

    /// Where they are written to.
    pub fn events(&mut self) -> &mut Events {
        &mut self.events
    }

    /// Whether there is no use in going on.
    pub fn failed(&self) -> bool {
        self.events.failed()
    }

    /// Tells of the calls that ended last.
    pub fn finish(mut self) -> Events {
        for thread_id in 0..self.threads.len() as u32 {
            self.settle(thread_id, None);
        }
        self.events
    }

    #[inline]
    fn thread(&mut self, thread_id: u32) -> &mut Thread {
        let index = thread_id as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Thread::default);
        }
        &mut self.threads[index]
    }

    /// Writes the calls that ended last, as a call begins, or ends later than they did.
    #[inline]
    fn settle(&mut self, thread_id: u32, next_start_ns: Option<i64>) {
        let Self { events, threads, .. } = self;
        let ended = &mut threads[thread_id as usize].ended;
        match ended.as_slice() {
            [] => return,
            [call] if next_start_ns != Some(call.end_ns) || call.start_ns == call.end_ns => {
                events.complete(thread_id, call.function_id, call.start_ns, call.end_ns, &call.about());
            }
            calls => together(events, thread_id, calls),
        }
        ended.clear();
    }

    fn end(&mut self, thread_id: u32, call: Ended) {
        if self.thread(thread_id).ended.last().is_some_and(|last| last.end_ns != call.end_ns) {
            self.settle(thread_id, None);
        }
        self.threads[thread_id as usize].ended.push(call);
    }
}

/// Writes calls within each other that ended in the same moment, innermost first.
fn together(events: &mut Events, thread_id: u32, calls: &[Ended]) {
    // Those of no length stand in one event: an end that comes before its beginning is what some viewers would read.
    let is_long = |call: &&Ended| call.start_ns < call.end_ns;
    for call in calls.iter().rev() {
        if is_long(&call) {
            events.begins(thread_id, call.function_id, call.start_ns);
        } else {
            events.complete(thread_id, call.function_id, call.start_ns, call.end_ns, &call.about());
        }
    }
    for call in calls.iter().filter(is_long) {
        events.ends(thread_id, call.function_id, call.end_ns, &call.about());
    }
}

impl Visitor for ChromeCalls {
    type Mark = ();

    #[inline]
    fn enter(&mut self, entry: &Entry, _parent: Option<&Frame<()>>) {
        self.thread(entry.thread_id).arguments.enter(entry.depth);
        self.settle(entry.thread_id, Some(entry.start_ns));
    }

    #[inline]
    fn leave(&mut self, call: &Frame<()>, leave: &Leave, _parent: Option<&Frame<()>>) {
        let Entry { thread_id, function_id, depth, .. } = call.entry;
        let arguments = self.thread(thread_id).arguments.take(depth);
        let Leave { start_ns, start_reason, end_ns, reason: end_reason, .. } = *leave;
        // Clocks that run backwards make calls of no length.
        let end_ns = end_ns.max(start_ns);
        self.end(thread_id, Ended { function_id, start_ns, end_ns, start_reason, end_reason, arguments });
    }

    fn argument(&mut self, call: &Frame<()>, value: u64) {
        self.thread(call.entry.thread_id).arguments.push(call.entry.depth, value);
    }

    fn orphan(&mut self, event: &Event, _cpu: Option<u32>, _parent: Option<&Frame<()>>) {
        let Event { thread_id, function_id, ts_ns, .. } = *event;
        if self.time_ns.as_ref().is_some_and(|range| !range.contains(&ts_ns)) {
            return;
        }
        let end_reason = end_reason(event.kind);
        let start_reason = StartReason::Lost;
        let (start_ns, end_ns, arguments) = (ts_ns, ts_ns, Vec::new());
        self.end(thread_id, Ended { function_id, start_ns, end_ns, start_reason, end_reason, arguments });
    }
}
