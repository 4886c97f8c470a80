//! Tables `slices`, `instants`, `lock_events` and `exceptions`.

mod spans;

use std::sync::Arc;

use perfuse_tables::{ExceptionEvent, LockEvent, exceptions, instants, lock_events};

use super::pass;
use super::threads::ThreadKeys;
use crate::consts::{EventByte, KindSet, metadata as mtypes, monitor};
use crate::recording::LogData;
use crate::records::{EventBody, Metadata};
use perfuse_recording::{BatchStream, Placement, TableRequest};

pub use spans::slices;

/// Events of locks.
const LOCKS: KindSet = KindSet::of(&[
    EventByte::MONITOR,
    EventByte::MONITOR_BT,
    EventByte::MONITOR_CONTENTION,
    EventByte::MONITOR_DONE,
    EventByte::MONITOR_FAIL,
    EventByte::MONITOR_CONTENTION_BT,
]);

/// Table `lock_events`.
pub fn lock_events(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let threads = ThreadKeys::new(log, placement);
    let (placement, request) = (placement.clone(), request.clone());
    pass::scan_batches(log, LOCKS, move |log, group| {
        let (names, stacks) = (log.names(), log.stacks_for(&request));
        let mut table = lock_events::Builder::new();
        pass::for_each_event_of(log, group, LOCKS, stacks.is_some(), |at, event| {
            let EventBody::Monitor { event: what, object } = event.body else { return };
            let kind = match what {
                monitor::CONTENTION => LockEvent::Contention,
                monitor::DONE => LockEvent::Acquired,
                _ => LockEvent::Failed,
            };
            let stack = stacks.and_then(|stacks| stacks.find_backtrace(&event.frames, names, at.time));
            table.push(
                placement.clock.ns(at.time),
                threads.of_buffer(log, at.buffer),
                object,
                kind,
                stack.map(|stack| placement.first.stack.saturating_add(stack)),
                placement.source_id,
                event.offset,
            );
        });
        table.finish()
    })
}

/// Table `exceptions`.
pub fn exceptions(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    const KINDS: KindSet = KindSet::of(&[EventByte::THROW, EventByte::THROW_BT, EventByte::CLAUSE]);
    let threads = ThreadKeys::new(log, placement);
    let (placement, request) = (placement.clone(), request.clone());
    pass::scan_batches(log, KINDS, move |log, group| {
        let (names, stacks) = (log.names(), log.stacks_for(&request));
        let has_object = log.survey().dialect.version >= 14;
        let mut table = exceptions::Builder::new();
        pass::for_each_event_of(log, group, KINDS, stacks.is_some(), |at, event| {
            let (kind, object, function, clause) = match event.body {
                EventBody::Throw { object } => (ExceptionEvent::Throw, Some(object), None, None),
                EventBody::Clause { kind, index, method, object } => {
                    let kind = match kind {
                        0 => ExceptionEvent::Catch,
                        1 => ExceptionEvent::Filter,
                        2 => ExceptionEvent::Finally,
                        _ => ExceptionEvent::Fault,
                    };
                    // A finally block that runs without an exception has none.
                    let object = Some(object).filter(|object| has_object && *object != 0);
                    (kind, object, Some(names.function(method, at.time)), Some(index))
                }
                _ => return,
            };
            let stack = stacks.and_then(|stacks| stacks.find_backtrace(&event.frames, names, at.time));
            table.push(
                placement.clock.ns(at.time),
                threads.of_buffer(log, at.buffer),
                kind,
                object,
                function.map(|function| placement.first.function.saturating_add(function)),
                clause,
                stack.map(|stack| placement.first.stack.saturating_add(stack)),
                placement.source_id,
                event.offset,
            );
        });
        table.finish()
    })
}

/// Kind of the instant of a METADATA event; `None` for those in other tables.
fn metadata_kind(byte: EventByte, it: &Metadata<'_>) -> Option<&'static str> {
    Some(match (it.mtype, byte) {
        (mtypes::IMAGE, EventByte::METADATA_END_LOAD) => "image_load",
        (mtypes::IMAGE, EventByte::METADATA_END_UNLOAD) => "image_unload",
        (mtypes::ASSEMBLY, EventByte::METADATA_END_LOAD) => "assembly_load",
        (mtypes::ASSEMBLY, EventByte::METADATA_END_UNLOAD) => "assembly_unload",
        (mtypes::DOMAIN, EventByte::METADATA_END_LOAD) => "domain_load",
        (mtypes::DOMAIN, EventByte::METADATA_END_UNLOAD) => "domain_unload",
        (mtypes::DOMAIN, EventByte::METADATA_NAME) => "domain_name",
        (mtypes::CONTEXT, EventByte::METADATA_END_LOAD) => "context_load",
        (mtypes::CONTEXT, EventByte::METADATA_END_UNLOAD) => "context_unload",
        (mtypes::THREAD, EventByte::METADATA_NAME) => "thread_name",
        _ => return None,
    })
}

/// Table `instants`.
pub fn instants(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    const KINDS: KindSet = KindSet::of(&[
        EventByte::METADATA_NAME,
        EventByte::METADATA_END_LOAD,
        EventByte::METADATA_END_UNLOAD,
        EventByte::SYNC_POINT,
        EventByte::AOT_ID,
        EventByte::GC_RESIZE,
    ]);
    let threads = ThreadKeys::new(log, placement);
    let placement = placement.clone();
    pass::scan_batches(log, KINDS, move |log, group| {
        let mut table = instants::Builder::new();
        pass::for_each_event_of(log, group, KINDS, false, |at, event| {
            let text: String;
            let (kind, name, number, id): (_, Option<&[u8]>, _, _) = match &event.body {
                EventBody::Metadata(it) => {
                    let Some(kind) = metadata_kind(event.byte, it) else { return };
                    let mut name = Some(it.name).filter(|name| !name.is_empty());
                    if it.mtype == mtypes::CONTEXT {
                        text = format!("domain {:#x}", it.domain);
                        name = Some(text.as_bytes());
                    }
                    (kind, name, None, Some(it.pointer))
                }
                EventBody::SyncPoint { kind } => ("sync_point", None, u32::try_from(*kind).ok(), None),
                EventBody::AotId { id } => ("aot_id", Some(id), None, None),
                EventBody::GcResize { size: bytes } => {
                    text = bytes.to_string();
                    ("gc_resize", Some(text.as_bytes()), None, None)
                }
                _ => return,
            };
            let name = name.map(String::from_utf8_lossy);
            table.push(
                placement.clock.ns(at.time),
                threads.of_buffer(log, at.buffer),
                None,
                kind,
                name.as_deref(),
                number,
                id,
                None,
                placement.source_id,
                event.offset,
            );
        });
        table.finish()
    })
}
