//! A pass over the buffers that hold certain events, decoded side by side, in the order of the file.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use rayon::prelude::*;

use crate::consts::{EventByte, KindSet};
use crate::reader::Buffer;
use crate::recording::Shared;
use crate::records::Event;
use perfuse_recording::BatchStream;

/// Bytes of events in a batch.
const BATCH_BYTES: u64 = 1 << 20;

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

/// Numbers of buffers that hold events of these kinds in a part of the file, in groups of about as many bytes.
pub fn groups(log: &Shared, kinds: KindSet, part: &Part) -> Vec<Vec<usize>> {
    let survey = log.survey();
    let mut groups = Vec::new();
    let (mut group, mut bytes) = (Vec::new(), 0u64);
    for ((number, buffer), held) in survey.buffers.list.iter().enumerate().zip(&survey.kinds) {
        if !held.meets(kinds) || !part.has(log, number, buffer) {
            continue;
        }
        group.push(number);
        bytes = bytes.saturating_add(buffer.len);
        if bytes >= BATCH_BYTES {
            groups.push(std::mem::take(&mut group));
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

/// Calls `each` with every event of some buffers; those of allocations may be without their backtraces.
#[inline]
pub fn each(log: &Shared, buffers: &[usize], each: impl FnMut(&At, &Buffer, &Event<'_>)) {
    each_without(log, buffers, KindSet::of(&[EventByte::ALLOC_BT]), each);
}

/// The same; it is the events of these kinds that may be without their backtraces.
#[inline]
pub fn each_without(
    log: &Shared,
    buffers: &[usize],
    passed_over: KindSet,
    mut each: impl FnMut(&At, &Buffer, &Event<'_>),
) {
    let survey = log.survey();
    let mut event = Event::default();
    for &number in buffers {
        let Some(buffer) = survey.buffers.list.get(number) else { continue };
        let mut decoder = buffer.decoder(&log.source, survey.dialect).lean(passed_over);
        let mut at = At { buffer: number, time: buffer.header.time_base };
        while let Some(Ok(())) = decoder.read(&mut event) {
            at.time = event.time.unwrap_or(at.time);
            each(&at, buffer, &event);
        }
    }
}

/// The same with events of these kinds alone, which is faster where they are rare; with their backtraces only where `stacks` says so.
#[inline]
pub fn each_of(
    log: &Shared,
    buffers: &[usize],
    kinds: KindSet,
    stacks: bool,
    mut each: impl FnMut(&At, &Event<'_>),
) {
    let passed_over = if stacks { KindSet::all().without(kinds) } else { KindSet::all() };
    for &buffer in buffers {
        log.survey().each(&log.source, buffer, kinds, passed_over, |time, event| {
            each(&At { buffer, time }, event);
        });
    }
}

/// What `pick` takes of all events of these kinds, in the order of the file.
pub fn gather<T: Send>(
    log: &Shared,
    kinds: KindSet,
    pick: impl Fn(&At, &Buffer, &Event<'_>, &mut Vec<T>) + Sync,
) -> Vec<T> {
    let buffers = &log.survey().buffers.list;
    gather_of(log, kinds, true, |at, event, found| {
        if let Some(buffer) = buffers.get(at.buffer) {
            pick(at, buffer, event, found);
        }
    })
}

/// The same with backtraces only where `stacks` says so.
pub fn gather_of<T: Send>(
    log: &Shared,
    kinds: KindSet,
    stacks: bool,
    pick: impl Fn(&At, &Event<'_>, &mut Vec<T>) + Sync,
) -> Vec<T> {
    let parts = groups(log, kinds, &Part::default()).into_par_iter().map(|group| {
        let mut found = Vec::new();
        each_of(log, &group, kinds, stacks, |at, event| pick(at, event, &mut found));
        found
    });
    parts.collect::<Vec<_>>().into_iter().flatten().collect()
}

/// A table whose rows `make` takes of the events of some buffers, made as it is pulled.
pub fn batches(
    log: &Arc<Shared>,
    kinds: KindSet,
    make: impl Fn(&Shared, &[usize]) -> RecordBatch + Send + Sync + 'static,
) -> BatchStream {
    batches_of(log, kinds, &Part::default(), make)
}

/// The same of the buffers in a part of the file.
pub fn batches_of(
    log: &Arc<Shared>,
    kinds: KindSet,
    part: &Part,
    make: impl Fn(&Shared, &[usize]) -> RecordBatch + Send + Sync + 'static,
) -> BatchStream {
    let todo = groups(log, kinds, part).into_iter().collect();
    Box::new(Batches { log: Arc::clone(log), todo, done: VecDeque::new(), make, released: 0 })
}

struct Batches<F> {
    log: Arc<Shared>,
    todo: VecDeque<Vec<usize>>,
    done: VecDeque<RecordBatch>,
    make: F,
    released: usize,
}

impl<F: Fn(&Shared, &[usize]) -> RecordBatch + Send + Sync> Iterator for Batches<F> {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.done.is_empty() {
            let num = self.todo.len().min(rayon::current_num_threads());
            let groups: Vec<_> = self.todo.drain(..num).collect();
            let made = groups.par_iter().map(|group| (self.make)(&self.log, group));
            self.done = made.collect();
            let last = groups.last().and_then(|group| group.last());
            if let Some(buffer) = last.and_then(|last| self.log.survey().buffers.list.get(*last)) {
                self.log.source.release(self.released..buffer.end() as usize);
                self.released = buffer.end() as usize;
            }
        }
        self.done.pop_front()
    }
}
