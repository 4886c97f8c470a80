//! Calls, as they are entered and left.

use std::sync::Arc;

use perfuse_tables::{CallEvent, call_events};

use super::pass;
use super::threads::ThreadKeys;
use crate::mono::consts::{EventByte, KindSet};
use crate::mono::recording::Shared;
use crate::mono::records::Body;
use crate::{BatchStream, Placement};

pub fn call_events(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    const KINDS: KindSet =
        KindSet::of(&[EventByte::METHOD_ENTER, EventByte::METHOD_LEAVE, EventByte::METHOD_EXC_LEAVE]);
    let threads = ThreadKeys::new(log, placement);
    let placement = placement.clone();
    pass::batches(log, KINDS, move |log, group| {
        let names = log.names();
        let mut table = call_events::Builder::new();
        pass::each(log, group, |at, _, event| {
            let Body::Call { method } = event.body else { return };
            let kind = match event.byte {
                EventByte::METHOD_ENTER => CallEvent::Enter,
                EventByte::METHOD_LEAVE => CallEvent::Exit,
                _ => CallEvent::ExceptionExit,
            };
            table.push(
                placement.clock.ns(at.time),
                threads.of_buffer(log, at.buffer),
                None,
                kind,
                placement.first.function.saturating_add(names.function(method, at.time)),
                None,
                placement.source_id,
                event.offset,
            );
        });
        table.finish()
    })
}
