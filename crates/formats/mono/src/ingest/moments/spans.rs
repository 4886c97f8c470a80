//! Table `slices`: collections, their pauses, finalizers and lock waits.

use std::sync::Arc;

use perfuse_tables::{EndReason, SliceKind, StartReason, slices as table};
use rustc_hash::FxHashMap;

use super::LOCKS;
use crate::consts::{EventByte, KindSet, gc, monitor};
use crate::ingest::pass;
use crate::ingest::threads::ThreadKeys;
use crate::recording::LogData;
use crate::records::{Event, EventBody};
use perfuse_recording::{BatchStream, Placement, one_batch};

/// What starts and ends. Equal subjects of a thread form a span.
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
    let edges = pass::collect_events_of(log, kinds, false, |at, event, found| {
        if let Some((subject, is_start)) = span_edge(event) {
            let thread = threads.of_buffer(log, at.buffer);
            found.push(SpanEdge { time: at.time, thread, subject, is_start, offset: event.offset });
        }
    });
    let mut spans = pair_edges(edges, log.survey().span.map_or(0, |(_, last)| last));
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
    edges.sort_by_key(|edge| (edge.thread, edge.time));
    let mut open: FxHashMap<(u32, SpanSubject), SpanEdge> = FxHashMap::default();
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
        let key = (edge.thread, edge.subject);
        if edge.is_start {
            // A thread that waits for a lock may report it more than once: the first event is the start.
            open.entry(key).or_insert(edge);
        } else if let Some(from) = open.remove(&key) {
            push(from, edge.time, false);
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
