//! Calls as events: each is written once something else happens in its thread.
//!
//! A call is one event (`X`) with a time and a length, where that is sufficient. Viewers add the two up, in numbers that are
//! not exact: where another call begins or ends in the very moment a call ends, they may come to nest them wrongly. Such calls
//! are two events (`B` and `E`), whose times are the same to them. So are then the calls that begin in the same moment as one
//! of these, as viewers put an `X` before a `B`.

use std::ops::Range;

use perfuse_tables::StartReason;

use super::super::Trace;
use super::super::arguments::Arguments;
use super::bundle::{Bundle, Ended};
use super::event::EventWriter;
use perfuse_engine::calls::{CallEntry, Event, Leave, Level, OpenCall, Visitor};

/// Reports calls as they end.
#[derive(Debug)]
pub struct ChromeCalls {
    events: EventWriter,
    threads: Vec<EndedCalls>,
    time_ns: Option<Range<i64>>,
}

/// The calls of a thread that ended last.
#[derive(Debug, Default)]
struct EndedCalls {
    arguments: Arguments,
    /// Calls that ended at the same time, innermost first, each within the next.
    ended: Vec<EndedCall>,
    /// Calls that began together with their caller and wait for its end, by the depth of the caller.
    waiting: Vec<(u32, Bundle)>,
}

/// An ended call and its position in the stack.
#[derive(Debug)]
struct EndedCall {
    call: Ended,
    depth: u32,
    /// Whether its caller began at the same time.
    is_first: bool,
    /// Its first callee, if that began at the same time.
    first: Option<Bundle>,
}

impl ChromeCalls {
    /// A writer without calls so far.
    pub fn new(events: EventWriter, trace: &Trace<'_>) -> Self {
        Self { events, threads: Vec::new(), time_ns: trace.selection.time_ns.clone() }
    }

    /// The event writer.
    pub fn events(&mut self) -> &mut EventWriter {
        &mut self.events
    }

    /// Whether the output failed.
    pub fn failed(&self) -> bool {
        self.events.failed()
    }

    /// Whether a time is in the selected time.
    #[inline]
    fn is_selected(&self, ts_ns: i64) -> bool {
        self.time_ns.as_ref().is_none_or(|range| range.contains(&ts_ns))
    }

    /// Reports the calls that ended last.
    pub fn finish(mut self) -> EventWriter {
        for thread_id in 0..self.threads.len() as u32 {
            self.settle(thread_id, None);
        }
        self.events
    }

    #[inline]
    fn thread(&mut self, thread_id: u32) -> &mut EndedCalls {
        let index = thread_id as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, EndedCalls::default);
        }
        &mut self.threads[index]
    }

    /// Writes the calls that ended last, as a call begins, or ends later than they did.
    #[inline]
    fn settle(&mut self, thread_id: u32, next_start_ns: Option<i64>) {
        let Self { events, threads, .. } = self;
        let thread = &mut threads[thread_id as usize];
        match thread.ended.as_slice() {
            [] => {}
            [EndedCall { call, is_first: false, first: None, .. }] if next_start_ns != Some(call.end_ns) => {
                call.write(thread_id, events);
                thread.ended.clear();
            }
            _ => thread.settle_together(thread_id, next_start_ns, events),
        }
    }

    fn end(&mut self, thread_id: u32, call: Ended, depth: u32, parent: Option<&OpenCall<()>>) {
        let earliest = self.time_ns.as_ref().map_or(i64::MIN, |range| range.start);
        let is_first = parent.is_some_and(|parent| parent.start_ns.max(earliest) == call.start_ns);
        // A call that is not around the last one follows calls outside of the selected time, which settle nothing.
        let is_around = |last: &EndedCall| last.call.end_ns == call.end_ns && depth < last.depth;
        if self.thread(thread_id).ended.last().is_some_and(|last| !is_around(last)) {
            self.settle(thread_id, None);
        }
        let thread = &mut self.threads[thread_id as usize];
        let first = thread.waiting.pop_if(|(of, _)| *of == depth).map(|(_, bundle)| bundle);
        thread.ended.push(EndedCall { call, depth, is_first, first });
    }
}

impl EndedCalls {
    #[cold]
    fn settle_together(&mut self, thread_id: u32, next_start_ns: Option<i64>, events: &mut EventWriter) {
        let mut bundle = Bundle::default();
        if self.ended.len() > 1 {
            bundle.tie();
        }
        let mut waits_for = None;
        for EndedCall { call, depth, is_first, first } in self.ended.drain(..) {
            if next_start_ns == Some(call.end_ns) && call.is_long() {
                bundle.tie();
            }
            waits_for = depth.checked_sub(1).filter(|_| is_first);
            bundle = bundle.within(call, first.unwrap_or_default());
        }
        let Some(depth) = waits_for else { return bundle.write(thread_id, events) };
        let before = self.waiting.pop_if(|(of, _)| *of == depth).map(|(_, before)| before);
        self.waiting.push((depth, before.unwrap_or_default().and(bundle)));
    }
}

impl Visitor for ChromeCalls {
    type CallData = ();

    #[inline]
    fn enter(&mut self, entry: &CallEntry, _parent: Option<&OpenCall<()>>) {
        self.thread(entry.thread_id).arguments.enter(entry.depth);
        if self.is_selected(entry.start_ns) {
            self.settle(entry.thread_id, Some(entry.start_ns));
        }
    }

    #[inline]
    fn leave(&mut self, call: &OpenCall<()>, level: Level, leave: &Leave, parent: Option<&OpenCall<()>>) {
        let (Level { thread_id, depth, .. }, function_id) = (level, call.function_id);
        let arguments = self.thread(thread_id).arguments.take(depth);
        let Leave { start_ns, start_reason, end_ns, reason: end_reason, .. } = *leave;
        // A clock that runs backwards gives calls of duration 0.
        let end_ns = end_ns.max(start_ns);
        let ended = Ended { function_id, start_ns, end_ns, start_reason, end_reason, arguments };
        self.end(thread_id, ended, depth, parent);
    }

    fn argument(&mut self, _call: &OpenCall<()>, level: Level, value: u64) {
        self.thread(level.thread_id).arguments.push(level.depth, value);
    }

    fn orphan(&mut self, event: &Event, _cpu: Option<u32>, depth: u32, parent: Option<&OpenCall<()>>) {
        let Event { thread_id, function_id, ts_ns, .. } = *event;
        if !self.is_selected(ts_ns) {
            return;
        }
        let (start_reason, end_reason) = (StartReason::Lost, event.end_reason());
        let (start_ns, end_ns, arguments) = (ts_ns, ts_ns, Vec::new());
        let ended = Ended { function_id, start_ns, end_ns, start_reason, end_reason, arguments };
        self.thread(thread_id);
        self.settle(thread_id, Some(ts_ns));
        self.end(thread_id, ended, depth, parent);
    }
}
