//! What is told of calls, and to whom.

use std::ops::Range;

use perfuse_tables::{EndReason, StartReason};

use super::events::Event;

/// A call begins.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Thread.
    pub thread_id: u32,
    /// Function.
    pub function_id: u32,
    /// When; for a lost start, when the recording of the thread begins.
    pub start_ns: i64,
    /// How that is known.
    pub start_reason: StartReason,
    /// Processor.
    pub cpu: Option<u32>,
    /// Number of calls around it.
    pub depth: u32,
    /// File it is from.
    pub source_id: u32,
    /// Offset of its record; of the first record of the thread for a lost start.
    pub record_offset: u64,
}

/// An open call, with what a visitor keeps for it. Small, since there is one for each call.
#[derive(Clone, Copy, Debug)]
pub struct Frame<M> {
    /// When it began.
    pub start_ns: i64,
    /// Function.
    pub function_id: u32,
    /// How its start is known.
    pub start_reason: StartReason,
    /// What [`Visitor::enter`] returned.
    pub mark: M,
    pub(super) children_ns: u64,
}

/// Where calls begin and end.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// File.
    pub source_id: u32,
    /// Thread.
    pub thread_id: u32,
    /// Number of calls around.
    pub depth: u32,
}

/// A call ends. What of it lies outside of a selected time is cut off.
#[derive(Clone, Copy, Debug)]
pub struct Leave {
    /// When the call began.
    pub start_ns: i64,
    /// How that is known; `Lost` also where it began before the selected time.
    pub start_reason: StartReason,
    /// When it ends.
    pub end_ns: i64,
    /// How; `Truncated` also where it ends after the selected time.
    pub reason: EndReason,
    /// Time between; 0 where time went back.
    pub duration_ns: u64,
    /// Part of it that is in no call within it.
    pub self_ns: u64,
    /// Offset of the record that ended it.
    pub record_offset: u64,
}

impl Leave {
    /// Cuts off what lies outside of `range`; false where nothing is left.
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

/// Is told of calls, in time order for each thread.
pub trait Visitor {
    /// What is kept for an open call, and seen by the calls within it.
    type Mark: Copy;

    /// A call begins, within `parent`.
    fn enter(&mut self, entry: &Entry, parent: Option<&Frame<Self::Mark>>) -> Self::Mark;

    /// A call ends, within `parent`. Not told of calls outside of the selected time.
    fn leave(
        &mut self,
        call: &Frame<Self::Mark>,
        level: Level,
        leave: &Leave,
        parent: Option<&Frame<Self::Mark>>,
    );

    /// The call entered last has an argument.
    fn argument(&mut self, _call: &Frame<Self::Mark>, _level: Level, _value: u64) {}

    /// A call ends that is not open, in the middle of others: nothing is known of its start. `parent` is the call it is in.
    fn orphan(
        &mut self,
        _event: &Event,
        _cpu: Option<u32>,
        _depth: u32,
        _parent: Option<&Frame<Self::Mark>>,
    ) {
    }

    /// A call ends that began before the first event: what follows in its thread is in the one around it.
    fn leave_earlier(&mut self, _thread_id: u32) {}

    /// Rows that follow each other and are of one thread of one file on one processor, by their times; what they tell was told.
    fn rows(
        &mut self,
        _thread_id: u32,
        _cpu: Option<u32>,
        _times: impl DoubleEndedIterator<Item = i64> + ExactSizeIterator,
    ) {
    }
}
