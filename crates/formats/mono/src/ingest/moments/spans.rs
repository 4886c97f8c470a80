//! Table `slices`: collections, their pauses, finalizers and lock waits.

use std::sync::Arc;

use perfuse_tables::{EndReason, SliceKind, StartReason, slices as table};
use rustc_hash::FxHashMap;

use super::LOCKS;
use crate::consts::{EventByte, KindSet, gc, monitor};
use crate::ingest::pass;
use crate::ingest::threads::ThreadKeys;
use crate::recording::Shared;
use crate::records::{Body, Event};
use perfuse_recording::{BatchStream, Placement, one_batch};

/// What starts and ends. Equal subjects of a thread form a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Subject {
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

impl Subject {
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
fn edge(event: &Event<'_>) -> Option<(Subject, bool)> {
    Some(match event.body {
        Body::GcEvent { event, generation } => match event {
            gc::START => (Subject::Collection(generation), true),
            gc::END => (Subject::Collection(generation), false),
            gc::POST_STOP_WORLD => (Subject::Pause(generation), true),
            gc::PRE_START_WORLD => (Subject::Pause(generation), false),
            _ => return None,
        },
        Body::Finalize => (Subject::Finalizers, event.byte == EventByte::GC_FINALIZE_START),
        Body::FinalizeObject { object } => {
            (Subject::Finalizer(object), event.byte == EventByte::GC_FINALIZE_OBJECT_START)
        }
        Body::Monitor { event, object } => (Subject::Lock(object), event == monitor::CONTENTION),
        _ => return None,
    })
}

/// The start or end of a span.
struct Edge {
    time: u64,
    thread: u32,
    subject: Subject,
    begins: bool,
    offset: u64,
}

/// A slice before it becomes a row.
struct Span {
    thread: u32,
    subject: Subject,
    start: u64,
    end: u64,
    truncated: bool,
    offset: u64,
    depth: u32,
    parent: Option<usize>,
    /// Total duration of the spans directly inside this one.
    inner: u64,
}

/// Table `slices`.
pub fn slices(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let kinds = KindSet::of(&[
        EventByte::GC_EVENT,
        EventByte::GC_FINALIZE_START,
        EventByte::GC_FINALIZE_END,
        EventByte::GC_FINALIZE_OBJECT_START,
        EventByte::GC_FINALIZE_OBJECT_END,
    ])
    .or(LOCKS);
    let threads = ThreadKeys::new(log, placement);
    let edges = pass::gather_of(log, kinds, false, |at, event, found| {
        if let Some((subject, begins)) = edge(event) {
            let thread = threads.of_buffer(log, at.buffer);
            found.push(Edge { time: at.time, thread, subject, begins, offset: event.offset });
        }
    });
    let mut spans = pair(edges, log.survey().span.map_or(0, |(_, last)| last));
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    nest(&mut spans);
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
            ns(duration.saturating_sub(span.inner)),
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
fn pair(mut edges: Vec<Edge>, last: u64) -> Vec<Span> {
    edges.sort_by_key(|edge| (edge.thread, edge.time));
    let mut open: FxHashMap<(u32, Subject), Edge> = FxHashMap::default();
    let mut spans = Vec::new();
    let mut push = |from: Edge, end: u64, truncated| {
        let Edge { thread, subject, time: start, offset, .. } = from;
        spans.push(Span { thread, subject, start, end, truncated, offset, depth: 0, parent: None, inner: 0 });
    };
    for edge in edges {
        let key = (edge.thread, edge.subject);
        if edge.begins {
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
fn nest(spans: &mut [Span]) {
    let mut around: FxHashMap<u32, Vec<(usize, u64)>> = FxHashMap::default();
    for at in 0..spans.len() {
        let Some(span) = spans.get(at) else { continue };
        let (thread, start, end) = (span.thread, span.start, span.end);
        let stack = around.entry(thread).or_default();
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
            outer.inner = outer.inner.saturating_add(end.saturating_sub(start));
        }
    }
}
