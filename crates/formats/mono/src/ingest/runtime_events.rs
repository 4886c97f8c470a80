//! Tables `slices`, `instants`, `lock_events` and `exceptions`.

use std::sync::Arc;

use arrow_array::RecordBatch;
use perfuse_recording::{BatchStream, Placement, TableRequest, one_batch};
use perfuse_tables::{
    EndReason, ExceptionEvent, LockEvent, SliceKind, StartReason, exceptions, instants, lock_events,
    slices as table,
};
use rustc_hash::FxHashMap;

use crate::consts::{EventByte, KindSet, gc, metadata as mtypes, monitor};
use crate::ingest::scan;
use crate::ingest::threads::ThreadKeys;
use crate::log::LogData;
use crate::records::{Event, EventBody, Metadata};
use crate::stacks::LogStacks;

/// Events of locks.
const LOCKS: KindSet = KindSet::of(&[
    EventByte::MONITOR,
    EventByte::MONITOR_BT,
    EventByte::MONITOR_CONTENTION,
    EventByte::MONITOR_DONE,
    EventByte::MONITOR_FAIL,
    EventByte::MONITOR_CONTENTION_BT,
]);

/// A table of events with stacks, in batches that `make` builds; without stacks where none are requested.
fn scan_batches_with_stacks(
    log: &Arc<LogData>,
    kinds: KindSet,
    request: &TableRequest,
    make: impl Fn(&LogData, &[usize], Option<&LogStacks>) -> RecordBatch + Send + Sync + 'static,
) -> BatchStream {
    let (before, request) = (request.clone(), request.clone());
    let prepare = move |log: &LogData| {
        let _ = log.stacks_for(&before);
    };
    let selection = scan::BufferSelection::default();
    scan::scan_prepared_batches(log, kinds, &selection, prepare, move |log, group, (): &mut ()| {
        make(log, group, log.stacks_for(&request))
    })
}

