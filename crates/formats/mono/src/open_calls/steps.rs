//! The enters and leaves of a buffer, by function.

use super::entered_calls::EnteredCalls;
use crate::consts::EventByte;
use crate::decode::MethodEvent;
use crate::named_log::NamedLog;
use crate::records::{Event, EventBody};

/// What an enter or leave does to the calls that are open before its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallStep {
    /// Opens a call of a function.
    Enter(u32),
    /// Ends the nearest open call of a function, and those within.
    Leave(u32),
}

/// The enters and leaves of a buffer without the calls that begin and end in it.
pub(super) fn reduce(log: NamedLog<'_>, number: usize) -> Vec<CallStep> {
    let mut reduced = (Vec::new(), EnteredCalls::<()>::default());
    let add = |(steps, inner): &mut (Vec<CallStep>, EnteredCalls<()>), step| match step {
        CallStep::Enter(function) => inner.push(function, ()),
        CallStep::Leave(function) => {
            if !inner.leave(function) {
                steps.extend(inner.take_functions().map(CallStep::Enter));
                steps.push(step);
            }
        }
    };
    read_buffer(log, number, &mut reduced, add, |_, _, _| ());
    let (mut steps, mut inner) = reduced;
    steps.extend(inner.take_functions().map(CallStep::Enter));
    steps
}

/// Passes each enter or leave of a buffer to `on_call`, without calls that end as soon as they begin, and each other event with its
/// time to `on_event`.
pub(super) fn read_buffer<'a, T>(
    log: NamedLog<'a>,
    number: usize,
    state: &mut T,
    mut on_call: impl FnMut(&mut T, CallStep),
    mut on_event: impl FnMut(u64, &Event<'a>, &mut T),
) {
    let NamedLog { source, survey, names } = log;
    let Some(buffer) = survey.buffers.list.get(number) else { return };
    let mut decoder = buffer.decoder(source, survey.dialect);
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
