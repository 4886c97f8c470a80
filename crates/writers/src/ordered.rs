//! Calls as a begin and an end each, in time order for each thread.

use std::ops::Range;

use perfuse_tables::{EndReason, StartReason};

use super::arguments::Arguments;
use perfuse_engine::calls::{Entry, Event, Frame, Leave, Level, Selection, Visitor};

/// Is told when calls begin and end.
pub trait Sink {
    /// A call begins within those of its thread that have not ended.
    fn begins(&mut self, thread_id: u32, function_id: u32, start_ns: i64, start_reason: StartReason);

    /// The innermost call of a thread ends.
    fn ends(&mut self, thread_id: u32, function_id: u32, end: &End<'_>);

    /// A thread is on a processor as its next call begins.
    fn runs_on(&mut self, _thread_id: u32, _cpu: u32, _ts_ns: i64) {}

    /// Whether there is no use in going on.
    fn failed(&self) -> bool;
}

/// How a call ends.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// When.
    pub end_ns: i64,
    /// How.
    pub reason: EndReason,
    /// What the call's arguments were.
    pub arguments: &'a [u64],
}

/// Tells a sink of calls, within the selected time.
#[derive(Debug)]
pub struct Ordered<S> {
    sink: S,
    threads: Vec<Thread>,
    time_ns: Option<Range<i64>>,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    arguments: Arguments,
    /// Calls that began before the selected time, by depth: whether they reach into it shows later.
    early: Vec<u32>,
}

impl<S: Sink> Ordered<S> {
    /// No calls yet.
    pub fn new(sink: S, selection: &Selection) -> Self {
        Self { sink, threads: Vec::new(), time_ns: selection.time_ns.clone() }
    }

    /// Who is told.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Whether there is no use in going on.
    pub fn failed(&self) -> bool {
        self.sink.failed()
    }

    /// Gives back who was told.
    pub fn into_sink(self) -> S {
        self.sink
    }

    #[inline]
    fn thread(&mut self, thread_id: u32) -> &mut Thread {
        let index = thread_id as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, Thread::default);
        }
        &mut self.threads[index]
    }

    /// Begins the calls that reach into the selected time; those deeper than `depth` did not.
    fn begin_early(&mut self, thread_id: u32, depth: usize) {
        let Some(range) = &self.time_ns else { return };
        let early = &mut self.threads[thread_id as usize].early;
        early.truncate(depth);
        for function_id in early.drain(..) {
            self.sink.begins(thread_id, function_id, range.start, StartReason::Lost);
        }
    }
}

impl<S: Sink> Visitor for Ordered<S> {
    type Mark = ();

    #[inline]
    fn enter(&mut self, entry: &Entry, _parent: Option<&Frame<()>>) {
        let Entry { thread_id, function_id, start_ns, start_reason, depth, cpu, .. } = *entry;
        self.thread(thread_id).arguments.enter(depth);
        if let Some(range) = &self.time_ns {
            if start_ns < range.start {
                let early = &mut self.threads[thread_id as usize].early;
                early.truncate(depth as usize);
                early.push(function_id);
                return;
            }
            if start_ns >= range.end {
                return;
            }
            self.begin_early(thread_id, depth as usize);
        }
        if let Some(cpu) = cpu {
            self.sink.runs_on(thread_id, cpu, start_ns);
        }
        self.sink.begins(thread_id, function_id, start_ns, start_reason);
    }

    #[inline]
    fn leave(&mut self, call: &Frame<()>, level: Level, leave: &Leave, _parent: Option<&Frame<()>>) {
        let (Level { thread_id, depth, .. }, function_id) = (level, call.function_id);
        self.begin_early(thread_id, depth as usize + 1);
        let arguments = self.thread(thread_id).arguments.take(depth);
        // Clocks that run backwards make calls of no length.
        let end_ns = leave.end_ns.max(leave.start_ns);
        let end = End { end_ns, reason: leave.reason, arguments: &arguments };
        self.sink.ends(thread_id, function_id, &end);
    }

    fn argument(&mut self, _call: &Frame<()>, level: Level, value: u64) {
        self.thread(level.thread_id).arguments.push(level.depth, value);
    }

    fn orphan(&mut self, event: &Event, _cpu: Option<u32>, depth: u32, _parent: Option<&Frame<()>>) {
        let Event { thread_id, function_id, ts_ns, .. } = *event;
        if self.time_ns.as_ref().is_some_and(|range| !range.contains(&ts_ns)) {
            return;
        }
        self.thread(thread_id);
        self.begin_early(thread_id, depth as usize);
        let end = End { end_ns: ts_ns, reason: event.end_reason(), arguments: &[] };
        self.sink.begins(thread_id, function_id, ts_ns, StartReason::Lost);
        self.sink.ends(thread_id, function_id, &end);
    }
}
