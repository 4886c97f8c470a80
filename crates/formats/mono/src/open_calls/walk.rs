//! The events of a buffer, each with the stack of its open calls.

use rustc_hash::FxHashMap;

use super::call_stack::CallStack;
use super::{CallStep, NO_PATH, OpenCalls};
use crate::consts::{EventByte, KindSet};
use crate::decode::MethodEvent;
use crate::log::LogData;
use crate::names::LogNames;
use crate::records::{Event, EventBody};
use crate::stacks::NO_CALLER;

/// Stacks of paths that were looked up.
pub type KnownPaths = FxHashMap<u32, u32>;

/// Stands for a stack that was not looked up yet.
const UNKNOWN: u32 = u32::MAX - 1;

/// A call that began in the buffer, after the last leave that no such call matched.
#[derive(Clone, Copy, Debug)]
struct InnerCall {
    /// Number of these calls up to this one, without calls of the runtime at the end.
    num_own: usize,
    /// Its stack, if it was looked up.
    stack: u32,
}

/// The open calls at an event.
#[derive(Debug)]
pub struct OpenCallStack<'a> {
    open: &'a OpenCalls,
    names: &'a LogNames,
    /// Path of the calls before those in `inner`.
    outer: u32,
    outer_leaves: std::slice::Iter<'a, u32>,
    inner: CallStack<InnerCall>,
}

impl OpenCallStack<'_> {
    fn step(&mut self, step: CallStep) {
        match step {
            CallStep::Enter(function) => {
                let num = self.inner.calls_mut().len();
                let num_own = if self.names.is_runtime_call(function) {
                    self.inner.last().map_or(0, |(_, call)| call.num_own)
                } else {
                    num.saturating_add(1)
                };
                self.inner.push(function, InnerCall { num_own, stack: UNKNOWN });
            }
            CallStep::Leave(function) => {
                if !self.inner.leave(function) {
                    self.inner.clear();
                    self.outer = self.outer_leaves.next().copied().unwrap_or(NO_PATH);
                }
            }
        }
    }

    /// The stack of the open calls, without calls of the runtime at its end; `None` where no call is open. `on_top` returns the stack
    /// of a function that is called by another stack; `known` has those of paths.
    pub fn stack(&mut self, known: &mut KnownPaths, mut on_top: impl FnMut(u32, u32) -> u32) -> Option<u32> {
        let num_own = self.inner.last().map_or(0, |(_, call)| call.num_own);
        if num_own == 0 {
            let own = self.open.own(self.outer);
            return Some(self.open.stack(own, known, &mut on_top)).filter(|stack| *stack != NO_CALLER);
        }
        let calls = self.inner.calls_mut().get_mut(..num_own).unwrap_or_default();
        let num_known =
            calls.iter().rposition(|(_, call)| call.stack != UNKNOWN).map_or(0, |at| at.saturating_add(1));
        let (before, unknown) = calls.split_at_mut_checked(num_known).unwrap_or_default();
        let mut stack = match before.last() {
            Some((_, call)) => call.stack,
            None => self.open.stack(self.outer, known, &mut on_top),
        };
        for (function, call) in unknown {
            stack = on_top(stack, *function);
            call.stack = stack;
        }
        Some(stack)
    }
}

impl OpenCalls {
    /// The stack of a path.
    fn stack(&self, path: u32, known: &mut KnownPaths, on_top: &mut impl FnMut(u32, u32) -> u32) -> u32 {
        let (mut unknown, mut at) = (Vec::new(), path);
        let mut stack = loop {
            if let Some(stack) = known.get(&at) {
                break *stack;
            }
            let Some(node) = self.paths.get(at as usize) else { break NO_CALLER };
            unknown.push((at, node.function));
            at = node.caller;
        };
        for (path, function) in unknown.into_iter().rev() {
            perfuse_stopping::checkpoint();
            stack = on_top(stack, function);
            known.insert(path, stack);
        }
        stack
    }

    /// Passes each event of these kinds in a buffer to `each`, with its time or that of the previous timed event, and the calls that
    /// are open.
    pub fn for_each_event<'a>(
        &'a self,
        log: &'a LogData,
        number: usize,
        kinds: KindSet,
        mut each: impl FnMut(u64, &Event<'a>, &mut OpenCallStack<'a>),
    ) {
        let start = self.buffers.get(number).copied().unwrap_or_default();
        let mut calls = OpenCallStack {
            open: self,
            names: log.names(),
            outer: start.path,
            outer_leaves: self.outer_leaves.get(start.first_leave..).unwrap_or_default().iter(),
            inner: CallStack::default(),
        };
        read_buffer(log, number, &mut calls, OpenCallStack::step, |time, event, calls| {
            if kinds.has(event.byte) {
                each(time, event, calls);
            }
        });
    }
}

/// Passes each enter or leave of a buffer to `on_call`, without calls that end as soon as they begin, and each other event with its
/// time to `on_event`.
pub(super) fn read_buffer<'a, T>(
    log: &'a LogData,
    number: usize,
    state: &mut T,
    mut on_call: impl FnMut(&mut T, CallStep),
    mut on_event: impl FnMut(u64, &Event<'a>, &mut T),
) {
    let (survey, names) = (log.survey(), log.names());
    let Some(buffer) = survey.buffers.list.get(number) else { return };
    let mut decoder = buffer.decoder(&log.source, survey.dialect);
    let mut event = Event::default();
    let step = |method, time, is_enter| {
        let function = names.function(method, time);
        if is_enter { CallStep::Enter(function) } else { CallStep::Leave(function) }
    };
    loop {
        decoder.read_calls(|call: MethodEvent, leave| {
            if leave.is_none() {
                on_call(state, step(call.method, call.time, call.byte == EventByte::METHOD_ENTER));
            }
        });
        let Some(Ok(())) = decoder.read(&mut event) else { break };
        match event.body {
            EventBody::Call { method } => {
                on_call(state, step(method, decoder.time(), event.byte == EventByte::METHOD_ENTER));
            }
            _ => on_event(decoder.time(), &event, state),
        }
    }
}
