//! Calls, as they are entered and left.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::{CallEvent, Choices, call_events};

use super::pass;
use super::threads::ThreadKeys;
use crate::mono::consts::{EventByte, KindSet};
use crate::mono::decode::Call;
use crate::mono::names::Names;
use crate::mono::recording::Shared;
use crate::mono::records::{Body, Event};
use crate::{BatchStream, Placement};

const KINDS: KindSet =
    KindSet::of(&[EventByte::METHOD_ENTER, EventByte::METHOD_LEAVE, EventByte::METHOD_EXC_LEAVE]);

/// Keys in `kind`, by the upper half of an event's byte.
const KINDS_BY_BYTE: [i32; 4] = {
    const LEAVE: i32 = CallEvent::Exit as i32;
    [LEAVE, LEAVE, CallEvent::Enter as i32, CallEvent::ExceptionExit as i32]
};

/// Bytes of an event at least: its first, a time, a method.
const LEAST_BYTES: u64 = 3;

/// Bytes of events in a batch of a segment: its rows stay in the cache of whoever made them, and uses them.
const BATCH_BYTES: u64 = 1 << 16;

/// Segments that a log is cut into. Each has a tree of calls of its own that is put into the others' in the end, which
/// costs something; with fewer of them, a processor waits longer for the last one.
const NUM_SEGMENTS: usize = 4;

/// Methods whose functions are found without a search: a power of two.
const PLACES: usize = 1 << 11;

/// Table `call_events`.
pub fn call_events(log: &Arc<Shared>, placement: &Placement) -> BatchStream {
    let threads = ThreadKeys::new(log, placement);
    let placement = placement.clone();
    pass::batches(log, KINDS, move |log, group| {
        let mut functions = Functions::new(&placement);
        Reader { log, placement: &placement, threads: &threads, functions: &mut functions }.batch(group)
    })
}

/// The table in segments; each is decoded by whoever pulls it.
pub fn segments(log: &Arc<Shared>, placement: &Placement) -> Vec<BatchStream> {
    let threads = ThreadKeys::new(log, placement);
    let groups = pass::groups(log, KINDS, &pass::Part::default());
    let len = groups.len().div_ceil(NUM_SEGMENTS).max(1);
    let segments = groups.chunks(len).map(|groups| -> BatchStream {
        let (log, placement, threads) = (Arc::clone(log), placement.clone(), threads.clone());
        let batches: Vec<_> = groups.iter().flat_map(|group| cut(&log, group)).collect();
        let mut functions = Functions::new(&placement);
        Box::new(batches.into_iter().map(move |buffers| {
            let (placement, threads, functions) = (&placement, &threads, &mut functions);
            Reader { log: &log, placement, threads, functions }.batch(&buffers)
        }))
    });
    segments.collect()
}

/// The buffers of a group, as many together as make a batch of a segment.
fn cut(log: &Shared, group: &[usize]) -> Vec<Vec<usize>> {
    let mut batches = vec![Vec::new()];
    let mut bytes = 0u64;
    for &number in group {
        if bytes >= BATCH_BYTES {
            batches.push(Vec::new());
            bytes = 0;
        }
        if let Some(batch) = batches.last_mut() {
            batch.push(number);
        }
        bytes = bytes.saturating_add(log.survey().buffers.list.get(number).map_or(0, |buffer| buffer.len));
    }
    batches
}

/// Turns buffers into rows.
struct Reader<'a> {
    log: &'a Shared,
    placement: &'a Placement,
    threads: &'a ThreadKeys,
    functions: &'a mut Functions,
}

impl Reader<'_> {
    fn batch(self, buffers: &[usize]) -> RecordBatch {
        let (survey, names) = (self.log.survey(), self.log.names());
        let list = || buffers.iter().filter_map(|number| Some((*number, survey.buffers.list.get(*number)?)));
        let bytes = list().fold(0, |sum: u64, (_, buffer)| sum.saturating_add(buffer.len));
        let mut rows = Rows::with_capacity((bytes / LEAST_BYTES) as usize);
        let mut event = Event::default();
        for (number, buffer) in list() {
            let passed_over = KindSet::of(&[EventByte::ALLOC_BT]);
            let mut decoder = buffer.decoder(&self.log.source, survey.dialect).lean(passed_over);
            let mut push = |call: Call| {
                let function = self.functions.key(names, call.method, call.time);
                rows.push(&call, self.placement.clock.ns(call.time), function);
            };
            loop {
                decoder.calls(&mut push);
                let Some(Ok(())) = decoder.read(&mut event) else { break };
                if let Body::Call { method } = event.body {
                    push(Call { byte: event.byte, time: decoder.time(), method, offset: event.offset });
                }
            }
            rows.end_buffer(self.threads.of_buffer(self.log, number));
        }
        rows.finish(self.placement.source_id)
    }
}

/// Keys of functions, those met most often without a search.
struct Functions {
    first: u32,
    recent: Vec<(u64, u32)>,
}

impl Functions {
    fn new(placement: &Placement) -> Self {
        // At first each place has a method that belongs to another.
        let recent = (0..PLACES).map(|at| (if at == 0 { 8 } else { 0 }, 0)).collect();
        Self { first: placement.first.function, recent }
    }

    #[inline(always)]
    fn key(&mut self, names: &Names, method: u64, time: u64) -> u32 {
        match self.recent.get(slot(method)) {
            Some((known, key)) if *known == method => *key,
            _ => self.other(names, method, time),
        }
    }

    #[inline(never)]
    fn other(&mut self, names: &Names, method: u64, time: u64) -> u32 {
        let key = self.first.saturating_add(names.function(method, time));
        if names.is_constant(method)
            && let Some(place) = self.recent.get_mut(slot(method))
        {
            *place = (method, key);
        }
        key
    }
}

/// Where a method is noted. They lie some words apart.
#[inline(always)]
fn slot(method: u64) -> usize {
    ((method >> 3) ^ (method >> 14)) as usize % PLACES
}

/// Columns on their way into a batch.
struct Rows {
    ts_ns: Vec<i64>,
    threads: Vec<u32>,
    kinds: Vec<i32>,
    functions: Vec<u32>,
    offsets: Vec<u64>,
}

impl Rows {
    fn with_capacity(num: usize) -> Self {
        Self {
            ts_ns: Vec::with_capacity(num),
            threads: Vec::new(),
            kinds: Vec::with_capacity(num),
            functions: Vec::with_capacity(num),
            offsets: Vec::with_capacity(num),
        }
    }

    #[inline(always)]
    fn push(&mut self, call: &Call, ts_ns: i64, function: u32) {
        let kind = KINDS_BY_BYTE.get(usize::from(call.byte.0 >> 4) & 3).copied().unwrap_or_default();
        self.ts_ns.push(ts_ns);
        self.kinds.push(kind);
        self.functions.push(function);
        self.offsets.push(call.offset);
    }

    fn end_buffer(&mut self, thread_id: u32) {
        self.threads.resize(self.ts_ns.len(), thread_id);
    }

    fn finish(self, source_id: u32) -> RecordBatch {
        let num = self.ts_ns.len();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(self.ts_ns)),
            Arc::new(UInt32Array::from(self.threads)),
            Arc::new(UInt32Array::new_null(num)),
            CallEvent::array(self.kinds),
            Arc::new(UInt32Array::from(self.functions)),
            Arc::new(UInt64Array::new_null(num)),
            Arc::new(UInt32Array::from(vec![source_id; num])),
            Arc::new(UInt64Array::from(self.offsets)),
        ];
        call_events::batch(columns)
    }
}
