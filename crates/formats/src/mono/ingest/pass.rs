//! A pass over the buffers that hold certain events, decoded side by side, in the order of the file.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::RecordBatch;
use rayon::prelude::*;

use crate::BatchStream;
use crate::mono::consts::KindSet;
use crate::mono::reader::Buffer;
use crate::mono::recording::Shared;
use crate::mono::records::Event;

/// Bytes of events in a batch.
const BATCH_BYTES: u64 = 1 << 20;

const WHOLE: Range<u64> = 0..u64::MAX;

/// Numbers of buffers that hold events of these kinds in a part of the file, in groups of about as many bytes.
fn groups(log: &Shared, kinds: KindSet, part: &Range<u64>) -> Vec<Vec<usize>> {
    let survey = log.survey();
    let mut groups = Vec::new();
    let (mut group, mut bytes) = (Vec::new(), 0u64);
    for ((number, buffer), held) in survey.buffers.list.iter().enumerate().zip(&survey.kinds) {
        if !held.meets(kinds) || buffer.end() <= part.start || buffer.offset >= part.end {
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

/// Calls `each` with every event of some buffers.
#[inline]
pub fn each(log: &Shared, buffers: &[usize], mut each: impl FnMut(&At, &Buffer, &Event<'_>)) {
    let survey = log.survey();
    let mut event = Event::default();
    for &number in buffers {
        let Some(buffer) = survey.buffers.list.get(number) else { continue };
        let mut decoder = buffer.decoder(&log.source, survey.dialect);
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
    let parts = groups(log, kinds, &WHOLE).into_par_iter().map(|group| {
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
    make: impl Fn(&Shared, &[usize]) -> RecordBatch + Send + Sync + 'static,
) -> BatchStream {
    batches_of(log, kinds, &WHOLE, make)
}

/// The same of the buffers in a part of the file.
pub fn batches_of(
    log: &Arc<Shared>,
    kinds: KindSet,
    part: &Range<u64>,
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
