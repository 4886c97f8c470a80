//! Calls of a thread that have to be written with regard to each other.

use std::collections::VecDeque;

use perfuse_tables::{EndReason, StartReason};

use super::event::{CallDetails, EventWriter};

/// A call that ended.
#[derive(Clone, Debug)]
pub struct Ended {
    pub function_id: u32,
    pub start_ns: i64,
    pub end_ns: i64,
    pub start_reason: StartReason,
    pub end_reason: EndReason,
    pub arguments: Vec<u64>,
}

impl Ended {
    /// Writes it as one event.
    #[inline]
    pub fn write(&self, thread_id: u32, events: &mut EventWriter) {
        events.complete(thread_id, self.function_id, self.start_ns, self.end_ns, &self.about());
    }

    pub fn is_long(&self) -> bool {
        self.start_ns < self.end_ns
    }

    fn about(&self) -> CallDetails<'_> {
        let Self { start_reason, end_reason, .. } = *self;
        CallDetails { arguments: &self.arguments, start_reason, end_reason }
    }
}

#[derive(Debug)]
enum Half {
    Begin(Ended),
    End(Ended),
}

/// Calls within each other, outermost first.
#[derive(Debug, Default)]
pub struct Bundle {
    halves: VecDeque<Half>,
    /// Whether something else happens in the moment one of them ends.
    tied: bool,
}

impl Bundle {
    /// The calls, and one that contains them. Calls that began with it precede the others.
    pub fn within(mut self, call: Ended, first: Self) -> Self {
        self.tied |= first.tied;
        self.halves = joined(first.halves, self.halves);
        self.halves.push_front(Half::Begin(call.clone()));
        self.halves.push_back(Half::End(call));
        self
    }

    /// The calls, and others after them.
    pub fn and(mut self, others: Self) -> Self {
        self.tied |= others.tied;
        self.halves = joined(self.halves, others.halves);
        self
    }

    /// Something else happens in the moment one of them ends.
    pub fn tie(&mut self) {
        self.tied = true;
    }

    /// Writes them: as one event each where that is safe, else as two.
    pub fn write(self, thread_id: u32, events: &mut EventWriter) {
        for half in self.halves {
            match half {
                // Calls of duration 0 are one event: some viewers would read the end before the begin.
                Half::Begin(call) if !self.tied || !call.is_long() => call.write(thread_id, events),
                Half::Begin(call) => events.begin_call(thread_id, call.function_id, call.start_ns),
                Half::End(call) if self.tied && call.is_long() => {
                    events.end_call(thread_id, call.function_id, call.end_ns, &call.about());
                }
                Half::End(_) => {}
            }
        }
    }
}

/// One after the other; the longer stays where it is.
fn joined(mut first: VecDeque<Half>, mut second: VecDeque<Half>) -> VecDeque<Half> {
    if first.len() >= second.len() {
        first.append(&mut second);
        return first;
    }
    while let Some(half) = first.pop_back() {
        second.push_front(half);
    }
    second
}
