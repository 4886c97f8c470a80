//! Calls as a begin and an end each, in time order for each thread.

use std::ops::Range;

use perfuse_tables::StartReason;

use super::super::arguments::Arguments;
use super::super::{Trace, end_reason};
use super::packets::Packets;
use crate::calls::{Entry, Event, Frame, Leave, Visitor};

/// Tells of calls as they begin and end.
#[derive(Debug)]
pub struct PerfettoCalls {
    packets: Packets,
    threads: Vec<Thread>,
    time_ns: Option<Range<i64>>,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    arguments: Arguments,
    /// Calls that began before the selected time, by depth: whether they reach into it shows later.
    early: Vec<u32>,
    /// Since when it is on its processor, and on which.
    cpu: Option<(i64, u32)>,
    /// Whether it was on another before.
    moved: bool,
}

impl PerfettoCalls {
    /// No calls yet.
    pub fn new(packets: Packets, trace: &Trace<'_>) -> Self {
        Self { packets, threads: Vec::new(), time_ns: trace.selection.time_ns.clone() }
    }

    /// Where they are written to.
    pub fn packets(&mut self) -> &mut Packets {
        &mut self.packets
    }

    /// Whether there is no use in going on.
    pub fn failed(&self) -> bool {
        self.packets.failed()
    }

    /// Writes what is left.
    pub fn finish(self) -> std::io::Result<()> {
        self.packets.finish()
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
            self.packets.begins(thread_id, function_id, range.start, StartReason::Lost);
        }
    }

    fn runs_on(&mut self, thread_id: u32, cpu: u32, ts_ns: i64) {
        let Self { packets, threads, .. } = self;
        let thread = &mut threads[thread_id as usize];
        match thread.cpu {
            Some((_, before)) if before == cpu => return,
            None => {}
            Some((since_ns, before)) => {
                // A thread that stays where it is has no track for that.
                if !thread.moved {
                    packets.cpus(thread_id);
                    packets.runs_on(thread_id, before, since_ns);
                    thread.moved = true;
                }
                packets.runs_on(thread_id, cpu, ts_ns);
            }
        }
        thread.cpu = Some((ts_ns, cpu));
    }
}

impl Visitor for PerfettoCalls {
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
            self.runs_on(thread_id, cpu, start_ns);
        }
        self.packets.begins(thread_id, function_id, start_ns, start_reason);
    }

    #[inline]
    fn leave(&mut self, call: &Frame<()>, leave: &Leave, _parent: Option<&Frame<()>>) {
        let Entry { thread_id, depth, .. } = call.entry;
        self.begin_early(thread_id, depth as usize + 1);
        let arguments = self.thread(thread_id).arguments.take(depth);
        // Clocks that run backwards make calls of no length.
        let end_ns = leave.end_ns.max(leave.start_ns);
        self.packets.ends(thread_id, end_ns, leave.reason, &arguments);
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
        self.packets.begins(thread_id, function_id, ts_ns, StartReason::Lost);
        self.packets.ends(thread_id, ts_ns, end_reason, &[]);
    }
}
