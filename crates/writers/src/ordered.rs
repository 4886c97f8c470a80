//! Calls as a begin and an end each, in time order for each thread.

use std::ops::Range;

use perfuse_tables::{EndReason, StartReason};

use super::arguments::Arguments;
use perfuse_engine::calls::{CallEntry, Event, Leave, Level, OpenCall, Selection, Visitor};

/// Callbacks for the begin and end of calls, in time order per thread.
pub trait CallSink {
    /// A call begins within those of its thread that have not ended.
    fn begin_call(&mut self, thread_id: u32, function_id: u32, start_ns: i64, start_reason: StartReason);

    /// The innermost call of a thread ends.
    fn end_call(&mut self, thread_id: u32, function_id: u32, end: &CallEnd<'_>);

    /// A thread is on a processor as its next call begins.
    fn run_on_cpu(&mut self, _thread_id: u32, _cpu: u32, _ts_ns: i64) {}

    /// Whether the output failed.
    fn failed(&self) -> bool;
}

/// How a call ends.
#[derive(Clone, Copy, Debug)]
pub struct CallEnd<'a> {
    /// When.
    pub end_ns: i64,
    /// How.
    pub reason: EndReason,
    /// What the call's arguments were.
    pub arguments: &'a [u64],
}

/// Passes the calls within the selected time to a [`CallSink`].
#[derive(Debug)]
pub struct OrderedCalls<S> {
    sink: S,
    threads: Vec<ThreadCalls>,
    time_ns: Option<Range<i64>>,
}

#[derive(Clone, Debug, Default)]
struct ThreadCalls {
    arguments: Arguments,
    /// Calls that began before the selected time, by depth; later events show whether they extend into it.
    begun_before: Vec<u32>,
}

impl<S: CallSink> OrderedCalls<S> {
    /// A writer without calls so far.
    pub fn new(sink: S, selection: &Selection) -> Self {
        Self { sink, threads: Vec::new(), time_ns: selection.time_ns.clone() }
    }

    /// What gets the calls in their order.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Whether the output failed.
    pub fn failed(&self) -> bool {
        self.sink.failed()
    }

    /// Returns the sink.
    pub fn into_sink(self) -> S {
        self.sink
    }

    #[inline]
    fn thread(&mut self, thread_id: u32) -> &mut ThreadCalls {
        let index = thread_id as usize;
        if index >= self.threads.len() {
            self.threads.resize_with(index + 1, ThreadCalls::default);
        }
        &mut self.threads[index]
    }

    /// Begins the calls that extend into the selected time; those deeper than `depth` do not.
    fn begin_early(&mut self, thread_id: u32, depth: usize) {
        let Some(range) = &self.time_ns else { return };
        let begun_before = &mut self.threads[thread_id as usize].begun_before;
        begun_before.truncate(depth);
        for function_id in begun_before.drain(..) {
            self.sink.begin_call(thread_id, function_id, range.start, StartReason::Lost);
        }
    }
}

impl<S: CallSink> Visitor for OrderedCalls<S> {
    type CallData = ();

    #[inline]
    fn enter(&mut self, entry: &CallEntry, _parent: Option<&OpenCall<()>>) {
        let CallEntry { thread_id, function_id, start_ns, start_reason, depth, cpu, .. } = *entry;
        self.thread(thread_id).arguments.enter(depth);
        if let Some(range) = &self.time_ns {
            if start_ns < range.start {
                let begun_before = &mut self.threads[thread_id as usize].begun_before;
                begun_before.truncate(depth as usize);
                begun_before.push(function_id);
                return;
            }
            if start_ns >= range.end {
                return;
            }
            self.begin_early(thread_id, depth as usize);
        }
        if let Some(cpu) = cpu {
            self.sink.run_on_cpu(thread_id, cpu, start_ns);
        }
        self.sink.begin_call(thread_id, function_id, start_ns, start_reason);
    }

    #[inline]
    fn leave(&mut self, call: &OpenCall<()>, level: Level, leave: &Leave, _parent: Option<&OpenCall<()>>) {
        let (Level { thread_id, depth, .. }, function_id) = (level, call.function_id);
        self.begin_early(thread_id, depth as usize + 1);
        let arguments = self.thread(thread_id).arguments.take(depth);
        // A clock that runs backwards gives calls of duration 0.
        let end_ns = leave.end_ns.max(leave.start_ns);
        let end = CallEnd { end_ns, reason: leave.reason, arguments: &arguments };
        self.sink.end_call(thread_id, function_id, &end);
    }

    fn argument(&mut self, _call: &OpenCall<()>, level: Level, value: u64) {
        self.thread(level.thread_id).arguments.push(level.depth, value);
    }

    fn orphan(&mut self, event: &Event, _cpu: Option<u32>, depth: u32, _parent: Option<&OpenCall<()>>) {
        let Event { thread_id, function_id, ts_ns, .. } = *event;
        if self.time_ns.as_ref().is_some_and(|range| !range.contains(&ts_ns)) {
            return;
        }
        self.thread(thread_id);
        self.begin_early(thread_id, depth as usize);
        let end = CallEnd { end_ns: ts_ns, reason: event.end_reason(), arguments: &[] };
        self.sink.begin_call(thread_id, function_id, ts_ns, StartReason::Lost);
        self.sink.end_call(thread_id, function_id, &end);
    }
}
