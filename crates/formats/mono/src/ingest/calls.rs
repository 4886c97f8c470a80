//! Table `call_events`: enters and leaves of methods.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt32Array, UInt64Array};
use perfuse_tables::{CallEvent, CallRow, CallRun, Choices, call_events};

use super::pass;
use super::threads::ThreadKeys;
use crate::consts::{EventByte, KindSet};
use crate::decode::Call;
use crate::names::Names;
use crate::recording::Shared;
use crate::records::{Body, Event};
use perfuse_recording::{BatchStream, CallStream, Placement};

const KINDS: KindSet =
    KindSet::of(&[EventByte::METHOD_ENTER, EventByte::METHOD_LEAVE, EventByte::METHOD_EXC_LEAVE]);

/// The kind of a call event, by the upper half of its byte.
const KINDS_BY_BYTE: [CallEvent; 4] =
    [CallEvent::Exit, CallEvent::Exit, CallEvent::Enter, CallEvent::ExceptionExit];

/// Number of segments of a log. Each has its own call tree, and merging the trees has a cost; with fewer segments a
/// processor waits longer for the last one.
const NUM_SEGMENTS: usize = 4;

/// Number of methods whose functions are cached: a power of two.
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

/// The table in segments. A segment is decoded by its consumer, one buffer at a time, so that the rows stay in the
/// consumer's cache.
pub fn segments(log: &Arc<Shared>, placement: &Placement) -> Vec<CallStream> {
    let threads = ThreadKeys::new(log, placement);
    let groups = pass::groups(log, KINDS, &pass::Part::default());
    let len = groups.len().div_ceil(NUM_SEGMENTS).max(1);
    let segments = groups.chunks(len).map(|groups| -> CallStream {
        let (log, placement, threads) = (Arc::clone(log), placement.clone(), threads.clone());
        let mut functions = Functions::new(&placement);
        Box::new(groups.concat().into_iter().map(move |buffer| {
            let (placement, threads, functions) = (&placement, &threads, &mut functions);
            Reader { log: &log, placement, threads, functions }.run(buffer).into()
        }))
    });
    segments.collect()
}

/// Decodes the calls of buffers into rows.
struct Reader<'a> {
    log: &'a Shared,
    placement: &'a Placement,
    threads: &'a ThreadKeys,
    functions: &'a mut Functions,
}

impl Reader<'_> {
    /// The rows of several buffers as a batch.
    fn batch(mut self, buffers: &[usize]) -> RecordBatch {
        let num = buffers.iter().fold(0usize, |sum, buffer| sum.saturating_add(self.num_at_most(*buffer)));
        let mut rows = Rows::with_capacity(num);
        for &buffer in buffers {
            self.each(buffer, |row| rows.push(&row));
            rows.end_buffer(self.threads.of_buffer(self.log, buffer));
        }
        rows.finish(self.placement.source_id)
    }

    /// The rows of one buffer.
    fn run(mut self, buffer: usize) -> CallRun {
        let mut rows = Vec::with_capacity(self.num_at_most(buffer));
        self.each(buffer, |row| rows.push(row));
        let (thread_id, source_id) = (self.threads.of_buffer(self.log, buffer), self.placement.source_id);
        CallRun { thread_id, source_id, rows }
    }

    /// Upper bound of the number of calls in a buffer.
    fn num_at_most(&self, buffer: usize) -> usize {
        self.log.survey().lengths.get(buffer).map_or(0, |num| *num as usize)
    }

    /// Passes each call of a buffer to `each`.
    #[inline(always)]
    fn each(&mut self, buffer: usize, mut each: impl FnMut(CallRow)) {
        let (survey, names) = (self.log.survey(), self.log.names());
        let Some(buffer) = survey.buffers.list.get(buffer) else { return };
        let mut event = Event::default();
        let passed_over = KindSet::of(&[EventByte::ALLOC_BT]);
        let mut decoder = buffer.decoder(&self.log.source, survey.dialect).lean(passed_over);
        let clock = self.placement.clock;
        let mut push = |call: Call| {
            let function_id = self.functions.key(names, call.method, call.time);
            let kind = KINDS_BY_BYTE.get(usize::from(call.byte.0 >> 4) & 3).copied();
            let kind = kind.unwrap_or(CallEvent::Exit);
            each(CallRow { ts_ns: clock.ns(call.time), record_offset: call.offset, function_id, kind });
        };
        loop {
            decoder.calls(&mut push);
            let Some(Ok(())) = decoder.read(&mut event) else { break };
            if let Body::Call { method } = event.body {
                push(Call { byte: event.byte, time: decoder.time(), method, offset: event.offset });
            }
        }
    }
}

/// Keys of functions, with a cache of recent methods.
struct Functions {
    first: u32,
    /// Method and key, at the slot of the method.
    recent: Box<[(u64, u32); PLACES]>,
}

impl Functions {
    fn new(placement: &Placement) -> Self {
        // An entry that was never set has a method that belongs to another slot.
        let recent = Box::new(std::array::from_fn(|at| (if at == 0 { 8 } else { 0 }, 0)));
        Self { first: placement.first.function, recent }
    }

    /// Key of the function of a method at a time.
    #[inline(always)]
    fn key(&mut self, names: &Names, method: u64, time: u64) -> u32 {
        match self.recent.get(slot(method)) {
            Some((known, key)) if *known == method => *key,
            _ => self.other(names, method, time),
        }
    }

    /// Key of the function of a method that is not in the cache.
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

/// Cache slot of a method. Addresses of methods are some words apart.
#[inline(always)]
fn slot(method: u64) -> usize {
    ((method >> 3) ^ (method >> 14)) as usize % PLACES
}

/// Columns of a batch under construction.
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
    fn push(&mut self, row: &CallRow) {
        self.ts_ns.push(row.ts_ns);
        self.kinds.push(row.kind as i32);
        self.functions.push(row.function_id);
        self.offsets.push(row.record_offset);
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
