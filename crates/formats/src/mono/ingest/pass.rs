//! A pass over the buffers that hold certain events, decoded side by side, in the order of the file.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use rayon::prelude::*;

use crate::BatchStream;
use crate::mono::consts::{EventByte, KindSet};
use crate::mono::reader::Buffer;
use crate::mono::recording::Shared;
use crate::mono::records::Event;
use crate::mono::survey::marks;

/// Bytes of events in a batch.
const BATCH_BYTES: u64 = 1 << 20;
/// Bytes that are fetched where a few are read.
const PAGE_BYTES: u64 = 1 << 12;

/// What of a file is read.
#[derive(Clone, Debug)]
pub struct Part {
    /// Buffers that lie there.
    pub range: Range<u64>,
    /// Buffers that have allocations of objects in the range of some of these, sorted.
    pub objects: Option<Arc<[u64]>>,
}

impl Default for Part {
    fn default() -> Self {
        Self { range: 0..u64::MAX, objects: None }
    }
}

impl From<Range<u64>> for Part {
    fn from(range: Range<u64>) -> Self {
        Self { range, ..Self::default() }
    }
}

impl Part {
    fn has(&self, log: &Shared, number: usize, buffer: &Buffer) -> bool {
        let is_inside = buffer.end() > self.range.start && buffer.offset < self.range.end;
        let may_have = |objects: &Arc<[u64]>| {
            let Some((lowest, highest)) = log.survey().allocated.objects.get(number) else { return true };
            let at = objects.partition_point(|object| object < lowest);
            objects.get(at).is_some_and(|object| object <= highest)
        };
        is_inside && self.objects.as_ref().is_none_or(may_have)
    }
}

/// Buffers that are read together, for events of some kinds.
#[derive(Clone, Debug)]
pub struct Group {
    /// Their numbers.
    pub buffers: Vec<usize>,
    kinds: KindSet,
}

/// Buffers that hold events of these kinds in a part of the file, in groups of about as many bytes.
pub fn groups(log: &Shared, kinds: KindSet, part: &Part) -> Vec<Group> {
    let survey = log.survey();
    let are_marked = marks::cover(kinds);
    let mut groups = Vec::new();
    let (mut group, mut bytes) = (Group { buffers: Vec::new(), kinds }, 0u64);
    for ((number, buffer), held) in survey.buffers.list.iter().enumerate().zip(&survey.kinds) {
        if !held.meets(kinds) || !part.has(log, number, buffer) {
            continue;
        }
        group.buffers.push(number);
        // Of one whose events are marked, little is read.
        let is_walked = !are_marked || survey.marks.get(number).is_none_or(Option::is_none);
        bytes = bytes.saturating_add(if is_walked { buffer.len } else { PAGE_BYTES.min(buffer.len) });
        if bytes >= BATCH_BYTES {
            groups.push(std::mem::replace(&mut group, Group { buffers: Vec::new(), kinds }));
            bytes = 0;
        }
    }
    groups.push(group);
    groups
}

/// What an event is read with.
#[derive(Clone, Copy, Debug)]
pub struct At {
    /// Number of its buffer.
    pub buffer: usize,
    /// Its time; of one without, that of the timed event before it.
    pub time: u64,
}

/// Calls `each` with every event of a group's kinds, and maybe with others; those of allocations may be without their
/// backtraces.
#[inline]
pub fn each(log: &Shared, group: &Group, each: impl FnMut(&At, &Buffer, &Event<'_>)) {
    each_without(log, group, KindSet::of(&[EventByte::ALLOC_BT]), each);
}

/// The same; it is the events of these kinds that may be without their backtraces.
#[inline]
pub fn each_without(
    log: &Shared,
    group: &Group,
    passed_over: KindSet,
    mut each: impl FnMut(&At, &Buffer, &Event<'_>),
) {
    let survey = log.survey();
    let are_marked = marks::cover(group.kinds);
    let mut event = Event::default();
    for &number in &group.buffers {
        let Some(buffer) = survey.buffers.list.get(number) else { continue };
        let mut decoder = buffer.decoder(&log.source, survey.dialect).lean(passed_over);
        if are_marked && let Some(Some(marks)) = survey.marks.get(number) {
            for mark in marks.iter().filter(|mark| group.kinds.has(mark.byte)) {
                decoder = decoder.resume(mark.state);
                if let Some(Ok(())) = decoder.read(&mut event) {
                    let at = At { buffer: number, time: event.time.unwrap_or(mark.state.time) };
                    each(&at, buffer, &event);
                }
            }
            continue;
        }
        let mut at = At { buffer: number, time: buffer.header.time_base };
        while let Some(Ok(())) = decoder.read(&mut event) {
            at.time = event.time.unwrap_or(at.time);
            each(&at, buffer, &event);
        }
    }
}

/// What `pick` takes of all events of these kinds, in the order of the file.
pub fn gather<T: Send>(
    log: &Shared,
    kinds: KindSet,
    pick: impl Fn(&At, &Buffer, &Event<'_>, &mut Vec<T>) + Sync,
) -> Vec<T> {
    let parts = groups(log, kinds, &Part::default()).into_par_iter().map(|group| {
        let mut found = Vec::new();
        each(log, &group, |at, buffer, event| pick(at, buffer, event, &mut found));
        found
    });
    parts.collect::<Vec<_>>().into_iter().flatten().collect()
}

/// A table whose rows `make` takes of the events of some buffers, made as it is pulled.
pub fn batches(
    log: &Arc<Shared>,
    kinds: KindSet,
    make: impl Fn(&Shared, &Group) -> RecordBatch + Send + Sync + 'static,
) -> BatchStream {
    batches_of(log, kinds, &Part::default(), make)
}

/// The same of the buffers in a part of the file.
pub fn batches_of(
    log: &Arc<Shared>,
    kinds: KindSet,
    part: &Part,
    make: impl Fn(&Shared, &Group) -> RecordBatch + Send + Sync + 'static,
) -> BatchStream {
    let todo = groups(log, kinds, part).into_iter().collect();
    Box::new(Batches { log: Arc::clone(log), todo, done: VecDeque::new(), make, released: 0 })
}

struct Batches<F> {
    log: Arc<Shared>,
    todo: VecDeque<Group>,
    done: VecDeque<RecordBatch>,
    make: F,
    released: usize,
}

impl<F: Fn(&Shared, &Group) -> RecordBatch + Send + Sync> Iterator for Batches<F> {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.done.is_empty() {
            let num = self.todo.len().min(rayon::current_num_threads());
            let groups: Vec<_> = self.todo.drain(..num).collect();
            let made = groups.par_iter().map(|group| (self.make)(&self.log, group));
            self.done = made.collect();
            let last = groups.last().and_then(|group| group.buffers.last());
            if let Some(buffer) = last.and_then(|last| self.log.survey().buffers.list.get(*last)) {
                self.log.source.release(self.released..buffer.end() as usize);
                self.released = buffer.end() as usize;
            }
        }
        self.done.pop_front()
    }
}