/// Table `lock_events`.
pub fn lock_events(log: &Arc<LogData>, placement: &Placement, request: &TableRequest) -> BatchStream {
    let threads = ThreadKeys::new(log, placement);
    let placement = placement.clone();
    scan_batches_with_stacks(log, LOCKS, request, move |log, group, stacks| {
        let mut table = lock_events::Builder::new();
        scan::for_each_event_and_stack(log, group, LOCKS, stacks, |at, event, stack| {
            let EventBody::Monitor { event: what, object } = event.body else { return };
            let kind = match what {
                monitor::CONTENTION => LockEvent::Contention,
                monitor::DONE => LockEvent::Acquired,
                _ => LockEvent::Failed,
            };
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
    let placement = placement.clone();
    scan_batches_with_stacks(log, KINDS, request, move |log, group, stacks| {
        let names = log.names();
        let has_object = log.survey().dialect.version >= 14;
        let mut table = exceptions::Builder::new();
        scan::for_each_event_and_stack(log, group, KINDS, stacks, |at, event, stack| {
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
    scan::scan_batches(log, KINDS, move |log, group| {
        let mut table = instants::Builder::new();
        scan::for_each_event_of(log, group, KINDS, false, |at, event| {
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

/// What starts and ends. A start and an end with the same key form a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum SpanSubject {
    /// A collection of a generation.
    Collection(u64),
    /// A pause for the collection of a generation.
    Pause(u64),
    /// A round of the finalizer thread.
    Finalizers,
    /// The finalizer of an object.
    Finalizer(u64),
    /// A wait for the lock of an object.
    Lock(u64),
}

impl SpanSubject {
    /// What a start and its end have in common: the subject, and its thread. The world may be stopped for one generation and
    /// started after the collection of another. A concurrent collection ends in any thread.
    fn key(self, thread: u32) -> (Option<u32>, Self) {
        match self {
            Self::Collection(_) => (None, self),
            Self::Pause(_) => (Some(thread), Self::Pause(0)),
            Self::Finalizers | Self::Finalizer(_) | Self::Lock(_) => (Some(thread), self),
        }
    }

    /// The subject of a span that ends with another. The end of a pause states the generation that was collected in it, its
    /// start the one that was requested.
    fn ended_by(self, end: Self) -> Self {
        if matches!(self, Self::Pause(_)) { end } else { self }
    }

    /// Name of the slice.
    fn name(self) -> &'static str {
        match self {
            Self::Collection(0) => "nursery collection",
            Self::Collection(_) => "major collection",
            Self::Pause(0) => "nursery pause",
            Self::Pause(_) => "major pause",
            Self::Finalizers => "finalizers",
            Self::Finalizer(_) => "finalizer",
            Self::Lock(_) => "wait for lock",
        }
    }

    /// Kind of the slice.
    fn kind(self) -> SliceKind {
        if matches!(self, Self::Lock(_)) { SliceKind::Lock } else { SliceKind::Gc }
    }

    /// The address of the object, as a JSON array.
    fn args(self) -> Option<String> {
        match self {
            Self::Finalizer(object) | Self::Lock(object) => Some(format!("[\"{object:#x}\"]")),
            _ => None,
        }
    }
}

/// The subject that an event starts (`true`) or ends.
fn span_edge(event: &Event<'_>) -> Option<(SpanSubject, bool)> {
    Some(match event.body {
        EventBody::GcEvent { event, generation } => match event {
            gc::START => (SpanSubject::Collection(generation), true),
            gc::END => (SpanSubject::Collection(generation), false),
            gc::POST_STOP_WORLD => (SpanSubject::Pause(generation), true),
            gc::PRE_START_WORLD => (SpanSubject::Pause(generation), false),
            _ => return None,
        },
        EventBody::Finalize => (SpanSubject::Finalizers, event.byte == EventByte::GC_FINALIZE_START),
        EventBody::FinalizeObject { object } => {
            (SpanSubject::Finalizer(object), event.byte == EventByte::GC_FINALIZE_OBJECT_START)
        }
        EventBody::Monitor { event, object } => (SpanSubject::Lock(object), event == monitor::CONTENTION),
        _ => return None,
    })
}

/// The start or end of a span.
struct SpanEdge {
    time: u64,
    thread: u32,
    subject: SpanSubject,
    is_start: bool,
    offset: u64,
}

/// A slice before it becomes a row.
struct RuntimeSpan {
    thread: u32,
    subject: SpanSubject,
    start: u64,
    end: u64,
    truncated: bool,
    offset: u64,
    depth: u32,
    parent: Option<usize>,
    /// Total duration of the spans directly inside this one.
    nested: u64,
}

/// Table `slices`.
pub fn slices(log: &Arc<LogData>, placement: &Placement) -> BatchStream {
    let kinds = KindSet::of(&[
        EventByte::GC_EVENT,
        EventByte::GC_FINALIZE_START,
        EventByte::GC_FINALIZE_END,
        EventByte::GC_FINALIZE_OBJECT_START,
        EventByte::GC_FINALIZE_OBJECT_END,
    ])
    .or(LOCKS);
    let threads = ThreadKeys::new(log, placement);
    let edges = scan::collect_events_and_stacks(log, kinds, None, |at, event, _, found| {
        if let Some((subject, is_start)) = span_edge(event) {
            let thread = threads.of_buffer(log, at.buffer);
            found.push(SpanEdge { time: at.time, thread, subject, is_start, offset: event.offset });
        }
    });
    let mut spans = pair_edges(edges, log.survey().events.span.map_or(0, |(_, last)| last));
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    nest_spans(&mut spans);
    let mut table = table::Builder::new();
    let first = placement.first.slice;
    for (span, id) in spans.iter().zip(first..) {
        let duration = span.end.saturating_sub(span.start);
        let ns = |time: u64| i64::try_from(time).unwrap_or(i64::MAX);
        table.push(
            id,
            span.thread,
            placement.clock.ns(span.start),
            ns(duration),
            ns(duration.saturating_sub(span.nested)),
            span.depth,
            span.parent.map(|parent| first.saturating_add(parent as u64)),
            None,
            Some(span.subject.name()),
            span.subject.kind(),
            StartReason::Entry,
            if span.truncated { EndReason::Truncated } else { EndReason::Exit },
            None,
            span.subject.args().as_deref(),
            placement.source_id,
            span.offset,
        );
    }
    one_batch(table.finish())
}

/// Pairs starts and ends. A span without an end extends to the end of the log.
fn pair_edges(mut edges: Vec<SpanEdge>, last: u64) -> Vec<RuntimeSpan> {
    edges.sort_by_key(|edge| edge.time);
    let mut open: FxHashMap<(Option<u32>, SpanSubject), SpanEdge> = FxHashMap::default();
    let mut spans = Vec::new();
    let mut push = |from: SpanEdge, end: u64, truncated| {
        let SpanEdge { thread, subject, time: start, offset, .. } = from;
        spans.push(RuntimeSpan {
            thread,
            subject,
            start,
            end,
            truncated,
            offset,
            depth: 0,
            parent: None,
            nested: 0,
        });
    };
    for edge in edges {
        let key = edge.subject.key(edge.thread);
        if edge.is_start {
            // A thread that waits for a lock may report it more than once: the first event is the start.
            open.entry(key).or_insert(edge);
        } else if let Some(from) = open.remove(&key) {
            push(SpanEdge { subject: from.subject.ended_by(edge.subject), ..from }, edge.time, false);
        }
    }
    for from in open.into_values() {
        let end = last.max(from.time);
        push(from, end, true);
    }
    spans
}

/// Sets the parents and depths of spans, which are sorted by start.
fn nest_spans(spans: &mut [RuntimeSpan]) {
    let mut open_spans: FxHashMap<u32, Vec<(usize, u64)>> = FxHashMap::default();
    for at in 0..spans.len() {
        let Some(span) = spans.get(at) else { continue };
        let (thread, start, end) = (span.thread, span.start, span.end);
        let stack = open_spans.entry(thread).or_default();
        while stack.last().is_some_and(|(_, until)| *until < end || *until <= start) {
            stack.pop();
        }
        let parent = stack.last().map(|(parent, _)| *parent);
        let depth = stack.len() as u32;
        stack.push((at, end));
        if let Some(span) = spans.get_mut(at) {
            (span.parent, span.depth) = (parent, depth);
        }
        if let Some(outer) = parent.and_then(|parent| spans.get_mut(parent)) {
            outer.nested = outer.nested.saturating_add(end.saturating_sub(start));
        }
    }
}
