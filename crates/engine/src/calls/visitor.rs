//! Visitors of calls, and the data of calls that they receive.

use std::ops::Range;

use perfuse_tables::{EndReason, StartReason};

use super::events::Event;

/// A call begins.
#[derive(Clone, Copy, Debug)]
pub struct CallEntry {
    /// Thread.
    pub thread_id: u32,
    /// Function.
    pub function_id: u32,
    /// Start; for a lost entry, the start of the recording of the thread.
    pub start_ns: i64,
    /// Whether the entry was recorded.
    pub start_reason: StartReason,
    /// Processor.
    pub cpu: Option<u32>,
    /// Number of calls around it.
    pub depth: u32,
    /// File it is from.
    pub source_id: u32,
    /// Offset of its record; of the first record of the thread for a lost entry.
    pub record_offset: u64,
}

impl CallEntry {
    /// Of the event that begins a call within `depth` others.
    #[inline(always)]
    pub(super) fn of(event: &Event, cpu: Option<u32>, start_reason: StartReason, depth: usize) -> Self {
        let Event { ts_ns: start_ns, thread_id, function_id, source_id, record_offset, .. } = *event;
        let depth = depth as u32;
        Self { thread_id, function_id, start_ns, start_reason, cpu, depth, source_id, record_offset }
    }
}

/// An open call, with the visitor's mark. Small, since there is one for each call.
#[derive(Clone, Copy, Debug)]
pub struct OpenCall<M> {
    /// Its start.
    pub start_ns: i64,
    /// Function.
    pub function_id: u32,
    /// Whether its entry was recorded.
    pub start_reason: StartReason,
    /// What [`Visitor::enter`] returned.
    pub mark: M,
    pub(super) children_ns: u64,
}

/// File, thread and depth of a call.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// File.
    pub source_id: u32,
    /// Thread.
    pub thread_id: u32,
    /// Number of calls around.
    pub depth: u32,
}

/// A call ends. Parts outside of a selected time are cut off.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// Start of the call.
    pub start_ns: i64,
    /// Whether its entry was recorded; `Lost` also where it began before the selected time.
    pub start_reason: StartReason,
    /// Its end.
    pub end_ns: i64,
    /// How it ends; `Truncated` also where it ends after the selected time.
    pub reason: EndReason,
    /// Time between; 0 where time went back.
    pub duration_ns: u64,
    /// Part of it outside of the calls within it.
    pub self_ns: u64,
    /// Offset of the record that ended it.
    pub record_offset: u64,
}

impl Leave {
    /// Cuts off the parts outside of `range`; false where nothing is left.
    pub(super) fn cut(&mut self, range: &Range<i64>) -> bool {
        if self.start_ns >= range.end || self.end_ns < range.start {
            return false;
        }
        if self.start_ns < range.start {
            (self.start_ns, self.start_reason) = (range.start, StartReason::Lost);
        }
        if self.end_ns > range.end {
            (self.end_ns, self.reason) = (range.end, EndReason::Truncated);
        }
        true
    }
}

/// Callbacks for call begin and end, in time order per thread.
pub trait Visitor {
    /// Data of an open call, which the calls within it receive.
    type CallData: Copy;

    /// A call begins, within `parent`.
    fn enter(&mut self, entry: &CallEntry, parent: Option<&OpenCall<Self::CallData>>) -> Self::CallData;

    /// A call ends, within `parent`. Not called for calls outside of the selected time.
    fn leave(
        &mut self,
        call: &OpenCall<Self::CallData>,
        level: Level,
        leave: &Leave,
        parent: Option<&OpenCall<Self::CallData>>,
    );

    /// A call without calls in it, as most are, begins and ends within `parent`. Only called where no time is selected.
    #[inline(always)]
    fn leaf(&mut self, entry: &CallEntry, leave: &Leave, parent: Option<&OpenCall<Self::CallData>>) {
        let mark = self.enter(entry, parent);
        let CallEntry { thread_id, function_id, start_ns, start_reason, depth, source_id, .. } = *entry;
        let call = OpenCall { start_ns, function_id, start_reason, mark, children_ns: 0 };
        self.leave(&call, Level { source_id, thread_id, depth }, leave, parent);
    }

    /// The call entered last has an argument.
    fn argument(&mut self, _call: &OpenCall<Self::CallData>, _level: Level, _value: u64) {}

    /// There is an argument, and no call is open.
    fn argument_outside(&mut self, _value: u64) {}

    /// A call ends that is not open, within others: its start is unknown. `parent` is the call it is in.
    fn orphan(
        &mut self,
        _event: &Event,
        _cpu: Option<u32>,
        _depth: u32,
        _parent: Option<&OpenCall<Self::CallData>>,
    ) {
    }

    /// A call ends that began before the first event: the events that follow in its thread are in the call around it.
    fn leave_earlier(&mut self, _thread_id: u32) {}

    /// Rows that follow each other and are of one thread of one file on one processor, by their times; called after the calls in them.
    fn rows(
        &mut self,
        _thread_id: u32,
        _cpu: Option<u32>,
        _num_rows: usize,
        _times: impl DoubleEndedIterator<Item = i64>,
    ) {
    }
}
